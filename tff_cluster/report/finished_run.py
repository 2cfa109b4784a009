"""Reads the folder of a finished run: results.json and arrays.npz (schema: tff_cluster/experiment/results.py)."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tff_cluster.base.errors import InputError
from tff_cluster.data.population import MALICIOUS
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.report.figures import base
from tff_cluster.scorecard import cluster_contents, identical_clusterings
from tff_cluster.storage import files


@dataclasses.dataclass(frozen=True, eq=False)
class FinishedRun:
  """What a finished run left.

  Attributes:
    path: The folder.
    results: results.json.
    arrays: arrays.npz, or empty where the run has none.
  """

  path: Path
  results: results_lib.Results
  arrays: Mapping[str, np.ndarray]

  @property
  def client_ids(self) -> list[str]:
    return self.results.population.client_ids

  @property
  def truths(self) -> dict[str, np.ndarray]:
    """Planted memberships by name, float64[groups, clients]; the first is the main one."""
    return {n: np.asarray(t, np.float64) for n, t in self.results.population.truths.items()}

  @property
  def main_groups(self) -> tuple[str, np.ndarray | None]:
    """Name and int64[clients] of the first planted grouping in which every client has one group; ('', None) without.

    Who is malicious is no group of clients with like rows.
    """
    planted = {name: truth for name, truth in self.truths.items() if name != MALICIOUS}
    disjoint = [(n, g) for n, t in planted.items() if (g := base.labels_of(t)) is not None]
    return disjoint[0] if disjoint else ('', None)

  @property
  def label_counts(self) -> np.ndarray:
    """int64[clients, classes], training rows by label."""
    return np.asarray(self.results.population.label_counts, np.int64)

  def membership(self, clustering: Clustering) -> np.ndarray:
    """Returns float64[clusters, clients] of one of the run's clusterings, rows in its order."""
    return cluster_contents.membership(self.results, clustering)

  def shares(self, clustering: Clustering) -> np.ndarray:
    """Returns float64[clusters, clients], what clients have of each of their clusters; 1 for members where that is not told."""
    return cluster_contents.shares(self.results, clustering)

  def ways(self, clustering: Clustering) -> np.ndarray | None:
    """Returns float32[rounds, models, clients], the clients' shares after each round of a method that alternates; None if unknown."""
    found = clustering.alternation
    if found is None:
      return None
    return self.array(f'memberships_{clustering.label}', found.rounds, found.num_models, len(self.client_ids))

  def clustered(self, clustering: Clustering) -> np.ndarray:
    """Returns bool[clients], who was clustered: all but those whose updates were not finite."""
    excluded = set(clustering.excluded)
    return np.array([client_id not in excluded for client_id in self.client_ids], bool)

  def geometry(self, kind: str) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Returns which clients have finite signatures, their distances and their places in the plane.

    Args:
      kind: 'weights' or 'updates'.

    Returns:
      bool[clients], float[shown, shown] and float[shown, 2]; None for what is not there or does not fit.
    """
    # A recursion clusters other updates than those of the geometry.
    every = [part for c in self.results.clusterings for part in identical_clusterings.parts(c)]
    at_once = [c for c in every if c.signature == kind and c.splits is None]
    shown = np.logical_and.reduce([self.clustered(c) for c in at_once])
    shown = np.broadcast_to(shown, len(self.client_ids))
    distances, positions = self.arrays.get(f'distances_{kind}'), self.arrays.get(f'embedding_{kind}')
    if positions is not None and positions.shape == (len(shown), 2):
      shown = shown & np.isfinite(positions).all(axis=1)  # Oracles, and methods that train, leave nobody out.
    if distances is not None:
      fits = distances.shape == (len(shown), len(shown))
      distances = distances[np.ix_(shown, shown)] if fits else None
    if positions is not None:
      positions = positions[shown] if positions.shape == (len(shown), 2) else None
    whole = [
      array if array is not None and np.isfinite(array).all() else None for array in (distances, positions)
    ]
    return shown, whole[0], whole[1]

  def array(self, name: str, *shape: int) -> np.ndarray | None:
    """Returns the array of this name and shape, or None: a report goes without what is not there."""
    found = self.arrays.get(name)
    return None if found is None or found.shape != shape or not np.isfinite(found).all() else found


def read_run(path: Path) -> FinishedRun:
  """Reads a run folder.

  Raises:
    InputError: where there are no finished results, or they are of another schema.
    EnvironmentFault: where results.json or arrays.npz is damaged.
  """
  source = path / 'results.json'
  try:
    results = results_lib.read(source)
  except FileNotFoundError:
    raise InputError(f'{source}: no such file; give the output_dir of a finished run') from None
  except OSError as error:
    raise InputError(f'{source}: {error.strerror or error}; give the output_dir of a finished run') from None
  try:
    arrays = files.load_arrays(path / 'arrays.npz')
  except FileNotFoundError:
    arrays = {}
  return FinishedRun(path, results, arrays)
