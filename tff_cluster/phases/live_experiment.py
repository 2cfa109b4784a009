"""What the phases of one experiment share: its folder, its clients and, once needed, its trainer."""

import contextlib
import dataclasses
import functools
import importlib.metadata
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from tff_cluster.base import environment, seeding
from tff_cluster.base.types import Json, Weights
from tff_cluster.clustering import trained as trained_lib
from tff_cluster.data import population as population_lib
from tff_cluster.engine import jobs, side_by_side
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import run_folder
from tff_cluster.experiment.measured import Spent
from tff_cluster.phases import early_checks, model_export
from tff_cluster.storage import artifacts, saved_rounds
from tff_cluster.storage import files as files_lib

if TYPE_CHECKING:
  import tensorflow as tf

  from tff_cluster.federated import client_work as client_work_lib
  from tff_cluster.federated import optimizers as optimizers_lib
  from tff_cluster.federated import tff_computations
  from tff_cluster.federated import trainer as trainer_lib
  from tff_cluster.federated import trajectory as trajectory_lib

_Item = TypeVar('_Item')
_Result = TypeVar('_Result')
# The settings that a model's scores depend on, beside its weights; `graph` is that of a user's model.
_OF_MODEL = ('engine', 'packages', 'architecture', 'graph', 'loss')

# What this process has built, see Experiment.trainer: building takes seconds.
_computations: dict[tuple[object, ...], 'tff_computations.Computations'] = {}
# Models that this process has compared with Keras, and on which data: each fold of a run has a store of its own.
_checked: set[tuple[str, config_lib.DataConfig]] = set()


class Tell(Protocol):
  """Takes what a phase found."""

  def __call__(self, words: str | None = None, accuracy: float | None = None) -> None: ...


class Figures(Protocol):
  """Takes what a phase found, and returns what it has spent so far."""

  def __call__(self, words: str | None = None, accuracy: float | None = None) -> Spent: ...


class Progress(Protocol):
  """Shows how far a run is; cli.progress.Progress is one, and says what the arguments mean."""

  def run(self, name: str, number: int, count: int) -> contextlib.AbstractContextManager[object]: ...

  def plan(self, weights: Mapping[str, float]) -> None: ...

  def phase(self, name: str, steps: int = 1) -> contextlib.AbstractContextManager[Tell]: ...

  def stage(self, name: str, total: int) -> contextlib.AbstractContextManager[object]: ...

  def update(self, n: int = 1, **figures: float) -> None: ...

  def note(self, words: str) -> None: ...


