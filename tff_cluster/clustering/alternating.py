"""Methods that alternate between clustering and training: K models, and which clients train which of them, round by round.

A method says what a round does (`step`), over the clients at work (`Federation`). Where its models start, how its rounds are kept
and resumed, and what its models are measured on is the same for all of them.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from tff_cluster.base.arrays import one_hot
from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.fields import option
from tff_cluster.base.types import Weights
from tff_cluster.clustering.method import Method, Newcomers
from tff_cluster.clustering.method_options import WithNumber
from tff_cluster.clustering.outcome import Joined

STARTS = ('random', 'warm', 'clustering')


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
  """A model on the server.

  Attributes:
    weights: Its weights.
    memory: What aggregator and server optimizer remember of earlier rounds; () before the first one.
  """

  weights: Weights
  memory: tuple[np.ndarray, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class State:
  """What a method knows after a round.

  Attributes:
    models: The K models.
    membership: float64[models, clients]; a column sums to 1, or is 0 while nothing is known of the client.
    since: int64[clients], the round in which a client's membership was estimated last; 0 while it was not.
    given: Whether the memberships are those of the start; the first round trains them as they are.
    memory: What else the method remembers, by name.
  """

  models: tuple[Model, ...]
  membership: np.ndarray
  since: np.ndarray
  given: bool = False
  memory: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

  @property
  def weights(self) -> list[Weights]:
    return [model.weights for model in self.models]

  @property
  def own(self) -> np.ndarray:
    """float64[models, clients], columns sum to 1: of whom nothing is known, has the mean of all models."""
    known = self.membership.any(axis=0)
    return np.where(known, self.membership, 1.0 / len(self.models))

  def estimated(self, clients: np.ndarray, membership: np.ndarray, number: int) -> 'State':
    """Returns the state with what a round found out.

    Args:
      clients: int64[some], positions of the clients that it looked at; the others stay where they are.
      membership: float64[models, some], columns sum to 1.
      number: The round.
    """
    everybodys, since = self.membership.copy(), self.since.copy()
    everybodys[:, clients], since[clients] = membership, number
    return dataclasses.replace(self, membership=everybodys, since=since)

  def users(self, clients: np.ndarray) -> list[np.ndarray]:
    """Returns for each model int64[users], those of the clients that have a share in it."""
    return [clients[row > 0.0] for row in self.membership[:, clients]]


class Federation(Protocol):
  """Clients that train. What they are sent and what they compute is counted.

  Attributes:
    client_ids: Their ids.
    rows: int64[clients], their training rows.
    seed: The experiment's seed.
    first_round: The round whose models the method starts from; its first own round is the next one.
  """

  client_ids: tuple[str, ...]
  rows: np.ndarray
  seed: int
  first_round: int

  def cohort(self, number: int) -> np.ndarray:
    """Returns int64[cohort], positions of the clients that take part in a round, ascending."""

  def losses(self, models: Sequence[Weights], clients: np.ndarray) -> np.ndarray:
    """Returns float64[models, clients], mean cross-entropy on the clients' training rows; infinite where it is not finite."""

  def row_losses(self, models: Sequence[Weights], clients: np.ndarray) -> list[np.ndarray]:
    """Returns for each client float32[models, rows], the cross-entropy of each of its training rows."""

  def fed_avg(
    self,
    number: int,
    models: Sequence[Model],
    users: Sequence[np.ndarray],
    equal: bool = False,
    row_weights: Sequence[Sequence[np.ndarray]] | None = None,
  ) -> tuple[Model, ...]:
    """Returns each model after a round of FedAvg of its users; one that nobody uses stays as it is.

    Args:
      number: The round; the visit orders are drawn for it.
      models: The models.
      users: int64[users] of each, positions of clients, ascending.
      equal: Whether clients weigh the same in the mean; else each weighs by its number of training rows.
      row_weights: For each model and each of its users float[rows]; a row's loss is multiplied with it. None: by 1.
    """

  def updates(
    self,
    number: int,
    starts: Sequence[Weights],
    users: Sequence[np.ndarray],
    made_of: Sequence[Weights] | None = None,
    proximal_mu: float = 0.0,
  ) -> list[np.ndarray]:
    """Returns for each start float32[users, features], what its users' weights become minus it; NaN where that is not finite.

    Args:
      number: The round; the visit orders are drawn for it.
      starts: Where clients start.
      users: int64[users] of each, positions of clients, ascending.
      made_of: The models that clients are sent, as far as they were not earlier in the round, to make their starts of; None:
        they are sent the starts.
      proximal_mu: mu of a penalty mu / 2 * |w - start|^2 (Li et al. 2020, equation 2), beside the experiment's own.
    """

  def average(self, model: Model, updates: np.ndarray, weights: np.ndarray) -> Model:
    """Returns a model after the server's part of a round of FedAvg.

    Args:
      model: The model before.
      updates: float32[clients, features], what clients' weights are minus the model's; not finite: left out.
      weights: float[clients], what each weighs in the mean.
    """


