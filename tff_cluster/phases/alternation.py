"""Clusterings whose method alternates between clustering and training (clustering/alternating.py), round by round.

A round is kept in the store like one of a trajectory, under a name that all that determines it goes into, so that a stopped run
goes on from its last finished round. With start=random the rounds begin with round 1, and nothing of Phase 1 is used: they stand
in its place, so that its cost is taken off theirs. Else they go on from Phase 1.
"""

import dataclasses
import itertools
import pathlib

import numpy as np

from tff_cluster.base import digests, imports, seeding
from tff_cluster.base.arrays import distance
from tff_cluster.base.cost import Cost
from tff_cluster.base.types import Json, Weights
from tff_cluster.base.words import plural
from tff_cluster.clustering import membership_history
from tff_cluster.clustering.alternating import Alternating, Model, State
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.measured import EqualCost, Evaluation
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import client_signatures, equal_cost, federation, own_models
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files, saved_rounds

_COST = tuple(field.name for field in dataclasses.fields(Cost))


def is_missing(folder: RunFolder, clustering: config_lib.ClusteringConfig) -> bool:
  """Tells whether the rounds of a clustering that alternates have not been made."""
  saved = (folder.alternation(clustering.label), folder.memberships(clustering.label))
  return clustering.rule.alternates and not all(path.exists() for path in saved)


def run(experiment: live_experiment_lib.Experiment, clustering: config_lib.ClusteringConfig) -> None:
  """Runs the rounds of a clustering up to the last one, and saves `clusterings/LABEL/alternation.json` and `memberships.npz`."""
  if not is_missing(experiment.folder, clustering):
    return
  label, folder = clustering.label, experiment.folder
  with experiment.timed() as figures:
    rounds = _Rounds(experiment, clustering)
    ended = rounds.run()
    record, affordable = ended.record, ended.affordable
    experiment.asked += int(record['cost'][:, 0].sum())
    state = rounds.state(record)
    models = _models(state.membership)
    membership = state.membership[models]
    files.save_arrays(
      folder.memberships(label),
      {name: record[name] for name in ('shares', 'cost', *saved_rounds.COLUMNS)}
      | {'since': record['since'], 'first_round': np.array(rounds.first_round)},
    )
    files.save_json(
      folder.alternation(label),
      phase_files.Alternation(
        rounds=saved_rounds.Checkpoints(rounds.folder.name, rounds.first_round, rounds.kept(affordable)),
        models=models,
        membership=membership.tolist(),
        joins_predictions=rounds.method.joins_predictions,
        cost=ended.cost,
        equal_cost=None if affordable is None else rounds.measured(affordable),
        dropped=int(record['dropped'].sum()),
        notes=[*rounds.idle(), *rounds.few(), *_notes(state, clustering, rounds.last_round)],
        timing=figures(),
      ),
    )


def clusters(folder: RunFolder, label: str, client_ids: tuple[str, ...]) -> phase_files.Clusters:
  """Returns the clusters after the last round: the clients of each model that somebody has."""
  saved = load(folder, label)
  found = [[client_ids[k] for k in np.flatnonzero(row)] for row in np.array(saved.membership)]
  return phase_files.Clusters(
    found, list(client_ids), label, 'weights', None, None, saved.notes, shares=saved.shares
  )


def load(folder: RunFolder, label: str) -> phase_files.Alternation:
  """Returns what came of the rounds of a clustering."""
  return folder.load_finished(folder.alternation(label), phase_files.Alternation)


def place(
  experiment: live_experiment_lib.Experiment, clustering: config_lib.ClusteringConfig
) -> pathlib.Path:
  """Returns the folder of the store that has the rounds of a clustering, whether or not it is there.

  Raises:
    InputError: if what they start from has not been made.
    MissingArtifact: if that is not in the store any more.
  """
  return _Rounds(experiment, clustering).folder


def train(experiment: live_experiment_lib.Experiment, label: str) -> saved_rounds.Record:
  """Returns the record of the last round, training what the store does not have any more."""
  clustering = experiment.config.clustering(label)
  trained = experiment.trained
  record = _Rounds(experiment, clustering).run().record
  # `run` asked for all; what the store lacks is asked for again.
  experiment.asked += experiment.trained - trained
  return record


