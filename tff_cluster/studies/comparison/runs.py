"""One experiment with several seeds, so that its clusterings can be compared beyond one draw."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from tff_cluster.base.errors import InputError, argument
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import cost_estimates, main_job
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.studies import runs


def run(
  config: config_lib.ExperimentConfig,
  seeds: Sequence[int],
  root: Path,
  store_dir: Path,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
  runs_in_parallel: int = 1,
) -> list[tuple[int, main_job.Done]]:
  """Runs what is not finished of each seed, in ROOT/seed_SEED, and returns seeds and results.

  A seed draws the partition, the initial weights, the cohorts and the visit orders; all clusterings of a seed stand on
  the same Phase 1.

  Args:
    config: The experiment; its own seeds do not matter.
    seeds: One run for each.
    root: Folder below which the runs lie.
    store_dir: Folder of the artifacts that they share.
    progress, machine, runs_in_parallel: See studies.runs.run_all.

  Raises:
    InputError: if the experiment cross-validates, which has seeds of its own kind.
  """
  done = runs.run_all(plan(config, seeds, root), store_dir, progress, machine, runs_in_parallel)
  return list(zip(seeds, done, strict=True))


def plan(config: config_lib.ExperimentConfig, seeds: Sequence[int], root: Path) -> list[cost_estimates.Run]:
  """Returns the run of each seed; arguments and errors as for `run`."""
  if config.evaluation.num_folds:
    raise InputError(
      f'{argument("num_folds", config.evaluation.num_folds)} does not apply to a comparison, which repeats with other seeds'
    )
  return [
    cost_estimates.Run(
      f'seed {seed}',
      dataclasses.replace(
        config,
        data=dataclasses.replace(config.data, data_seed=seed),
        training=dataclasses.replace(config.training, seed=seed),
      ),
      RunFolder(root / f'seed_{seed}'),
    )
    for seed in seeds
  ]
