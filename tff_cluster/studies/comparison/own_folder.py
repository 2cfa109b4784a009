"""The output folder of a comparison: one experiment's, under whatever seeds, and nobody's files are written over."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment import config_file, run_claim
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import output_files

# The first is written first.
WRITTEN = ('comparison.json', 'comparison.csv', 'comparison.tex', 'index.html', 'atlas.html', 'figures')


def check(root: Path, config: ExperimentConfig, seeds: Sequence[int]) -> None:
  """Looks whether an experiment can be compared under these seeds in a folder.

  Other seeds that are there must be of the same experiment, and without clusterings and rules of Phase 3 that this one lacks, so that
  the page loses nothing. The runs of these seeds are claimed one by one (run_claim.claim_output_dir).

  Raises:
    InputError: if the folder has a run, another experiment, or files that a comparison would write over and none wrote.
  """
  run_claim.check_no_run(root)
  trained = {
    path.name: RunFolder(path) for path in sorted(root.glob('seed_*')) if RunFolder(path).has_trained()
  }
  for name in trained.keys() - {f'seed_{seed}' for seed in seeds}:
    if words := _difference(trained[name], config):
      raise InputError(
        f'{argument("output_dir", root)} holds another experiment: in {name} {words}; choose another folder'
      )
  output_files.check(root, WRITTEN, lambda content: bool(trained) and 'digests' in read(content))


def read(content: bytes) -> dict[str, Any]:
  """Returns the object of a JSON text; an empty one where it is none."""
  try:
    value = json.loads(content)
  except (ValueError, RecursionError):
    return {}
  return value if isinstance(value, dict) else {}


def _difference(folder: RunFolder, config: ExperimentConfig) -> str | None:
  there = config_file.read_unchecked(folder.config)
  # One that failed may be left out.
  unmade = {c.label for c in there.clusterings if not folder.clusters(c.label).exists()}
  return config_file.difference_beside_seeds(there.without(unmade), config)
