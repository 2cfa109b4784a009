"""Opens an experiment for training: worker, clients, TFF context; and leaves nothing behind."""

import contextlib
from collections.abc import Iterator

from tff_cluster import config as config_lib
from tff_cluster import machine as machine_lib
from tff_cluster import population as population_lib
from tff_cluster.algorithms import experiment as experiment_lib
from tff_cluster.algorithms import references
from tff_cluster.cli import environment
from tff_cluster.data import new_clients, populate, saved
from tff_cluster.errors import InputError
from tff_cluster.federated import worker as worker_lib
from tff_cluster.models import lookup
from tff_cluster.run_folder import RunFolder


@contextlib.contextmanager
def opened(
  folder: RunFolder,
  config: config_lib.ExperimentConfig,
  progress: experiment_lib.Progress,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
  fold: tuple[int, int] | None = None,
) -> Iterator[experiment_lib.Experiment]:
  """Yields the experiment with a TFF context on a worker of its own; the worker ends with the block.

  Args:
    folder: Where the run lies. Call this only while nobody else works in it.
    config: The experiment.
    progress: Where progress is shown.
    machine: The workers. Changes no result.
    fold: (i, n) for fold i of n-fold cross-validation; see populate.build_population.

  Raises:
    InputError: if the data does not fit the configuration.
    EnvironmentFault: if the worker does not come up.
  """
  lookup.check(config.training.model)
  # Started first: it comes up while this process imports TensorFlow and reads the data.
  worker = worker_lib.start(machine.clients_in_parallel or environment.available_cores())
  try:
    population = clients(folder, config, fold)
    references.check(population, config)
    from tff_cluster.federated import context

    with context.connected(worker, machine):
      new = saved.load_population(folder.new_clients) if config.data.new_clients else None
      yield experiment_lib.Experiment(
        folder, config, population, progress, new, spread=bool(machine.addresses)
      )
  finally:
    worker.stop()


def clients(
  folder: RunFolder, config: config_lib.ExperimentConfig, fold: tuple[int, int] | None = None
) -> population_lib.Population:
  """Returns the clients of a run (or of a fold of it) that take part, made from the configuration once and saved in its folder.

  Clients that take no part (new_clients) are saved beside them.
  """
  if folder.population.exists():
    population = saved.load_population(folder.population)
    if config.data.data_file:
      kept = [population, *([saved.load_population(folder.new_clients)] if config.data.new_clients else [])]
      made = [each for each in _made(config, fold) if each is not None]
      if [each.digest for each in made] != [each.digest for each in kept]:
        raise InputError(
          f'--data_file={config.data.data_file} has other rows than the run in {folder.root} was started with; choose '
          'another --output_dir'
        )
    return population
  population, new = _made(config, fold)
  # First, so that whoever finds the participants finds these too.
  if new is not None:
    saved.save_population(new, folder.new_clients)
  saved.save_population(population, folder.population)
  return population


def _made(
  config: config_lib.ExperimentConfig, fold: tuple[int, int] | None
) -> tuple[population_lib.Population, population_lib.Population | None]:
  return new_clients.split(populate.build_population(config.data, fold), config.data)