@dataclasses.dataclass(frozen=True)
class Options(WithNumber):
  """The options that all methods share that alternate."""

  start: str = option(
    'random',
    "Where the models start: from K seeded initial models; warm, from Phase 1's model with seeded noise; or from the clusters of "
    'another clustering of the run.',
    choices=STARTS,
  )
  start_noise: float = option(
    0.1,
    "start=warm: standard deviation of the noise, as a share of the root mean square of each of the model's arrays.",
    above=0.0,
    applies=('start', ('warm',)),
  )
  start_clustering: str | None = option(
    None,
    'start=clustering: the name of a clustering of the same run that does not alternate.',
    applies=('start', ('clustering',)),
  )


_Options = TypeVar('_Options', bound=Options)


class Alternating(Method[_Options]):
  """A method that alternates between clustering and training; it overrides `step`.

  Attributes:
    revision: Raised when a change of the method changes its rounds, so that rounds of an earlier version are not gone on with.
    trains_all: Whether a client trains all models in a round; else one, be it a mean of several.
    trains_given: Whether in the first round a client trains each of its clusters where these are given.
    parts_cohorts: Whether in some round the clients that take part are divided among all models, however alike they are.
  """

  approach = 'Alternating clustering and training'
  one_cluster = 'all clients ended with one model, so the method collapsed to FedAvg'
  options_type = Options
  draws = True
  alternates = True
  revision: ClassVar[int] = 0
  trains_all: ClassVar[bool] = False
  trains_given: ClassVar[bool] = False
  parts_cohorts: ClassVar[bool] = False

  def check(self, options: _Options) -> None:
    """Raises InputError where a start from a clustering names none, or a number of clusters beside it."""
    if options.start != 'clustering':
      return
    if options.start_clustering is None:
      raise InputError(
        f'{argument("start", "clustering")} needs {argument("start_clustering")}, the name of a clustering of the same run'
      )
    if options.num_clusters != type(options).num_clusters:
      raise InputError(
        f'{argument("num_clusters", options.num_clusters)} does not apply to {argument("start", "clustering")}, which has as many '
        'clusters as the clustering that it names'
      )

  def check_beside(self, options: _Options, others: Sequence[str]) -> None:
    """Raises InputError where the clustering to start from is not there."""
    if options.start_clustering is not None and options.start_clustering not in others:
      raise InputError(
        f'start_clustering={options.start_clustering}: the clusterings of this run to start from are: '
        f'{", ".join(others) or "none"}'
      )

  def told_number(self, options: _Options) -> int | None:
    """Returns the number of clusters, where the start does not give it."""
    return None if options.start == 'clustering' else options.num_clusters

  def first_round(self, options: _Options, phase1_rounds: int) -> int:
    """Returns the round whose models its rounds start from; random ones stand before round 1."""
    return 0 if options.start == 'random' else phase1_rounds

  def revision_of(self, options: _Options) -> int:
    """Returns the revision of rounds with these options; a method overrides it whose change left other rounds as they were."""
    return self.revision

  def step(self, options: _Options, federation: Federation, state: State, number: int) -> State:
    """Returns the state after a round, from that before it."""
    raise NotImplementedError(f'{type(self).__name__} overrides no step')

  def estimate(self, options: _Options, losses: np.ndarray) -> np.ndarray:
    """Returns float64[models, clients], memberships from mean losses of the models on training rows, likewise.

    By default a client belongs to the model with the least loss.
    """
    return one_hot(np.argmin(losses, axis=0), len(losses))

  def assign(self, options: _Options, row_losses: Sequence[np.ndarray]) -> np.ndarray:
    """Returns float64[models, clients], the memberships of newcomers, and of clients that no cohort ever had.

    Args:
      options: The options.
      row_losses: float32[models, rows] of each client, on its training rows.
    """
    return self.estimate(options, mean_losses(row_losses))

  def join(self, options: _Options, newcomers: Newcomers) -> Joined:
    """Returns the clusters of the newcomers, by the losses of the models on their training rows."""
    assert newcomers.losses is not None
    row_losses = newcomers.losses()
    fallback = ~np.isfinite(mean_losses(row_losses)).any(axis=0)
    return Joined(self.assign(options, row_losses), fallback)

  def basis(self, options: _Options) -> str:
    """Says what clusters were found on."""
    return 'training, round by round'


def mean_losses(row_losses: Sequence[np.ndarray]) -> np.ndarray:
  """Returns float64[models, clients], means over rows; infinite where they are not finite."""
  means = np.stack([rows.mean(axis=1, dtype=np.float64) for rows in row_losses], axis=1)
  return np.where(np.isfinite(means), means, np.inf)
