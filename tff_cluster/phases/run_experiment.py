"""An experiment from its configuration to its results, in one call."""

import contextlib
import pathlib
from collections.abc import Iterator, Mapping

from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import assembly, cross_validation, failures, main_job, session
from tff_cluster.phases import live_experiment as live_experiment_lib


class Silent:
  """A progress that shows nothing."""

  @contextlib.contextmanager
  def run(self, name: str, number: int, count: int) -> Iterator[None]:
    yield

  def plan(self, weights: Mapping[str, float]) -> None:
    pass

  @contextlib.contextmanager
  def phase(self, name: str, steps: int = 1) -> Iterator[live_experiment_lib.Tell]:
    def tell(words: str | None = None, accuracy: float | None = None) -> None:
      pass

    yield tell

  @contextlib.contextmanager
  def stage(self, name: str, total: int) -> Iterator['Silent']:
    yield self

  def update(self, n: int = 1, **figures: float) -> None:
    pass

  def note(self, words: str) -> None:
    pass


def run_experiment(
  config: config_lib.ExperimentConfig,
  output_dir: str | pathlib.Path,
  store_dir: str | None = None,
  progress: live_experiment_lib.Progress | None = None,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
  export_models: bool = True,
) -> main_job.Done:
  """Runs all phases and, where the configuration asks for them, the folds; goes on where an earlier call stopped.

  Args:
    config: The experiment.
    output_dir: Folder of the run; results.json and everything else of it lie there.
    store_dir: Folder of artifacts that several runs share; default: a folder of the run.
    progress: Where progress is shown; default: nowhere.
    machine: The workers. Changes no result.
    export_models: Whether the cluster models are written as .keras files too.

  Returns:
    The results, and the client-rounds that they stand on.

  Raises:
    InputError: if the configuration, or the folder, does not fit.
    failures.ClusteringsFailed: if clusterings failed; the others are done, with their results in the folder.
    EnvironmentFault: if the machine does not play along.
  """
  claim = run_claim.claim_output_dir(output_dir, config.validated(), store_dir)
  folder, config, progress = claim.folder, claim.config, progress or Silent()
  done = run_with_folds(folder, config, progress, machine, export_models, claim)
  if done.failed:
    raise failures.ClusteringsFailed(done.failed, [c.label for c in folder.load_config().clusterings])
  return done


def run_with_folds(
  folder: RunFolder,
  config: config_lib.ExperimentConfig,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine,
  export_models: bool = True,
  claim: run_claim.Claim | None = None,
) -> main_job.Done:
  """Runs the experiment and its folds in a folder that this process holds; arguments and result as those of main_job.run."""
  done = main_job.run(folder, config, progress, machine, export_models=export_models, claim=claim)
  if config.evaluation.num_folds:
    config = folder.load_config()
    asked, trained, failed = cross_validation.run(folder, config, progress, machine)
    failures.drop(folder, config, failed)
    results = assembly.run_assembly(folder, session.clients(folder, config))
    done = main_job.Done(results, done.asked + asked, done.trained + trained, {**done.failed, **failed})
  return done