@dataclasses.dataclass(eq=False)
class Experiment:
  """An experiment on disk.

  Attributes:
    folder: Where it lies.
    config: What it is.
    population: Its clients.
    progress: Where progress is shown.
    new_clients: Clients that take no part in it; None where there are none.
    workers: Who has the clients work.
    at_once: Pieces of work, such as clusters, that train at the same time.
    machine: What those workers run on, and how patient they are.
    is_estimate: Whether this is a dry run, which looks at the store of a run and writes nothing there.
    asked, trained: Client-rounds asked for and trained so far in this process.
    spent_ahead: Seconds, and client-rounds trained, of phases whose training was done before they began (training_ahead.py).
  """

  folder: run_folder.RunFolder
  config: config_lib.ExperimentConfig
  population: population_lib.Population
  progress: Progress
  new_clients: population_lib.Population | None = None
  workers: jobs.Workers = dataclasses.field(
    default_factory=lambda: jobs.OneMachine(side_by_side.Slots(environment.available_cores()))
  )
  at_once: int = dataclasses.field(default_factory=environment.available_cores)
  machine: machine_lib.Machine = machine_lib.ONE_WORKER
  is_estimate: bool = False
  asked: int = 0
  trained: int = 0
  spent_ahead: dict[str, tuple[float, int]] = dataclasses.field(default_factory=dict)
  _initial: dict[int, Weights] = dataclasses.field(default_factory=dict)
  _counting: threading.Lock = dataclasses.field(default_factory=threading.Lock)

  @functools.cached_property
  def store(self) -> artifacts.Store:
    return artifacts.Store(self.folder.store)

  @functools.cached_property
  def keras_model(self) -> 'tf.keras.Model':
    """The model with its seeded initial weights."""
    return self._made_model()

  @functools.cached_property
  def exports(self) -> model_export.Exports:
    """Models as .keras files."""
    return model_export.Exports(lambda: self.keras_model)

  def initial_weights(self, position: int) -> Weights:
    """Returns seeded initial weights; those at position 0 are the experiment's own."""
    if position == 0:
      return self.trainer.computations.model.weights
    # Every clustering that alternates asks for the same ones, in both phases; to make a Keras model takes a tenth of a second.
    if position not in self._initial:
      seed = seeding.integer_seed(self.config.training.seed, 'initial models', position)
      self._initial[position] = tuple(v.numpy() for v in self._made_model(seed).trainable_weights)
    return self._initial[position]

  def _made_model(self, seed: int | None = None) -> 'tf.keras.Model':
    from tff_cluster.models import build

    training = self.config.training
    return build.build(
      training.model,
      self.population.input_shape,
      self.population.num_classes,
      training.seed if seed is None else seed,
      training.initializer,
    )

  @functools.cached_property
  def trainer(self) -> 'trainer_lib.Trainer':
    """The trainer. Needs an installed TFF context (engine.context.connected)."""
    computations = self._computations()
    parameters = computations.model.num_parameters
    early_checks.check_memory(self.config, self.population, self.machine, parameters)
    return self._trainer(self.population, computations)

  def _computations(self) -> 'tff_computations.Computations':
    """Returns the computations; experiments of one process that differ in their initial weights only share them."""
    from tff_cluster.federated import aggregators, client_work, tff_computations

    training, dtype = self.config.training, self.population.train.x.dtype
    local, server = optimizers_of(training)
    key = (self.keras_model.to_json(), dtype.name, local, server, training.aggregator, training.loss)
    if training.model in config_lib.MODELS and key in _computations:
      return _computations[key].with_weights([v.numpy() for v in self.keras_model.trainable_weights])
    model = client_work.model_from_keras(self.keras_model, dtype, training.loss == 'double_softmax')
    if training.model not in config_lib.MODELS:
      self._check(model)
    made = tff_computations.Computations(model, local, server, aggregators.build(training.aggregator))
    # Only of models that are known to be told apart by their JSON: a user's layer may hide anything from it.
    if training.model in config_lib.MODELS:
      _computations[key] = made
    return made

  def _check(self, model: 'client_work_lib.Model') -> None:
    """Compares what a model computes in the worker with Keras, once for all runs that share the store, and all folds."""
    asked = {'engine': environment.ENGINE, 'graph': model.graph, 'worker': environment.about_worker()}
    if self.is_estimate:
      place = self.store.place('model', asked)
      if not (place / 'verdict.json').exists():
        self._compare(model, place.name)
      return
    folder = self.store.artifact('model', asked)
    verdict = folder / 'verdict.json'
    with self.store.working_on(folder):
      if verdict.exists():
        _checked.add((folder.name, self.config.data))
      else:
        self._compare(model, folder.name)
        files_lib.save_json(verdict, 'computes in the worker what Keras computes')

  def _compare(self, model: 'client_work_lib.Model', name: str) -> None:
    """Compares a model with Keras, once a process for each name and data."""
    from tff_cluster.federated import model_check

    if (name, self.config.data) not in _checked:
      x, y = (rows[: model_check.MOST_ROWS] for rows in (self.population.train.x, self.population.train.y))
      double_softmax = self.config.training.loss == 'double_softmax'
      model_check.check(self._made_model, model, x, y, double_softmax, self.machine)
    _checked.add((name, self.config.data))

  @functools.cached_property
  def new_client_trainer(self) -> 'trainer_lib.Trainer':
    """The trainer of the clients that take no part; it shares what was compiled."""
    assert self.new_clients is not None
    return self._trainer(self.new_clients, self.trainer.computations)

  def _trainer(
    self, population: population_lib.Population, computations: 'tff_computations.Computations'
  ) -> 'trainer_lib.Trainer':
    from tff_cluster.federated import trainer

    training = self.config.training
    return trainer.Trainer(
      population, computations, training.local_epochs, training.cohort_fraction, training.seed, self.workers
    )

  @functools.cached_property
  def settings(self) -> dict[str, Json]:
    """Every training setting that a round depends on, beside the clients and the start weights."""
    training = self.config.training
    return {
      'engine': environment.ENGINE,
      'packages': {name: importlib.metadata.version(name) for name in ('tensorflow', 'tensorflow-federated')},
      'architecture': self.keras_model.to_json(),
      'batch_size': training.batch_size,
      'local_epochs': training.local_epochs,
      'learning_rate': training.learning_rate,
      **training.optimization,
      'cohort_fraction': training.cohort_fraction,
      'seed': training.seed,
      # The mean says nothing, so that what was trained before there was a choice is found.
      **({} if training.aggregator == 'mean' else {'aggregator': training.aggregator}),
      # A layer of one's own can change and keep its name.
      **({} if training.model in config_lib.MODELS else {'graph': self.trainer.computations.model.graph}),
    }

  @property
  def model_settings(self) -> dict[str, Json]:
    """Those of the settings that a model's scores depend on, beside its weights."""
    return {name: value for name, value in self.settings.items() if name in _OF_MODEL}

  @functools.cached_property
  def everyone(self) -> np.ndarray:
    """int64[clients], all positions."""
    return np.arange(self.population.num_clients)

  def trajectory(self, members: np.ndarray, start: Weights, start_round: int) -> 'trajectory_lib.Trajectory':
    """Returns the trajectory of some clients from a model on; arguments as for federated.trajectory.Trajectory."""
    from tff_cluster.federated import trajectory

    return trajectory.Trajectory(self.trainer, self.store, self.settings, members, start, start_round)

  def train(
    self,
    name: str,
    members: np.ndarray,
    start: Weights,
    start_round: int,
    last_round: int,
    keep: Collection[int] = (),
    leave: Collection[int] = (),
  ) -> 'trajectory_lib.Outcome':
    """Returns federated.trajectory.run's outcome, shown as progress and logged as metrics/NAME.csv; it is to be counted (`count`).

    Args:
      name: What the stage is called.
      members, start, start_round: See `trajectory`.
      last_round, keep, leave: See federated.trajectory.run.
    """
    from tff_cluster.federated import metrics_log, trajectory

    rounds = metrics_log.RoundLog(self.folder.metrics(name), self.folder.tensorboard(name))
    with self.progress.stage(name, last_round - start_round):

      def on_round(number: int, figures: dict[str, float]) -> None:
        rounds.release(number, figures)
        self.progress.update(accuracy=figures['validation_accuracy'], loss=figures['train_loss'])

      asked = self.trajectory(members, start, start_round)
      return trajectory.run(asked, last_round, keep, on_round, leave=leave)

  def count(self, outcome: 'trajectory_lib.Outcome', counted: int = 0) -> None:
    """Adds what a trajectory cost to what this process has asked for and trained.

    Args:
      outcome: Its.
      counted: Client-rounds of it that were counted with an earlier phase.
    """
    with self._counting:
      self.asked += outcome.cost.client_rounds - counted
      self.trained += outcome.client_rounds_trained

  def each(self, work: Callable[[int], _Result], positions: Iterable[int]) -> dict[int, _Result]:
    """Returns what work gives for each position, such as a cluster's, several side by side (engine/side_by_side.py)."""
    return dict(self.each_of(work, positions))

  def each_of(self, work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[tuple[_Item, _Result]]:
    """Returns items with what work gives for each, several side by side."""
    _ = self.trainer  # Built once, by this thread.
    return side_by_side.each(work, items, self.at_once)

  def load(self, saved: saved_rounds.Checkpoints, phase: str, *rounds: int) -> dict[int, Weights]:
    """Returns models that a finished phase kept, by round number. Trains nothing.

    Args:
      saved: Which they are.
      phase: The phase that kept them, and makes them again.
      rounds: Those of the rounds that are wanted; default: all.

    Raises:
      MissingArtifact: if one of them is not there, or not whole.
    """
    like = self.trainer.computations.model.weights
    return saved_rounds.load(self.store, saved, like, self._remedy(phase), rounds)

  def load_each(self, several: Sequence[saved_rounds.Checkpoints], phase: str, number: int) -> list[Weights]:
    """Returns the model after a round of each of several that a finished phase kept; see `load`."""
    like = self.trainer.computations.model.weights
    return saved_rounds.load_each(self.store, several, number, like, self._remedy(phase))

  def _remedy(self, phase: str) -> str:
    return f'run {self.folder.command(phase)}'

  def idle_first(
    self, members: Sequence[np.ndarray], starts: Sequence[Weights], start_round: int
  ) -> Iterator[int]:
    """Yields the positions of clusters, those last that another run on the same store is training just now.

    Args:
      members: int64[members] of each cluster.
      starts: The weights from which each cluster starts.
      start_round: The round that they come from.
    """
    clusters = zip(members, starts, strict=True)
    return self.store.idle_first(
      [self.trajectory(cluster, start, start_round).place for cluster, start in clusters]
    )

  def flatten(self, weights: Weights) -> np.ndarray:
    """Returns float32[features], a model's weights one after the other."""
    return trained_lib.flatten(weights)

  def unflatten(self, vector: np.ndarray) -> Weights:
    """Returns the weights that flatten made a vector of."""
    like = self.trainer.computations.model.weights
    pieces = np.split(vector, np.cumsum([w.size for w in like])[:-1])
    return tuple(piece.reshape(w.shape) for piece, w in zip(pieces, like, strict=True))

  @contextlib.contextmanager
  def timed(self, name: str | None = None, steps: int = 1) -> Iterator[Figures]:
    """Yields a function that gives seconds and client-rounds since the block began, which is shown as a phase.

    What that function is given, `accuracy` or `words`, is shown as what the phase found.

    Args:
      name, steps: See cli.progress.Progress.phase; None: it is part of one.
    """
    start, asked, trained = time.monotonic(), self.asked, self.trained
    with contextlib.nullcontext() if name is None else self.progress.phase(name, steps) as tell:

      def figures(words: str | None = None, accuracy: float | None = None) -> Spent:
        if tell is not None:
          tell(words, accuracy)
        seconds, before = self.spent_ahead.pop(name or '', (0.0, 0))
        return Spent(time.monotonic() - start + seconds, self.asked - asked, self.trained - trained + before)

      yield figures


def optimizers_of(
  training: config_lib.TrainingConfig,
) -> 'tuple[optimizers_lib.Local, optimizers_lib.Server]':
  """Returns how clients and server step."""
  from tff_cluster.federated import optimizers

  local = optimizers.Local(
    training.learning_rate,
    training.batch_size,
    training.client_optimizer,
    training.momentum,
    training.weight_decay,
    training.proximal_mu,
    training.learning_rate_decay,
  )
  server = optimizers.Server(
    training.server_learning_rate, training.server_optimizer, training.server_momentum
  )
  return local, server
