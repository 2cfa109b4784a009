"""What runs would cost that are not done yet: client-rounds, those that are stored, and the time of the rest; trains nothing."""

import dataclasses
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.aggregation.rule import TrainingRule
from tff_cluster.base.errors import InputError
from tff_cluster.base.types import Weights
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.clustering.alternating import Alternating
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import (
  added_rules,
  alternation,
  client_signatures,
  own_training,
  personalization,
  recursion,
  session,
  threshold_choice,
)
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import artifacts

if TYPE_CHECKING:
  from tff_cluster.federated import trajectory as trajectory_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
  """A run that is planned: a name to show, what it is, where it lies, and (i, n) where it is fold i of n."""

  name: str
  config: config_lib.ExperimentConfig
  folder: RunFolder
  fold: tuple[int, int] | None = None


@dataclasses.dataclass(frozen=True)
class Estimate:
  """What a run still costs.

  Attributes:
    asked: Client-rounds that its results stand on; of clusters that are not known yet, what one cluster would cost.
    stored: Those of them that the store has.
    seconds: How long the rest takes on this machine, measured on one client-round and one evaluation.
    clusters: Number of clusters by clustering; None where they are not known yet.
  """

  asked: int
  stored: int
  seconds: float
  clusters: Mapping[str, int | None]


def with_folds(run: Run) -> list[Run]:
  """Returns a run and its folds, a run each."""
  count = run.config.evaluation.num_folds
  plain = run.config.of_fold
  return [
    Run(run.folder.root.name, plain, run.folder),
    *(
      Run(f'{run.folder.root.name}, fold {i + 1}', plain, run.folder.fold(i), (i, count))
      for i in range(count)
    ),
  ]


def estimates(
  runs: Sequence[Run],
  store_dir: Path | None,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
) -> list[Estimate]:
  """Returns what each run costs beyond those before it; a few client-rounds are timed for it, and nothing is kept.

  Args:
    runs: The runs.
    store_dir: The store that those share that are no folds; None: each has its own, in its folder.
    progress, machine: See session.opened.
  """
  planned: dict[Path, int] = {}
  speeds: dict[tuple[object, ...], tuple[float, float]] = {}
  found: dict[int, Estimate] = {}
  groups: dict[tuple[Path, tuple[object, ...]], list[int]] = {}
  for position, run in enumerate(runs):
    shared = store_dir if run.fold is None else None  # A fold has a store of its own.
    store = (shared or run.folder.store).absolute()
    groups.setdefault((store, _start_of(run)), []).append(position)
  for (store, _), group in groups.items():
    with tempfile.TemporaryDirectory() as scratch:
      folder = RunFolder(Path(scratch))
      folder.store.symlink_to(str(store))
      _link_clients([runs[position].folder for position in group], folder)
      one = runs[group[0]]
      with session.opened(folder, one.config, progress, machine, one.fold) as first:
        for position in group:
          run = runs[position]
          training = run.config.training
          experiment = dataclasses.replace(first, config=run.config, is_estimate=True)
          how = tuple(training.optimization.items())
          kind = (training.model, training.batch_size, training.local_epochs, how, first.population.digest)
          if kind not in speeds:
            speeds[kind] = _speed(experiment)
          found[position] = _Counting(run, experiment, planned).estimate(*speeds[kind])
  return [found[position] for position in range(len(runs))]


def _link_clients(made: Sequence[RunFolder], folder: RunFolder) -> None:
  """Lets a folder have the clients that one of others has: their data need not be there any more."""
  for run in made:
    if run.population.exists():
      for there, here in ((run.population, folder.population), (run.new_clients, folder.new_clients)):
        if there.exists():
          here.symlink_to(there.absolute())
      return


def _start_of(run: Run) -> tuple[object, ...]:
  """Returns what names the clients and the initial models of a run."""
  training = run.config.training
  return run.config.data, run.fold, training.model, training.initializer, training.seed


