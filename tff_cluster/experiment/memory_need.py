"""How much memory a run needs, as it follows from its configuration: a pure function, held to measured runs by its test.

The estimate is the resident memory of this process and of the worker together, at its highest:

  bytes = PROCESS                                                   Python, TensorFlow and TFF; the worker
        + 6 * rows * row_bytes                                   the rows here: read, shared out, kept
        + 10 * sent * row_bytes                                  those on their way, and in the worker
        + 4 * parameters * (4 * cohort + 6 * clusters + 60)      updates under way, all models of a clustering at a time, and
                                                                 copies that every run was seen to hold, here and in the worker
        + 3 * min(4 * parameters * clients, one message)         signatures under way
        + parallel * 250 * 4 * 4 * (activations + 3 * classes)   what a model computes for a batch that it is measured on
        + 160 * clients * classes                                counts by class of clients, on two splits, here and there
        + 32 * clients^2                                         distances
        + 64 * clusters * (rows / 5) * classes, with experts     their outputs on the global test set, six copies of 8 bytes each, and
                                                                 on validation rows for the gate; so with rules of predictions
        + min(4 * parameters * rounds, PULLED_TO), with Ditto    FedAvg's models, which lie on the disk, as many as are kept here

`sent` are the rows of a cohort, or, where those are fewer, as many as fit into one message when models are measured.
Signatures themselves, 4 * clients * parameters bytes a kind, lie on the disk and are mapped.
"""

import dataclasses

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import PredictionRule
from tff_cluster.base.errors import InputError, argument
from tff_cluster.data import datasets
from tff_cluster.data import population as population_lib
from tff_cluster.experiment.config import ExperimentConfig

# Of this process and its worker, before any rows or models.
PROCESS = 900_000_000
# Copies of the model, by a client of a cohort, by a cluster, and in any case, and copies of signatures that are under way. Fitted,
# from above, to the peaks of runs of the 2NN: 1.6, 1.8 and 3.2 GB for 8, 20 and 60 clients of 1.2 million parameters, 2.5 GB for
# the latter where 12 train in a round, 2.2 GB for 4 of 4 million, 2.1 GB for 240 of 0.16 million, and 5.8 GB for 1,200, a third
# of it rows. It is not known what holds the last; neither clusters side by side nor garbage of Python or this
# process's arenas do.
_COPIES_A_CLIENT, _COPIES_A_CLUSTER, _COPIES = 4, 6, 60
_COPIES_OF_SIGNATURES = 3
# Peaks of all rules together were 6.0 times the outputs on the test set as float64, where validation rows were a tenth of it, and 10.5
# times where they were as many.
_EXPERT_BYTES = 64
_BATCH = 250
_MESSAGE_BYTES = 400_000_000  # That of engine/jobs.py, which can import TensorFlow.
_GB = 1e9
# Bytes of FedAvg's models that Ditto keeps in memory, to which all clients are pulled in turn; the others it reads again.
PULLED_TO_BYTES = 200_000_000