@dataclasses.dataclass(frozen=True, eq=False)
class _Ended:
  """What came of rounds.

  Attributes:
    record: Of the last one, in which clients that no cohort had were assigned, too.
    cost: Of all.
    affordable: How far FedAvg's cost brings them; None where it pays all.
  """

  record: saved_rounds.Record
  cost: Cost
  affordable: equal_cost.Affordable | None


class _Rounds:
  """The rounds of a clustering.

  Attributes:
    method: Its method.
    folder: Where the rounds are kept, once they are run.
    first_round: The round whose models they start from.
    last_round: The last one.
  """

  def __init__(self, experiment: live_experiment_lib.Experiment, clustering: config_lib.ClusteringConfig):
    method, training = clustering.rule, experiment.config.training
    assert isinstance(method, Alternating)
    self.method = method
    self._options, self._experiment, self._label = clustering.options, experiment, clustering.label
    self.first_round = method.first_round(self._options, training.phase1_rounds)
    self.last_round = training.last_round
    self._clients = federation.Clients(experiment, self.first_round)
    self._budget = equal_cost.Budget(experiment)
    self._start = self._started()
    self._start_cost = self._spent_before()
    self._named = self._determinants(clustering)
    self.folder = experiment.store.place('alternating', self._named)

  def run(self) -> _Ended:
    """Runs what the store lacks; the models of the last round, and of the last one that is affordable, are kept."""
    self._experiment.store.artifact('alternating', self._named)
    with self._experiment.store.working_on(self.folder):
      record = self._until(self.last_round)
      spent = [self._spent(record, number) for number in range(self.first_round, self.last_round + 1)]
      affordable = self._budget.last_paid(self.first_round, spent)
      kept = self.kept(affordable)
      for number in kept:
        if saved_rounds.keep(self.folder, number) is None:
          self._until(number)  # An earlier run had another budget.
      saved_rounds.tidy(self.folder, kept)
    return _Ended(self._ended(), spent[-1], affordable)

  def few(self) -> list[str]:
    """Tells where so few clients take part in a round that dividing them among the models parts clients that are alike."""
    models, drawn = len(self._start.models), len(self._clients.cohort(self.first_round + 1))
    if not self.method.parts_cohorts or models < 2 or drawn >= 2 * models:
      return []
    return [
      f'a round draws {plural(drawn, "client")}, which are divided among {models} models: clients of one group may come to be apart'
    ]

  def idle(self) -> list[str]:
    """Returns which options of the method change nothing; they are at their defaults, else they are refused (config.py)."""
    names = self.method.idle_in_one_step if self._experiment.config.training.is_one_step else ()
    return [
      f'{name}={getattr(self._options, name):g} has no effect, because a client makes one step a round'
      for name in names
      if getattr(self._options, name) > 0
    ]

  def kept(self, affordable: equal_cost.Affordable | None) -> tuple[int, ...]:
    """Returns the rounds whose models are kept, ascending."""
    stops = () if affordable is None else (affordable.round,)
    return tuple(number for number in (*stops, self.last_round) if number > self.first_round)

  def measured(self, affordable: equal_cost.Affordable) -> EqualCost:
    """Returns how good the clients' own models are after a round that is kept, or at the start."""
    number, state = affordable.round, self._start
    if number > self.first_round:
      # As where that round is the last one.
      state = self._everybody_estimated(self.state(self._kept(number)), number)
    population = self._experiment.population
    validation, test = own_models.scores(
      self._experiment,
      state.weights,
      state.own,
      self.method.joins_predictions,
      (population.validation, population.test),
    )
    of_clients = Evaluation(None, test.summary(), test.client_accuracy.tolist())
    return EqualCost(number, affordable.cost, of_clients, float(validation.client_accuracy.mean()))

  def state(self, record: saved_rounds.Record) -> State:
    """Returns the state that a record holds."""
    arrays, count = saved_rounds.state(record), len(self._start.models)
    weights = len(self._start.models[0].weights)
    models, rest = arrays[: count * weights], arrays[count * weights :]
    memory = len(rest) // count
    return State(
      tuple(
        Model(tuple(models[k * weights : (k + 1) * weights]), tuple(rest[k * memory : (k + 1) * memory]))
        for k in range(count)
      ),
      record['membership'],
      record['since'],
      memory={n.removeprefix('memory_'): array for n, array in record.items() if n.startswith('memory_')},
    )

  def _kept(self, number: int) -> saved_rounds.Record:
    """Returns the record of a round that `run` has kept."""
    record = saved_rounds.load_or_none(self.folder, number)
    assert record is not None
    return record

  def _until(self, last: int) -> saved_rounds.Record:
    """Runs the rounds up to one that is kept, as far as the store lacks them, and returns its record."""
    experiment = self._experiment
    with experiment.progress.stage(self._label, last - self.first_round):
      found = saved_rounds.newest(self.folder, last)
      done, record = found or (self.first_round, self._empty())
      for number in range(self.first_round + 1, done + 1):
        self._tell(record, number)
      state = self.state(record) if found else self._start
      while done < last:
        done += 1
        state, record = self._round(state, record, done)
        paid = [self._budget.pays(self._spent(record, number)) for number in (done - 1, done)]
        if paid == [True, False]:
          saved_rounds.keep(self.folder, done - 1)
        saved_rounds.save(self.folder, done, done == last, record, _arrays(state))
        self._tell(record, done)
        experiment.trained += int(record['cost'][-1][0])
    return record

  def _round(
    self, state: State, record: saved_rounds.Record, number: int
  ) -> tuple[State, saved_rounds.Record]:
    """Returns state and record after a round."""
    clients, before = self._clients, state
    clients.begin()
    state = dataclasses.replace(self.method.step(self._options, clients, state, number), given=False)
    clients.refuse_divergence(number)
    row = {
      **self._measured(state),
      'train_loss': clients.loss_sum / clients.visited if clients.visited else np.nan,
      'dropped': clients.dropped,
      'update_norm': distance(*(itertools.chain(*each.weights) for each in (before, state))),
      'cost': np.array([getattr(clients.cost, name) for name in _COST], np.int64),
    }
    history = {name: np.concatenate([record[name], np.asarray(value)[None]]) for name, value in row.items()}
    memory = {f'memory_{name}': array for name, array in state.memory.items()}
    return state, history | memory | {'membership': state.membership, 'since': state.since}

  def _measured(self, state: State) -> dict[str, np.ndarray]:
    """Returns what a round's row of the history holds of its state."""
    joins = self.method.joins_predictions
    return {
      **own_models.measure(self._experiment, state.weights, state.own, joins),
      'shares': state.membership,
    }

  def _ended(self) -> saved_rounds.Record:
    """Returns the record of the last round where clients that no cohort ever had are assigned, too.

    What is kept does not have them, because for a longer run it is no last round.
    """
    record = self._kept(self.last_round)
    before = self.state(record)
    state = self._everybody_estimated(before, self.last_round)
    if state is before:
      return record
    row = self._measured(state)
    history = {name: np.concatenate([record[name][:-1], value[None]]) for name, value in row.items()}
    return record | history | {'membership': state.membership, 'since': state.since}

  def _everybody_estimated(self, state: State, number: int) -> State:
    """Returns the state where clients that no cohort ever had are assigned, too."""
    unknown = np.flatnonzero(~state.membership.any(axis=0))
    if not len(unknown):
      return state
    losses = self._clients.row_losses(state.weights, unknown)
    return state.estimated(unknown, self.method.assign(self._options, losses), number)

  def _spent(self, record: saved_rounds.Record, number: int) -> Cost:
    """Returns what has been spent where a round is the last one, so that clients that no cohort had yet are assigned then."""
    rows = number - self.first_round
    spent = self._start_cost + Cost(*record['cost'][:rows].sum(axis=0).tolist())
    if not rows:
      return spent
    unknown = np.flatnonzero(~record['shares'][rows - 1].any(axis=0))
    trainer, models = self._experiment.trainer, len(self._start.models)
    return spent + trainer.cost_of_measuring(trainer.population.train, unknown, models)

  def _spent_before(self) -> Cost:
    """Returns what the start cost."""
    experiment, start = self._experiment, self._options.start
    if start == 'random':
      phase1 = range(1, experiment.config.training.phase1_rounds + 1)
      return Cost() - experiment.trainer.cost_of_rounds(experiment.everyone, phase1)
    if start == 'clustering':
      return equal_cost.of_start(experiment, _named(experiment, self._options.start_clustering))
    return Cost()

  def _started(self) -> State:
    """Returns where the method starts."""
    experiment, options = self._experiment, self._options
    clients = experiment.population.num_clients
    nothing = np.zeros(clients, np.int64)
    if options.start == 'clustering':
      given = _named(experiment, options.start_clustering).assignment
      starts = [experiment.unflatten(start) for start in client_signatures.start_weights(experiment, given)]
      return State(self._models(starts), given.own, nothing + self.first_round, given=True)
    if options.start == 'warm':
      weights = client_signatures.phase1_models(experiment)[self.first_round]
      starts = [self._noisy(weights, k) for k in range(options.num_clusters)]
    else:
      starts = [experiment.initial_weights(k) for k in range(options.num_clusters)]
    return State(self._models(starts), np.zeros((len(starts), clients)), nothing)

  def _models(self, starts: list[Weights]) -> tuple[Model, ...]:
    """Returns models that all remember as much, those too that no client will train: so a record can be taken apart."""
    return tuple(map(self._clients.model, starts))

  def _noisy(self, weights: Weights, position: int) -> Weights:
    """Returns weights with seeded noise; the first model has none, so that with one it is FedAvg gone on."""
    if position == 0:
      return weights
    generator = seeding.generator(self._clients.seed, 'warm start', position)
    scale = self._options.start_noise
    return tuple(
      (w + scale * np.sqrt(np.mean(np.square(w))) * generator.standard_normal(w.shape)).astype(np.float32)
      for w in weights
    )

  def _determinants(self, clustering: config_lib.ClusteringConfig) -> dict[str, Json]:
    start = self._start
    # Rounds of a method before it was changed are not gone on with.
    revision = self.method.revision_of(self._options)
    version: dict[str, Json] = {'revision': revision} if revision else {}
    if imports.is_path(clustering.method):
      version['code'] = clustering.code
    return version | {
      'method': {name: value for name, value in clustering.to_json().items() if name != 'name'},
      'clients': list(self._experiment.population.client_digests),
      'settings': self._experiment.settings,
      'start': digests.of_arrays([*(a for model in start.weights for a in model), start.membership]),
      'start_round': self.first_round,
    }

  def _empty(self) -> saved_rounds.Record:
    clients, models = self._experiment.population.num_clients, len(self._start.models)
    floats = ('validation_loss', 'test_loss')
    whole = ('validation_correct', 'test_correct')
    return {
      **{name: np.zeros((0, clients)) for name in floats},
      **{name: np.zeros((0, clients), np.int64) for name in whole},
      **{name: np.zeros(0) for name in ('train_loss', 'update_norm')},
      'dropped': np.zeros(0, np.int64),
      'cost': np.zeros((0, len(_COST)), np.int64),
      'shares': np.zeros((0, models, clients)),
    }

  def _tell(self, record: saved_rounds.Record, number: int) -> None:
    row = number - self.first_round - 1
    accuracy = record['validation_correct'][row] / self._experiment.population.validation.counts
    self._experiment.progress.update(accuracy=float(accuracy.mean()), loss=float(record['train_loss'][row]))


