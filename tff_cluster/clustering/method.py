"""What a clustering method is: one object that says everything about itself, so that nobody has to ask for its name.

A small method derives from `Method`, declares its options and overrides `cluster`. All the rest has a default.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from tff_cluster.base import fields as fields_lib
from tff_cluster.base import seeding
from tff_cluster.base.errors import argument
from tff_cluster.clustering import number_of_clusters
from tff_cluster.clustering.method_options import NoOptions
from tff_cluster.clustering.outcome import Joined, Outcome

if TYPE_CHECKING:
  from tff_cluster.clustering.assignment import ClusterAssignment
  from tff_cluster.clustering.recursion import Federation, Recursion, Tree
  from tff_cluster.clustering.replay import Found, Grid, Replay
  from tff_cluster.clustering.signatures import Signatures

Options = TypeVar('Options')
# Clients' labelled rows by id: x [rows, ...] and y int[rows].
Rows = Mapping[str, tuple[np.ndarray, np.ndarray]]


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
  """What a method may look at.

  Attributes:
    signatures: The clients' vectors.
    seed: The experiment's seed.
    truths: Planted memberships by name, float[groups, clients]; None for all but an oracle in a run.
    ids: The clients of the truths, where these are not those of the signatures.
    rows: The clients' training rows; None for all but a method that reads them, in a run.
  """

  signatures: 'Signatures'
  seed: int = 0
  truths: Mapping[str, np.ndarray] | None = None
  ids: tuple[str, ...] | None = None
  rows: Rows | None = None

  def seen_by(self, method: 'Method[Any]') -> 'Evidence':
    """Returns what a method may look at: planted groups if it is an oracle, training rows if it reads them."""
    truths, ids = (self.truths, self.ids) if method.oracle else (None, None)
    return dataclasses.replace(self, truths=truths, ids=ids, rows=self.rows if method.reads_rows else None)

  @property
  def client_ids(self) -> tuple[str, ...]:
    return self.signatures.client_ids if self.ids is None else self.ids

  def integer_seed(self, *purpose: Any) -> int:
    """Returns the seed of one purpose, for libraries that take a number."""
    return seeding.integer_seed(self.seed, *purpose)


@dataclasses.dataclass(frozen=True, eq=False)
class Newcomers:
  """Clients that come later, and what a rule that assigns them to clusters may look at.

  Attributes:
    assignment: The clusters, of the clients that were clustered; it may hold clients without a finite vector
      (clustering/diverged_clients.py), which decide nothing.
    known: The evidence that was clustered; None for methods that alternate.
    arriving: The newcomers' vectors, made like those of the others; None where they have none.
    threshold: The distance threshold that was used; None where there was none.
    truths: The newcomers' planted memberships by name; None for all but an oracle.
    tree: The clusters that a method which splits while it trains has trained; None for others.
    losses: Measures the clusters' models on the newcomers' training rows: the cross-entropy of each row, float32[clusters, rows]
      a newcomer; None but for methods that alternate.
    rows: The newcomers' training rows, in their order; None for all but a method that reads them.
  """

  assignment: 'ClusterAssignment'
  known: Evidence | None = None
  arriving: 'Signatures | None' = None
  threshold: float | None = None
  truths: Mapping[str, np.ndarray] | None = None
  tree: 'Tree | None' = None
  losses: Callable[[], Sequence[np.ndarray]] | None = None
  rows: Rows | None = None


class Method(Generic[Options]):
  """A clustering method.

  Attributes:
    name: What configurations and command lines call it.
    title: What reports call it.
    options_type: A frozen dataclass of fields made by fields.option.
    draws: Whether it draws from the seed.
    oracle: Whether it may see the planted groups. What an oracle attains is no method's merit.
    reads_rows: Whether it clusters clients by their training rows (Evidence.rows), not by vectors. Newcomers then train nothing.
    has_linkage: Whether what it returns has merges (Outcome.linkage).
    overlaps: Whether a client may be in several clusters.
    dial: The option that the overlap dial turns, a distance threshold; None: it has none.
    approach: What a report calls a run of such clusterings.
    estimator_defaults: Options without which the method's estimator (clustering/estimators.py) could not be made.
    one_cluster: What it means where all clients are in one cluster.
    alternates: Whether it clusters and trains in turn, instead of clustering vectors that clients sent once; see
      clustering/alternating.py.
    joins_predictions: Whether a client that has shares in several models predicts with the mean of their probabilities,
      weighted by its shares; else with the mean of their weights.
    idle_in_one_step: Its numbers that change nothing where a client makes one step a round.
  """

  name: ClassVar[str] = ''
  title: str = ''
  options_type: ClassVar[type] = NoOptions
  draws: ClassVar[bool] = False
  oracle: ClassVar[bool] = False
  reads_rows: ClassVar[bool] = False
  has_linkage: ClassVar[bool] = False
  overlaps: ClassVar[bool] = False
  dial: ClassVar[str | None] = None
  approach: ClassVar[str] = 'Three-phase distance-based clustering'
  estimator_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
  one_cluster: ClassVar[str] = 'this is FedAvg restarted, not a clustering'
  alternates: ClassVar[bool] = False
  joins_predictions: ClassVar[bool] = False
  idle_in_one_step: ClassVar[tuple[str, ...]] = ()

  @property
  def splits(self) -> bool:
    """Whether it splits clusters while they train."""
    return type(self).rounds is not Method.rounds

  @property
  def trains(self) -> bool:
    """Whether clusters come of training, not of vectors that clients sent once."""
    return self.alternates or self.splits

  @property
  def of_vectors(self) -> bool:
    """Whether vectors alone give clusters: it needs no training, no rows and no planted groups."""
    return type(self).cluster is not Method.cluster and not (self.oracle or self.reads_rows)

  # Its options.

  def fields(self) -> dict[str, dataclasses.Field]:
    """Returns the options by name."""
    return {field.name: field for field in dataclasses.fields(self.options_type)}

  def value_from_text(self, name: str, text: str) -> Any:
    """Reads an option's value from a command line; ValueError says what was expected."""
    return fields_lib.value_from_text(self.fields()[name], text)

  def read(self, given: Mapping[str, Any]) -> Options:
    """Returns the options, typed and checked.

    Raises:
      InputError: naming an option that is unknown, out of range, or does not go with the others.
    """
    options = fields_lib.section_from_json(self.options_type, given)
    fields_lib.check_fields(options)
    self.check(options)
    return options

  def parameters(self, options: Options) -> dict[str, Any]:
    """Returns the options by name, for results."""
    return {name: getattr(options, name) for name in self.fields()}

  def check(self, options: Options) -> None:
    """Raises InputError where options do not go together."""

  def check_experiment(
    self, options: Options, num_clients: int, cohort_fraction: float, words: str = ''
  ) -> None:
    """Raises InputError where the options do not fit an experiment.

    Args:
      options: The options.
      num_clients: Clients that are clustered.
      cohort_fraction: Share of the clients that train in a round.
      words: What a message says behind 'clients', for instance ' that take part'.
    """
    number = self.told_number(options)
    if number is not None:
      number_of_clusters.check_num_clusters(number, num_clients, words)

  def check_beside(self, options: Options, others: Sequence[str]) -> None:
    """Raises InputError where the options name a clustering that the run lacks.

    Args:
      options: The options.
      others: The clusterings of the run that do not train.
    """

  def told_number(self, options: Options) -> int | None:
    """Returns the number of clusters that it is told; None where it finds it."""
    return getattr(options, 'num_clusters', None)

  def for_clients(self, options: Options, num_clients: int) -> Options:
    """Returns the options for fewer clients than were meant to be clustered."""
    number = self.told_number(options)
    if number is None or number <= num_clients:
      return options
    return dataclasses.replace(options, num_clusters=num_clients)  # type: ignore[type-var]

  def needs_run(self, options: Options) -> str | None:
    """Returns why vectors alone are not enough, as the message of an InputError; None where they are."""
    if self.reads_rows:
      return f'{argument("method", self.name)}: it reads the training rows of a run; vectors alone have none'
    if type(self).cluster is Method.cluster:
      return f'{argument("method", self.name)}: it clusters while it trains; vectors alone are not enough'
    return None

  # What it does.

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the clusters of the clients; raises InputError where the options do not fit them."""
    raise NotImplementedError(f'{type(self).__name__} overrides neither cluster nor rounds')

  def rounds(self, options: Options, federation: 'Federation') -> 'Recursion':
    """Splits clusters while they train; a method that overrides this is such a method."""
    raise NotImplementedError(f'{type(self).__name__} clusters vectors; it does not split clusters')

  def join(self, options: Options, newcomers: Newcomers) -> Joined:
    """Returns the clusters that newcomers are assigned to: by default the one with the nearest mean (Euclidean).

    Newcomers change no cluster, and none depends on another one.
    """
    from tff_cluster.clustering import newcomer_rules

    return newcomer_rules.nearest_mean(newcomers)

  # What else is asked of it.

  def alternatives(self, num_clients: int) -> Sequence[Mapping[str, Any]]:
    """Returns the options of clusterings that a report shows beside those that were trained."""
    return ()

  def questions(self, grid: 'Grid', num_clients: int) -> Iterator[Mapping[str, Any]]:
    """Yields the options with which phases.replay asks for this method."""
    yield from ()

  def replay(self, grid: 'Grid', asked: 'Replay') -> 'Iterator[Found]':
    """Yields what the questions give; a method that answers many of them at once overrides this."""
    return asked.one_by_one(self, self.questions(grid, asked.evidence.signatures.num_clients))

  def on_validation(self, options: Options) -> bool:
    """Whether a threshold is to be chosen among `cuts` by training each of them."""
    return False

  def rounds_of_choice(self, options: Options, phase2_rounds: int) -> int:
    """Returns for how many rounds of Phase 2 each cut is trained before validation rows choose; 0 where none is to be chosen.

    Raises:
      InputError: if for more than there are.
    """
    return int(self.on_validation(options))

  def cuts(
    self, options: Options, signatures: 'Signatures', counts: Sequence[int]
  ) -> list[tuple[float, np.ndarray]]:
    """Returns thresholds that give these numbers of clusters, with labels int64[clients]."""
    raise NotImplementedError(f'{type(self).__name__} has no thresholds to choose among')

  def at_threshold(self, threshold: float) -> dict[str, Any]:
    """Returns the options that a chosen threshold changes."""
    return {'distance_threshold': repr(threshold)}

  # How reports name it.

  def title_of(self, options: Options) -> str:
    """Returns the title with what tells its variants apart."""
    return self.title or self.name

  def basis(self, options: Options) -> str:
    """Returns what clusters were found on, after 'the clients’'."""
    return str(getattr(options, 'signature', ''))
