"""Opens an experiment for training: worker, clients, TFF context; and leaves nothing behind."""

import contextlib
import gc
import os
from collections.abc import Iterator

from tff_cluster.base import environment
from tff_cluster.base.errors import InputError, argument
from tff_cluster.data import new_clients, populate, saved
from tff_cluster.data import population as population_lib
from tff_cluster.engine import jobs, side_by_side
from tff_cluster.engine import machine as machine_lib
from tff_cluster.engine import worker as worker_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files, run_claim, users_code
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.models import lookup
from tff_cluster.phases import early_checks
from tff_cluster.phases import live_experiment as live_experiment_lib


@contextlib.contextmanager
def opened(
  folder: RunFolder,
  config: config_lib.ExperimentConfig,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
  fold: tuple[int, int] | None = None,
  claim: run_claim.Claim | None = None,
) -> Iterator[live_experiment_lib.Experiment]:
  """Yields the experiment with a TFF context on a worker of its own; the worker ends with the block.

  Args:
    folder: Where the run lies. Call this only while nobody else works in it.
    config: The experiment.
    progress: Where progress is shown.
    machine: The workers of this machine, and the cluster beside it. Changes no result.
    fold: (i, n) for fold i of n-fold cross-validation; see populate.build_population.
    claim: Written once data, model and sizes are known to fit.

  Raises:
    InputError: if the data does not fit the configuration.
    EnvironmentFault: if the worker does not come up, or the cluster is not there.
  """
  lookup.check(config.training.model)
  users_code.check_model(folder, config.training.model)
  # Started first: it comes up while this process imports TensorFlow and reads the data.
  worker = worker_lib.start(machine.clients_in_parallel or environment.available_cores())
  # An experiment and its parts know each other, and Python looks for such circles among old objects rarely: the models of the
  # folds and seeds before would pile up.
  gc.collect()
  with contextlib.ExitStack() as left:
    left.callback(worker.stop)
    workers = left.enter_context(_workers(machine, worker, progress))
    fresh = claim is not None and claim.there is None
    population, new = _made(config, fold) if fresh else _clients(folder, config, fold)
    early_checks.check_oracles(config, population)
    if config.evaluation.num_folds:
      populate.check_folds(population, config.evaluation.num_folds)
    from tff_cluster.engine import context

    with context.connected(worker, machine, config.training.model):
      experiment = live_experiment_lib.Experiment(
        folder,
        config,
        population,
        progress,
        new,
        workers,
        workers.at_once,
        machine,
      )
      if claim is not None and fresh:
        with claim.linked():
          _ = experiment.trainer  # What is wrong with the model or the sizes is told here.
      if claim is not None:
        claim.write()
      if fresh:
        _save(folder, population, new)
      yield experiment


@contextlib.contextmanager
def _workers(
  machine: machine_lib.Machine, worker: worker_lib.Worker, progress: live_experiment_lib.Progress
) -> Iterator[jobs.Workers]:
  """Yields who has clients work: the worker of this machine, or a cluster."""
  slots = side_by_side.Slots(worker.clients_in_parallel)
  if machine.cluster is None:
    yield jobs.OneMachine(slots)
    return
  # Imported where there is one, because it takes a second.
  from tff_cluster.engine import cluster

  with cluster.connected(machine, slots) as found:
    if found.dashboard is not None:
      progress.note(f'dashboard of the cluster: {found.dashboard}')
    yield found


def prepare(claim: run_claim.Claim) -> None:
  """Gives a run and its folds their clients and writes its claim, for who trains elsewhere; needs no worker.

  Raises:
    InputError: if the data does not fit the configuration.
  """
  lookup.check(claim.config.training.model)
  fresh = claim.there is None
  population, new = _made(claim.config, None) if fresh else _clients(claim.folder, claim.config, None)
  early_checks.check_oracles(claim.config, population)
  folds = claim.config.evaluation.num_folds
  if folds:
    populate.check_folds(population, folds)
  claim.write()
  if fresh:
    _save(claim.folder, population, new)
  for index in range(folds):
    clients(claim.folder.fold(index), claim.config, (index, folds))


def clients(
  folder: RunFolder, config: config_lib.ExperimentConfig, fold: tuple[int, int] | None = None
) -> population_lib.Population:
  """Returns the clients of a run (or of a fold of it) that take part, made from the configuration once and saved in its folder.

  Clients that take no part (new_clients) are saved beside them.
  """
  return _clients(folder, config, fold)[0]


def _clients(
  folder: RunFolder, config: config_lib.ExperimentConfig, fold: tuple[int, int] | None
) -> tuple[population_lib.Population, population_lib.Population | None]:
  """Returns the clients that take part and those that do not, None where there are none of these; see `clients`."""
  wanted = [folder.population, *([folder.new_clients] if config.data.new_clients else [])]
  kept = [saved.load_population(path) for path in wanted if path.exists()]
  # A file may have changed, unless it is not there, as where a run travels to.
  given = config.data.data_file
  if len(kept) == len(wanted) and not (given and os.path.exists(given)):
    return kept[0], (kept[1] if config.data.new_clients else None)
  made = _made(config, fold)
  digests = {path: each.digest for path, each in zip(wanted, made, strict=False) if each is not None}
  known = {path: each.digest for path, each in zip((p for p in wanted if p.exists()), kept, strict=True)}
  if folder.population not in known and folder.phase1.exists():
    # Its phases came from elsewhere without the clients (studies/kept/runs_archive.py).
    known[folder.population] = folder.load_finished(folder.phase1, phase_files.Phase1).population
  if any(digests[path] != digest for path, digest in known.items()):
    given = (
      argument('data_file', config.data.data_file)
      if config.data.data_file
      else argument('dataset', config.data.dataset)
    )
    raise InputError(
      f'{given} has other rows than the run in {folder.root} was started with; choose another {argument("output_dir")}'
    )
  _save(folder, *made)
  return made


def _save(
  folder: RunFolder, population: population_lib.Population, new: population_lib.Population | None
) -> None:
  # First, so that whoever finds the participants finds these too.
  for each, path in ((new, folder.new_clients), (population, folder.population)):
    if each is not None and not path.exists():
      saved.save_population(each, path)


def _made(
  config: config_lib.ExperimentConfig, fold: tuple[int, int] | None
) -> tuple[population_lib.Population, population_lib.Population | None]:
  return new_clients.split(populate.build_population(config.data, fold), config.data)