class _Counting:
  """Adds up what one run costs."""

  def __init__(self, run: Run, experiment: live_experiment_lib.Experiment, planned: dict[Path, int]):
    """Args: planned: By trajectory, the round up to which it will have been trained; this run adds its own."""
    self._run, self._experiment, self._planned = run, experiment, planned
    self._asked = self._stored = self._rounds = 0

  def estimate(self, client_round: float, evaluation: float) -> Estimate:
    """Returns the estimate, from the seconds of a client-round and of an evaluation."""
    config, folder, experiment = self._run.config, self._run.folder, self._experiment
    training, everyone = config.training, experiment.everyone
    initial, last = (
      experiment.trainer.computations.model.weights,
      training.last_round,
    )
    self._trajectory(experiment.trajectory(everyone, initial, 0), last)
    kinds = training.signatures(c.signature for c in config.clusterings)
    signatures = sum(client_signatures.cost(experiment, kind).client_rounds for kind in kinds)
    self._whole(signatures, folder.phase1.exists() * signatures, 0)
    for name in config.evaluation.personalized:
      self._own_models(name, last)
    clusters = {clustering.label: self._clustering(clustering) for clustering in config.clusterings}
    if config.data.new_clients:
      # Others have newcomers measure models, or look at their rows.
      send = [c for c in config.clusterings if not (c.rule.alternates or c.rule.oracle or c.rule.reads_rows)]
      paths = [folder.new_clients_of(clustering.label) for clustering in send]
      self._whole(
        config.data.new_clients * len(paths), config.data.new_clients * sum(p.exists() for p in paths), 0
      )
    left = (self._asked - self._stored) * client_round + self._rounds * evaluation
    return Estimate(self._asked, self._stored, left, clusters)

  def _whole(self, asked: int, stored: int, rounds: int) -> None:
    """Adds client-rounds, those of them that are stored, and the rounds of the others."""
    self._asked, self._stored, self._rounds = (
      self._asked + asked,
      self._stored + stored,
      self._rounds + rounds,
    )

  def _trajectory(self, asked: 'trajectory_lib.Trajectory', last_round: int) -> None:
    rounds = range(asked.start_round + 1, last_round + 1)
    self._kept(asked.place.resolve(), asked.start_round, [len(asked.cohort(number)) for number in rounds])

  def _kept(self, folder: Path, start: int, sizes: Sequence[int]) -> None:
    """Adds rounds that a folder of the store has, or will have: what each costs, from the one after `start` on."""
    last = start + len(sizes)
    # Rounds go on from one that was kept, and later ones are of no use.
    kept = max((number for number in artifacts.saved_rounds(folder) if number <= last), default=start)
    done = max(kept, min(self._planned.get(folder, start), last)) - start
    self._planned[folder] = max(last, self._planned.get(folder, start))
    self._whole(sum(sizes), sum(sizes[:done]), len(sizes) - done)

  def _own_models(self, name: str, last: int) -> None:
    """Adds the cost of a baseline in which every client has a model of its own."""
    experiment, evaluation = self._experiment, self._run.config.evaluation
    if name == personalization.FINE_TUNING:
      # From a model that is not there yet. The number of rounds that is chosen is trained once more, which is known afterwards.
      rounds, clients = evaluation.fine_tuning, len(experiment.everyone)
      is_done = self._run.folder.personalized(name).exists()
      self._whole(rounds * clients, is_done * rounds * clients, (not is_done) * rounds)
      return
    pull = None
    if name == personalization.DITTO and evaluation.ditto is not None:
      pull = personalization.pull(experiment, evaluation.ditto)
    for client in experiment.everyone:
      self._trajectory(own_training.of_client(experiment, client, pull=pull), last)

  def _clustering(self, clustering: config_lib.ClusteringConfig) -> int | None:
    """Adds the cost of a clustering and returns its number of clusters, None where they are not known."""
    folder, training, everyone = self._run.folder, self._run.config.training, self._experiment.everyone
    begin, length = training.phase1_rounds, training.phase2_rounds
    assignment, trained = self._known(clustering.label), folder.phase2(clustering.label).exists()
    count = None if assignment is None else assignment.num_clusters
    self._fine_tuning(clustering.label)
    if clustering.rule.alternates:
      self._alternating(clustering, trained)
    elif clustering.rule.splits:
      # All clients train in every round, in whatever clusters; that of the baseline is stored until the first split. Once more each of a
      # cluster that is tested, which is known afterwards.
      cost = len(everyone) * length + sum(map(len, recursion.tested(folder, clustering.label)))
      self._whole(cost, trained * cost, (not trained) * length)
    elif assignment is not None:
      cost = client_signatures.start_cost(self._experiment, assignment.members_of_all).client_rounds
      self._whole(cost, trained * cost, 0)
      for members, start in self._clusters(assignment):
        if start is None:
          sizes = [len(self._experiment.trainer.cohort(members, begin + r)) for r in range(1, length + 1)]
          self._whole(sum(sizes), trained * sum(sizes), (not trained) * length)
        else:
          self._trajectory(self._experiment.trajectory(members, start, begin), begin + length)
    else:
      cohort = len(self._experiment.trainer.cohort(everyone, begin + 1))
      rounds = clustering.rule.rounds_of_choice(clustering.options, length)
      cuts = threshold_choice.counts(len(everyone), rounds) if rounds else []
      # The cut that is taken goes on from the rounds in which it was tried.
      tried = rounds * sum(max(cohort, cut) for cut in cuts)
      # A membership is one training where the weights that clusters start from are not sent; a client has one at least.
      tried += max(len(cuts), 1) * client_signatures.start_cost(self._experiment, [everyone]).client_rounds
      self._whole(cohort * (length - rounds) + tried, 0, length - rounds + rounds * len(cuts))
    return count

  def _fine_tuning(self, label: str) -> None:
    """Adds the cost of rules of Phase 3 that train, from models that are not there yet."""
    config, clients = self._run.config, len(self._experiment.everyone)
    missing = {rule.name for rule in added_rules.missing(self._run.folder, config, label)}
    for rule in added_rules.of(config, label):
      if isinstance(rule, TrainingRule):
        rounds, is_done = rule.most_rounds, rule.name not in missing
        self._whole(rounds * clients, is_done * rounds * clients, (not is_done) * rounds)

  def _alternating(self, clustering: config_lib.ClusteringConfig, trained: bool) -> None:
    """Adds the cost of rounds that alternate with clustering.

    A client that trains all of clusters not known counts once. Clients that a method draws by shares not known yet (FedSoft) are
    taken to be as many as FedAvg's cohort.
    """
    rule, options, experiment = clustering.rule, clustering.options, self._experiment
    assert isinstance(rule, Alternating)
    training = self._run.config.training
    first = rule.first_round(options, training.phase1_rounds)
    rounds = range(first + 1, training.last_round + 1)
    cohorts = [experiment.trainer.cohort(experiment.everyone, number) for number in rounds]
    sizes = [len(cohort) for cohort in cohorts]
    given = None if options.start_clustering is None else self._known(options.start_clustering)
    if rule.trains_all:
      count = given.num_clusters if given is not None else rule.told_number(options) or 1
      sizes = [count * size for size in sizes]
    if given is not None and (rule.trains_all or rule.trains_given):
      sizes[0] = int(given.membership[:, cohorts[0]].sum())
    folder = None if trained else self._place(clustering, given)
    if folder is None:
      self._whole(sum(sizes), trained * sum(sizes), (not trained) * len(sizes))
    else:
      self._kept(folder, first, sizes)

  def _place(
    self, clustering: config_lib.ClusteringConfig, given: assignment_lib.ClusterAssignment | None
  ) -> Path | None:
    """Returns where the rounds of a clustering that alternates are kept; None where what they start from is not at hand."""
    experiment = self._experiment
    if clustering.options.start != 'random':
      if not self._run.folder.phase1.exists() or (given is not None and self._starts(given) is None):
        return None
      experiment = dataclasses.replace(experiment, folder=self._run.folder)
    try:
      return self._experiment.store.root / alternation.place(experiment, clustering).name
    except (InputError, artifacts.MissingArtifact):
      return None

  def _known(self, label: str) -> assignment_lib.ClusterAssignment | None:
    path = self._run.folder.clusters(label)
    if not (path.exists() and self._run.folder.phase1.exists()):
      return None
    return self._run.folder.load_finished(path, phase_files.Clusters).assignment

  def _clusters(
    self, assignment: assignment_lib.ClusterAssignment
  ) -> Iterator[tuple[np.ndarray, Weights | None]]:
    """Yields each cluster's members and the weights that it starts from, None where those are not at hand."""
    starts = self._starts(assignment)
    for row in range(assignment.num_clusters):
      yield assignment.members(row), None if starts is None else self._experiment.unflatten(starts[row])

  def _starts(self, assignment: assignment_lib.ClusterAssignment) -> np.ndarray | None:
    training = self._run.config.training
    if training.cluster_start != 'global_model' and training.sketch_dimension is not None:
      return None
    try:
      return client_signatures.start_weights(
        dataclasses.replace(self._experiment, folder=self._run.folder), assignment
      )
    except (InputError, artifacts.MissingArtifact):  # They have been pruned.
      return None


def _speed(experiment: live_experiment_lib.Experiment) -> tuple[float, float]:
  """Returns the seconds of a client-round, and of measuring all clients' models once, on this machine."""
  trainer, clients = experiment.trainer, experiment.everyone[:2]
  weights = trainer.computations.model.weights
  splits = (experiment.population.validation, experiment.population.test)
  timed = []
  for work in (
    lambda: trainer.local_updates(weights, clients, 1, lambda position, update: None),
    lambda: trainer.measure_splits(weights, splits, experiment.everyone),
  ):
    work()  # What is built at the first call is built once a process.
    begun = time.monotonic()
    work()
    timed.append(time.monotonic() - begun)
  return timed[0] / len(clients), timed[1]
