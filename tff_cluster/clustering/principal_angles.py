"""Principal angles between subspaces that clients' rows span (Björck and Golub 1973).

The cosines of the principal angles of two subspaces are the singular values of A' B, where the columns of A and B are
orthonormal bases of them. They depend neither on the bases nor on the signs of their vectors. Angles below about 1e-6
degrees are lost in the rounding of their cosines.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import threadpoolctl

# Orthonormal vectors by label, float64[features, vectors], at least one each.
Subspaces = dict[int, np.ndarray]


def subspaces(rows: Iterable[tuple[np.ndarray, np.ndarray]], count: int) -> list[Subspaces]:
  """Returns the first left singular vectors of each client's rows, label by label; rows are columns for that.

  Args:
    rows: Of each client x [rows, ...] and y int[rows].
    count: Vectors a label; fewer come back where its rows span fewer, and a label whose rows are all zero is left out.
  """
  found = []
  with threadpoolctl.threadpool_limits(limits=1):
    for x, y in rows:
      columns = np.asarray(x, np.float64).reshape(len(x), -1).T
      bases = {int(label): _basis(columns[:, y == label])[:, :count] for label in np.unique(y)}
      found.append({label: basis for label, basis in bases.items() if basis.shape[1]})
  return found


def proximity(ours: Sequence[Subspaces], theirs: Sequence[Subspaces], measure: str) -> np.ndarray:
  """Returns how far clients' subspaces are apart, float64[ours, theirs], in degrees.

  Args:
    ours, theirs: Clients.
    measure: 'smallest': the smallest principal angle between the spans of all labels. 'sum': all principal angles between the
      subspaces of a label, added over labels. 'trace': the angles between vectors of one label and rank, each with the
      sign in which they are nearer, likewise. What has no partner, for want of the label or of rows, is at 90 degrees.
  """
  sides = [list(ours), list(theirs)]
  total = np.zeros((len(ours), len(theirs)))
  with threadpoolctl.threadpool_limits(limits=1):
    if measure == 'smallest':
      sides = [[{0: _basis(np.hstack([*each.values()]))} if each else {} for each in side] for side in sides]
    for label in sorted({label for side in sides for each in side for label in each}):
      bases = [[each.get(label) for each in side] for side in sides]
      (left, own), (right, others) = _padded(bases)
      for row, basis in enumerate(left):
        angles = _angles(basis, right, measure == 'trace')
        partners = np.arange(angles.shape[1]) < np.maximum(own[row], others)[:, None]
        total[row] += angles[:, 0] if measure == 'smallest' else np.where(partners, angles, 0.0).sum(axis=1)
  return total


def _angles(basis: np.ndarray, others: np.ndarray, by_rank: bool) -> np.ndarray:
  """Returns float64[others, vectors] in degrees, of float64[features, vectors] to float64[others, features, vectors]."""
  products = basis.T @ others
  if by_rank:
    cosines = np.abs(np.diagonal(products, axis1=1, axis2=2))
  else:
    cosines = np.linalg.svd(products, compute_uv=False)
  return np.degrees(np.arccos(np.minimum(cosines, 1.0)))


def _padded(sides: Sequence[Sequence[np.ndarray | None]]) -> list[tuple[np.ndarray, np.ndarray]]:
  """Returns each side's bases as float64[clients, features, vectors], with zeros for vectors that one lacks, and how many it has."""
  there = [basis for side in sides for basis in side if basis is not None]
  features, width = len(there[0]), max(basis.shape[1] for basis in there)
  found = []
  for side in sides:
    padded = np.zeros((len(side), features, width))
    counts = np.array([0 if basis is None else basis.shape[1] for basis in side])
    for row, basis, count in zip(padded, side, counts, strict=True):
      row[:, :count] = 0.0 if basis is None else basis
    found.append((padded, counts))
  return found


def _basis(columns: np.ndarray) -> np.ndarray:
  """Returns the left singular vectors of float64[features, columns], largest singular value first, as many as its rank."""
  vectors, values, _ = np.linalg.svd(columns, full_matrices=False)
  return vectors[:, values > values[0] * max(columns.shape) * np.finfo(np.float64).eps]
