"""k-fold cross-validation (Rohith et al. 2020, section 4.1): the whole experiment once a fold.

Each client's own rows are cut in k parts; fold i measures on part i what was trained on the others.
The folds differ in data only: seeds, model and settings are the experiment's.
"""

from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.phases import main_job
from tff_cluster.storage import files


def is_done(folder: RunFolder, config: config_lib.ExperimentConfig) -> bool:
  """Tells whether there is nothing left to train or measure in a run and in its folds."""
  return main_job.is_done(folder, config) and main_job.has_folds(folder, config)


def run(
  folder: RunFolder,
  config: config_lib.ExperimentConfig,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
) -> tuple[int, int, dict[str, Exception]]:
  """Runs the folds that are not finished; fold i lies in folds/i below the run's folder.

  Args:
    folder, config, progress, machine: See session.opened.

  Returns:
    Client-rounds asked for and trained, and what went wrong with clusterings that failed in a fold, by label: no fold has
    these.
  """
  folds = config.evaluation.num_folds
  plain = config.of_fold
  asked, trained = 0, 0
  failed: dict[str, Exception] = {}
  for index in range(folds):
    fold = folder.fold(index)
    files.save_json(fold.config, plain.to_json())
    files.save_json(fold.environment, files.load_json(folder.environment))
    with progress.run('fold', index + 1, folds):
      done = main_job.run(fold, plain, progress, machine, fold=(index, folds), export_models=False)
    asked, trained = asked + done.asked, trained + done.trained
    plain = plain.without(done.failed)
    failed |= done.failed
  if failed:
    # The folds before have what failed later.
    again = run(folder, config.without(failed), progress, machine)
    asked, trained, failed = asked + again[0], trained + again[1], failed | again[2]
  return asked, trained, failed
