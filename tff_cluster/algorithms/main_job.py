"""All phases in a row, in one folder: what phases.run_all runs, and what ten lines of Python run."""

import dataclasses
import pathlib
from typing import Any

from tff_cluster import config as config_lib
from tff_cluster import machine as machine_lib
from tff_cluster.algorithms import assemble, new_clients, references, session, three_phase
from tff_cluster.algorithms import experiment as experiment_lib
from tff_cluster.run_folder import RunFolder


@dataclasses.dataclass(frozen=True, eq=False)
class Done:
  """A finished run.

  Attributes:
    results: As in results.json.
    asked, trained: Client-rounds that the results stand on, and those that had to be trained now.
    report: The report, where one was asked for.
  """

  results: dict[str, Any]
  asked: int
  trained: int
  report: pathlib.Path | None = None


def run(
  folder: RunFolder,
  config: config_lib.ExperimentConfig,
  progress: experiment_lib.Progress,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
  fold: tuple[int, int] | None = None,
  export_models: bool = True,
) -> Done:
  """Runs what is not finished, and returns the results.

  Args:
    folder, config, progress, machine, fold: See session.opened.
    export_models: Whether the cluster models are written as .keras files too.
  """
  population, asked, trained = None, 0, 0
  if not _trained(folder, config):
    with session.opened(folder, config, progress, machine, fold) as experiment:
      population = experiment.population
      three_phase.run_phase1(experiment)
      for clustering in config.clusterings:
        three_phase.prepare_clustering(experiment, clustering)
        three_phase.run_clustering(folder, clustering, config.training.seed)
      three_phase.run_baseline(experiment)
      references.run_local(experiment)
      for clustering in config.clusterings:
        three_phase.run_phase2(experiment, clustering.label, export_models)
        three_phase.run_phase3(experiment, clustering.label)
        new_clients.run_clustering(experiment, clustering)
      new_clients.run_baseline(experiment)
      asked, trained = experiment.asked, experiment.trained
  return Done(
    assemble.run_assembly(folder, population or session.clients(folder, config, fold)), asked, trained
  )


def _trained(folder: RunFolder, config: config_lib.ExperimentConfig) -> bool:
  finished = [folder.phase3(clustering.label) for clustering in config.clusterings]
  finished += [folder.local] if config.evaluation.local_training == 'yes' else []
  if config.data.new_clients:
    finished += [folder.new_clients_of(clustering.label) for clustering in config.clusterings]
    finished.append(folder.new_clients_baseline)
  return all(path.exists() for path in [folder.phase1, folder.baseline, *finished])
