"""The split of Clustered Federated Learning (Sattler et al. 2019, eq. 6): two halves that are least alike.

Clients are parted so that the highest cosine similarity of two updates across the halves is as low as it can be.
Prim's algorithm takes the clients in, always the one that is most similar to a client inside. Cutting its order
before a client gives halves whose highest similarity across is the one that this client was taken in by, and no
halves have less than the lowest of these: on the way from one half to the other, Prim's algorithm crosses them. The
halves are those of single linkage before its last merge.

Departures and choices: the paper does not say which halves are meant where several have the lowest similarity
across. The cut before the last such client is taken here, so that one half cannot be parted at that similarity
again. The three guards of `guarded` are not in the paper; by default they forbid nothing.

`two_kinds` is not in the paper either: it tells where similarities contradict norms, and splits nothing. Its criterion:
  At a stationary point the updates sum to about nothing. Clients of one group then have updates of noise only, which point
  apart a little and anyhow; those of groups in conflict hold a part that their group shares and the others lack, so that every
  client has a partner far more alike than any two clients across are, and these pull apart (similarity of at most about 0).
  So the gap and the similarity across must be those that told groups from noise and from skewed labels (docs/results/sattler2019.md), no half
  may be one client, which noise alone cuts off most easily, and the gap must be several standard deviations of the
  similarities across: these would be of one kind if the halves were noise, so their spread is the noise's own scale.
  Fewer than six clients tell nothing: among five, one in twenty random orders of the similarities has all pairs within two halves
  above all pairs across; among six, about one in two hundred.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base import words
from tff_cluster.base.errors import InputError

if TYPE_CHECKING:
  from tff_cluster.clustering.signatures import Signatures

# How clear a split must be where it is guarded: no two clients across the halves may be more similar than CROSS, and every
# client must be more similar to its own half than that, by GAP. Chosen on other seeds than results are told of: 0 to 4
# (GAP) and 0 to 9 (CROSS).
GAP, CROSS = 0.1, 0.05
# See `two_kinds`.
_FEWEST_CLIENTS = 6
_DEVIATIONS = 4.0


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
  """The two halves of eq. 6 and whether a guard lets them part.

  Attributes:
    labels: int64[clients], 0 or 1, numbered by first member; also where a guard forbids the split.
    cross_similarity: Highest similarity of two clients across the halves.
    gap: See `similarity_gap`.
    reason: Why the split is forbidden; '' where it is allowed.
  """

  labels: np.ndarray
  cross_similarity: float
  gap: float
  reason: str


def similarities(signatures: 'Signatures') -> np.ndarray:
  """Returns the cosine similarities of all pairs of updates (eq. 4).

  A zero update has no direction: its similarity is 0 to every other update, and 1 to itself and to other zero
  updates.

  Args:
    signatures: The clients' updates.

  Returns:
    float64[clients, clients], from -1 to 1, symmetric, ones on the diagonal.

  Raises:
    InputError: if the updates are so large that their norms overflow.
  """
  return 1.0 - signatures.distances('cosine')


def bipartition(similarity: np.ndarray) -> tuple[np.ndarray, float]:
  """Returns the halves with the lowest maximum similarity across (eq. 6), exactly.

  Takes clients^2 steps. The order of the clients matters only where several halves are optimal.

  Args:
    similarity: float[clients, clients], finite and symmetric; the diagonal does not matter.

  Returns:
    labels int64[clients], 0 or 1, numbered by first member, and the highest similarity across.

  Raises:
    InputError: if there are fewer than 2 clients, or the similarities are not such a matrix.
  """
  _check_similarity(similarity)
  clients = len(similarity)
  order, links = np.zeros(clients, np.int64), np.zeros(clients)
  inside = np.zeros(clients, bool)
  inside[0] = True
  nearest = np.array(similarity[0], np.float64)
  for step in range(1, clients):
    nearest[inside] = -np.inf
    order[step] = np.argmax(nearest)
    links[step] = nearest[order[step]]
    inside[order[step]] = True
    np.maximum(nearest, similarity[order[step]], out=nearest)
  cross_similarity = float(links[1:].min())
  cut = int(np.flatnonzero(links[1:] == cross_similarity)[-1]) + 1
  labels = np.zeros(clients, np.int64)
  labels[order[cut:]] = 1
  return labels, cross_similarity


def similarity_gap(similarity: np.ndarray, labels: np.ndarray) -> float:
  """Returns by how much clients are more similar to their own half than any two clients are across.

  The client that is least similar to its most similar client in its half counts; clients alone in a half are
  left out. Never negative for the halves of `bipartition`, because each of them is connected by pairs that are at
  least as similar as any across.

  Args:
    similarity: As in `bipartition`.
    labels: int[clients], two different values.

  Returns:
    The difference; 0.0 if both clients of two are alone.

  Raises:
    InputError: as `bipartition`, or if the labels are not of two halves of these clients.
  """
  _check_similarity(similarity)
  labels = np.asarray(labels)
  halves = len(np.unique(labels))
  if labels.shape != (len(similarity),) or halves != 2:
    raise InputError(
      f'labels of shape {labels.shape} with {halves} values: {len(similarity)} clients in two halves are needed'
    )
  within, across = np.inf, -np.inf
  for client, row in enumerate(similarity):
    same = labels == labels[client]
    across = max(across, float(row[~same].max()))
    same[client] = False
    if same.any():
      within = min(within, float(row[same].max()))
  return within - across if within < np.inf else 0.0


def guarded(
  similarity: np.ndarray,
  min_cluster_size: int = 1,
  min_similarity_gap: float = 0.0,
  max_cross_similarity: float = 1.0,
) -> Split:
  """Returns the split of eq. 6, with the reason where a guard forbids it.

  Args:
    similarity: As in `bipartition`.
    min_cluster_size: Clients that each half must have; 1 forbids nothing.
    min_similarity_gap: What `similarity_gap` must reach; 0 forbids nothing.
    max_cross_similarity: What no two clients across the halves may exceed; 1 forbids nothing.

  Raises:
    InputError: as `bipartition`.
  """
  labels, cross_similarity = bipartition(similarity)
  gap = similarity_gap(similarity, labels)
  reasons = []
  smaller = int(np.bincount(labels).min())
  if smaller < min_cluster_size:
    reasons.append(
      f'a half of {words.plural(smaller, "client")}, at least {min_cluster_size} asked for (min_cluster_size)'
    )
  if gap < min_similarity_gap:
    reasons.append(
      f'a similarity gap of {gap:.4g}, at least {min_similarity_gap:.4g} asked for (min_similarity_gap)'
    )
  # Rounding may lift the cosine of two like updates above 1.
  if min(cross_similarity, 1.0) > max_cross_similarity:
    reasons.append(
      f'a cross similarity of {cross_similarity:.4g}, at most {max_cross_similarity:.4g} asked for (max_cross_similarity)'
    )
  return Split(labels, cross_similarity, gap, '; '.join(reasons))


def two_kinds(similarity: np.ndarray) -> Split | None:
  """Returns the halves of eq. 6 where the similarities are plainly of two kinds (see the module), else None.

  Args:
    similarity: As in `bipartition`.

  Raises:
    InputError: as `bipartition`.
  """
  split = guarded(similarity, 2, GAP, CROSS)
  if split.reason or len(similarity) < _FEWEST_CLIENTS:
    return None
  across = similarity[np.ix_(split.labels == 0, split.labels == 1)]
  return split if split.gap > _DEVIATIONS * across.std() else None


def _check_similarity(similarity: np.ndarray) -> None:
  if similarity.ndim != 2 or similarity.shape[0] != similarity.shape[1]:
    raise InputError(f'similarities must be [clients, clients], found shape {similarity.shape}')
  if len(similarity) < 2:
    raise InputError(f'similarities of {words.plural(len(similarity), "client")}: a split needs at least 2')
  if not np.isfinite(similarity).all():
    raise InputError('similarities hold NaN or an infinity; they must be finite')
  if not np.array_equal(similarity, similarity.T):
    one, other = np.argwhere(similarity != similarity.T)[0]
    raise InputError(
      f'similarities must be symmetric, found {similarity[one, other]} for clients {one} and {other}, '
      f'{similarity[other, one]} for {other} and {one}'
    )
