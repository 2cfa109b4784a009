"""What rounds cost, in what it is made of: models on the network, and rows that clients put through a model."""

import dataclasses

from tff_cluster.base import records

# A row that is trained on goes through the model forward and backward, and backward takes about twice the arithmetic of forward
# (Kaplan et al. 2020, "Scaling laws for neural language models", section 2.1; Hobbhahn and Sevilla 2021, "What's the
# backward-forward FLOP ratio for neural networks?", who measure 2:1 in deep networks and 1:1 in a first layer).
PASSES_OF_TRAINING = 3
# What costs and budgets can be counted in, with words.
UNITS = {'rounds': 'client-rounds', 'bytes': 'bytes', 'passes': 'passes'}


@dataclasses.dataclass(frozen=True)
class Cost(records.Record):
  """What rounds cost. What is only measured, for tables and curves, costs nothing.

  Attributes:
    client_rounds: Local trainings, each of one client and one model.
    models_down: Models, or vectors in their place (updates, sketches), that clients received.
    models_up: Those that they sent.
    bytes_down: Sizes of what they received, together.
    bytes_up: Sizes of what they sent, together.
    rows_trained: Rows that clients trained on, each as often as it was visited.
    rows_forward: Rows that they put through a model only to know its loss or its predictions.
  """

  client_rounds: int = 0
  models_down: int = 0
  models_up: int = 0
  bytes_down: int = 0
  bytes_up: int = 0
  rows_trained: int = 0
  rows_forward: int = 0

  @property
  def bytes(self) -> int:
    """Both ways."""
    return self.bytes_down + self.bytes_up

  @property
  def passes(self) -> int:
    """Rows through a model, in passes forward."""
    return PASSES_OF_TRAINING * self.rows_trained + self.rows_forward

  def of(self, unit: str) -> int:
    """Returns how much it is in one of UNITS."""
    return {'rounds': self.client_rounds, 'bytes': self.bytes, 'passes': self.passes}[unit]

  def __add__(self, other: 'Cost') -> 'Cost':
    return Cost(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

  def __sub__(self, other: 'Cost') -> 'Cost':
    return Cost(*(a - b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))
