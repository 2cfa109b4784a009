"""Each client's own model, which the client goes on training for itself: what fine-tuned FedAvg is without clusters.

All clients take the same number of rounds, chosen on validation rows as fine-tuned FedAvg's (phases/personalization.py), so that
one can tell what clusters add to fine-tuning. What a client trains it sends to nobody: it costs `rounds` client-rounds a client
beyond what the clustering costs.

FedSoft's personalized models (Ruan and Joe-Wong 2022) are what clients trained last, from the mixture of their models and pulled to
it: `fine_tuned,rounds=1,least_rounds=1,proximal_mu=LAMBDA`, where lambda is FedSoft's `attraction`.

In several rounds a client is pulled to the model that it had before the first of them, and the experiment's own proximal_mu (FedProx)
is added to that pull. Without a pull of the rule, FedProx pulls to where each round starts, as in training before.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tff_cluster.aggregation.rule import TrainingRule
from tff_cluster.base.errors import InputError


def fine_tuned(
  train: Callable[[int, float], np.ndarray],
  rounds: int = 5,
  least_rounds: int = 0,
  proximal_mu: float = 0.0,
) -> int:
  """Returns after how many rounds all clients stop: where their mean accuracy on validation rows is highest, of equal ones the first.

  Args:
    train: Trains every client for a number of rounds of its local epochs, with mu / 2 |w - start|^2 added to its loss, and returns
      float64[rounds + 1], that mean before the first round and after each.
    rounds: The most rounds that are tried, at least 1.
    least_rounds: The fewest that are taken, from 0 to `rounds`.
    proximal_mu: mu, how strongly a client is pulled to where its first round starts; at least 0. In one round of one step it has no
      effect, and is refused (experiment/config.py).

  Raises:
    InputError: if an option is out of range.
  """
  if not _is_whole(rounds) or rounds < 1:
    raise InputError(f'rounds={rounds}: must be a whole number, at least 1')
  if not _is_whole(least_rounds) or not 0 <= least_rounds <= rounds:
    raise InputError(f'least_rounds={least_rounds}: must be a whole number from 0 to rounds, {rounds}')
  if isinstance(proximal_mu, (str, bool)) or proximal_mu is None or not 0.0 <= proximal_mu < np.inf:
    raise InputError(f'proximal_mu={proximal_mu}: must be a number, at least 0')
  accuracy = train(rounds, float(proximal_mu))[least_rounds:]
  # A mean over clients may differ in its last bits.
  return least_rounds + int(np.argmax(accuracy >= accuracy.max() - 1e-9))


def _is_whole(value: Any) -> bool:
  return isinstance(value, int) and not isinstance(value, bool)


RULE = TrainingRule(
  name='fine_tuned', words='own model of each client, fine-tuned', function=fine_tuned, position=20
)