@dataclasses.dataclass(frozen=True)
class Size:
  """What the memory of a run depends on, beside its model.

  Attributes:
    rows: Of all clients and the global test set together.
    row_bytes: Bytes of an example.
    num_classes: Number of labels.
    clients: Those that take part.
    cohort: Those that train in a round.
    clusters: The most that a clustering is known to have; 0 where none is known.
    kinds: Kinds of signatures that are kept.
    sketch_dimension: Numbers of a signature, where clients send sketches.
    parallel: Clients side by side in the worker.
    experts: Whether the models' outputs are combined.
    pulled_to: Models of FedAvg that Ditto's clients are pulled to; 0 without Ditto.
  """

  rows: int
  row_bytes: int
  num_classes: int
  clients: int
  cohort: int
  clusters: int = 0
  kinds: int = 1
  sketch_dimension: int | None = None
  parallel: int = 1
  experts: bool = False
  pulled_to: int = 0

  def needed(self, parameters: int, activations: int = 0) -> int:
    """Returns the bytes of memory that a run needs; see the module's docstring.

    Args:
      parameters: Of the model.
      activations: Numbers that the model computes for an example, as far as they are known.
    """
    rows_bytes = self.rows * self.row_bytes
    sent = max(rows_bytes * self.cohort // self.clients, min(rows_bytes, _MESSAGE_BYTES))
    outputs = _EXPERT_BYTES * self.clusters * (self.rows // 5) * self.num_classes if self.experts else 0
    return (
      PROCESS
      + 6 * rows_bytes
      + 10 * sent
      + 4 * parameters * self._copies
      + _COPIES_OF_SIGNATURES * min(4 * parameters * self.clients, _MESSAGE_BYTES)
      + self.parallel * _BATCH * 16 * (activations + 3 * self.num_classes)
      + 160 * self.clients * self.num_classes
      + 32 * self.clients**2
      + outputs
      + min(4 * parameters * self.pulled_to, PULLED_TO_BYTES)
    )

  def words(self, available: int | None, parameters: int | None = None, activations: int = 0) -> str:
    """Returns the line that a program prints before it trains.

    Args:
      available: Bytes; None where the system does not tell.
      parameters, activations: Of the model, see `needed`; None where it has not been built.
    """
    there = '' if available is None else f', {available / _GB:.1f} GB are available'
    if parameters is None:
      copies = self._copies + _COPIES_OF_SIGNATURES * self.clients
      return f'memory: about {self.needed(0) / _GB:.1f} GB, and {copies} copies of the model, whose size is known once it is built{there}'
    disk = f'signatures on disk: {self.on_disk(parameters) / _GB:.2f} GB'
    return f'memory: about {self.needed(parameters, activations) / _GB:.1f} GB{there}; {disk}'

  @property
  def _copies(self) -> int:
    """How often the model is in memory at most, beside signatures."""
    return _COPIES_A_CLIENT * self.cohort + _COPIES_A_CLUSTER * self.clusters + _COPIES

  def on_disk(self, parameters: int) -> int:
    """Returns the bytes of the signatures that Phase 1 keeps."""
    return 4 * self.kinds * self.clients * (self.sketch_dimension or parameters)


def of_config(config: ExperimentConfig, rows: int, row_bytes: int, num_classes: int, parallel: int) -> Size:
  """Returns the size of an experiment on rows of which so much is known; see Size."""
  clients, clusterings = config.data.num_participants, config.clusterings
  if config.data.rows_per_client is not None and not datasets.find(config.data.dataset).picks_owners:
    # Test rows come with them in proportion; the global test set is a fifth or less.
    rows = min(rows, 2 * config.data.num_clients * config.data.rows_per_client + rows // 5)
  kinds = config.training.signatures(clustering.signature for clustering in clusterings)
  # They, too, combine what all models give for the global test set.
  predicts = any(isinstance(rule, PredictionRule) for rule in rules.added(config.evaluation.aggregation))
  return Size(
    rows=rows,
    row_bytes=row_bytes,
    num_classes=num_classes,
    clients=clients,
    cohort=population_lib.cohort_size(config.training.cohort_fraction, clients),
    clusters=max((c.rule.told_number(c.options) or 0 for c in clusterings), default=0),
    kinds=len(kinds),
    sketch_dimension=config.training.sketch_dimension,
    parallel=parallel,
    experts=config.evaluation.experts or predicts,
    pulled_to=0 if config.evaluation.ditto is None else config.training.last_round,
  )


def check(needed: int, available: int | None) -> None:
  """Refuses what does not fit.

  Args:
    needed, available: Bytes; None where the system does not tell what is available.

  Raises:
    InputError: saying how much is needed, how much there is, and what makes it less.
  """
  if available is not None and needed > available:
    raise InputError(
      f'this run needs about {needed / _GB:.1f} GB of memory, of which {available / _GB:.1f} GB are available; use a smaller '
      f'{argument("model")}, {argument("cohort_fraction")} or {argument("num_clients")}, fewer rows or classes, or a machine with more memory'
    )
