"""What a script or a notebook calls: an experiment, from its configuration to its results and its report."""

import dataclasses
import pathlib
import threading

from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import failures, main_job
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.phases import run_experiment as algorithm
from tff_cluster.storage import output_folders

# Files are locked for a process, not for a thread.
_one_at_a_time = threading.RLock()


def run_experiment(
  config: config_lib.ExperimentConfig,
  output_dir: str | pathlib.Path,
  store_dir: str | None = None,
  progress: live_experiment_lib.Progress | None = None,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
  export_models: bool = True,
  report: bool = False,
) -> main_job.Done:
  """Runs an experiment, or what an earlier call left of it, and lets go of its folder.

  Call it as often as wanted, from any thread, and where an event loop runs, as in a notebook. Calls of several threads wait
  for each other. A KeyboardInterrupt ends the worker, and the next call goes on where it stopped.

  Args:
    config: The experiment.
    output_dir: Folder of the run; results.json and everything else of it lie there.
    store_dir: Folder of artifacts that several runs share; default: a folder of the run.
    progress: Where progress is shown; default: nowhere.
    machine: The workers. Changes no result.
    export_models: Whether the cluster models are written as .keras files too.
    report: Whether report.html and its figures are written too.

  Returns:
    The results, the client-rounds that they stand on, and where the report is.

  Raises:
    InputError: if the configuration, or the folder, does not fit.
    failures.ClusteringsFailed: if clusterings failed; the others are done, with their results in the folder, and its
      attribute `report` names the report where one was asked for.
    EnvironmentFault: if the machine does not play along.
  """
  config = config.validated()
  with _one_at_a_time, output_folders.held(output_dir) as folder:
    try:
      done = algorithm.run_experiment(config, folder, store_dir, progress, machine, export_models)
    except failures.ClusteringsFailed as failed:
      if report and failed.done:
        failed.report = _write_report(folder, progress)
      raise
    return dataclasses.replace(done, report=_write_report(folder, progress)) if report else done


def _write_report(folder: pathlib.Path, progress: live_experiment_lib.Progress | None) -> pathlib.Path:
  from tff_cluster.report import report as report_lib

  shown = progress or algorithm.Silent()
  figures = report_lib.num_figures(RunFolder(folder).load_config())
  with shown.phase('report', figures):
    return report_lib.write_report(folder, shown.update)