def _named(experiment: live_experiment_lib.Experiment, label: str) -> phase_files.Clusters:
  """Returns the clusters of another clustering of the run."""
  folder = experiment.folder
  return folder.load_finished(folder.clusters(label), phase_files.Clusters)


def _models(membership: np.ndarray) -> list[int]:
  """Returns the positions of the models that somebody has, in the order of the clusters."""
  used = np.flatnonzero(membership.any(axis=1))
  return used[ClusterAssignment.order_of(membership[used])].tolist()


def _notes(state: State, clustering: config_lib.ClusteringConfig, last: int) -> list[str]:
  """Returns what a reader must know: models without clients, collapse, and old memberships."""
  count, told = len(state.models), []
  taken = sum(map(membership_history.is_anybodys, state.membership))
  options = clustering.options
  told_number = clustering.rule.told_number(options)
  if taken < count and not membership_history.chooses_number(told_number, options.start, vars(options)):
    told.append(f'{plural(count - taken, "model")} of {count} ended without clients')
  if count > 1 and (state.membership == state.membership[:, :1]).all():
    told.append('all clients ended with one model: the method collapsed')
  old = last - state.since
  if old.any():
    told.append(
      f'memberships of {plural(int((old > 0).sum()), "client")} were estimated up to '
      f'{plural(int(old.max()), "round")} before the last one'
    )
  return told


def _arrays(state: State) -> list[np.ndarray]:
  """Returns the models one after the other, then what the server remembers of each."""
  weights = [array for model in state.models for array in model.weights]
  return weights + [array for model in state.models for array in model.memory]
