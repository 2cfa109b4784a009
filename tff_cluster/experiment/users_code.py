"""Code of a user's that was edited after a run used it: what the folder holds is not what that code gives now."""

from collections.abc import Sequence

from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.models import lookup


def check_model(folder: RunFolder, name: str) -> None:
  """Raises InputError where a user's model was changed since Phase 1 of a run trained it."""
  if (code := lookup.code(name)) is None or not folder.phase1.exists():
    return
  if folder.load_finished(folder.phase1, phase_files.Phase1).model_code not in (None, code):
    raise InputError(
      f'{argument("model", name)} was changed since the run in {folder.root} trained it; choose another {argument("output_dir")}'
    )


def check_clusterings(folder: RunFolder, clusterings: Sequence[ClusteringConfig]) -> None:
  """Raises InputError where a user's method was changed since it made the clusters of one of these labels."""
  for clustering in clusterings:
    path = folder.clusters(clustering.label)
    if (code := clustering.code) is None or not path.exists():
      continue
    if folder.load_finished(path, phase_files.Clusters).code not in (None, code):
      raise InputError(
        f'{argument("clustering", clustering.method)} was changed since it made the clusters of {clustering.label} in {folder.root}; give it '
        f'another name=, or choose another {argument("output_dir")}'
      )
