"""One experiment with several seeds, so that its clusterings can be compared beyond one draw."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import cost_estimates


def plan(config: config_lib.ExperimentConfig, seeds: Sequence[int], root: Path) -> list[cost_estimates.Run]:
  """Returns the run of each seed, in ROOT/seed_SEED.

  A seed draws the partition, the initial weights, the cohorts and the visit orders; all clusterings of a seed stand on
  the same Phase 1.

  Args:
    config: The experiment; its own seeds do not matter.
    seeds: One run for each.
    root: Folder below which the runs lie.

  Raises:
    InputError: if the experiment cross-validates, which has seeds of its own kind.
  """
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
