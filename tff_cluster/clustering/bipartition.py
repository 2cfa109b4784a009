"""The split of Clustered Federated Learning (Sattler et al. 2019, eq. 6): two halves that are least alike.

Clients are parted so that the highest cosine similarity of two updates across the halves is as low as it can be.
Prim's algorithm takes the clients in, always the one that is most similar to a client inside. Cutting its order
before a client gives halves whose highest similarity across is the one that this client was taken in by, and no
halves have less than the lowest of these: on the way from one half to the other, Prim's algorithm crosses them. The
halves are those of single linkage before its last merge.

Departures and choices: the paper does not say which halves are meant where several have the lowest similarity
across. The cut before the last such client is taken here, so that one half cannot be parted at that similarity
again. The three guards are not in the paper; at 1, 0 and 1 they forbid nothing. Whether a cluster is to be split at all
(eq. 5) is a question to its training, not to its updates, and is not asked here.

`two_kinds` is not in the paper either: it tells where similarities contradict norms, and splits nothing. Its criterion:
  At a stationary point the updates sum to about nothing. Clients of one group then have updates of noise only, which point
  apart a little and anyhow; those of groups in conflict hold a part that their group shares and the others lack, so that every
  client has a partner far more alike than any two clients across are, and these pull apart (similarity of at most about 0).
  So the gap and the similarity across must be those that told groups from noise and from skewed labels (docs/results.md), no half
  may be one client, which noise alone cuts off most easily, and the gap must be several standard deviations of the
  similarities across: these would be of one kind if the halves were noise, so their spread is the noise's own scale.
  Fewer than six clients tell nothing: among five, one in twenty random orders of the similarities has all pairs within two halves
  above all pairs across; among six, about one in two hundred.
"""

import dataclasses

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from tff_cluster.assignment import ClusterAssignment
from tff_cluster.clustering.outcome import Outcome
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.config import ClusteringConfig
from tff_cluster.errors import InputError
from tff_cluster.papers import sattler2019

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


def similarities(signatures: Signatures) -> np.ndarray:
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
    InputError: as `bipartition`, or if a guard is out of range.
  """
  if min_cluster_size < 1:
    raise InputError(f'min_cluster_size={min_cluster_size}: must be at least 1')
  if not min_similarity_gap >= 0.0:
    raise InputError(f'min_similarity_gap={min_similarity_gap}: must be a number of at least 0')
  if not -1.0 <= max_cross_similarity <= 1.0:
    raise InputError(f'max_cross_similarity={max_cross_similarity}: must be from -1 to 1')
  labels, cross_similarity = bipartition(similarity)
  gap = similarity_gap(similarity, labels)
  reasons = []
  smaller = int(np.bincount(labels).min())
  if smaller < min_cluster_size:
    reasons.append(f'a half of {_clients(smaller)}, at least {min_cluster_size} asked for (min_cluster_size)')
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
  """Returns the halves of eq. 6 where the similarities are plainly of two kinds (see above), else None.

  Args:
    similarity: As in `bipartition`.

  Raises:
    InputError: as `bipartition`.
  """
  split = guarded(similarity, 2, sattler2019.GAP, sattler2019.CROSS)
  if split.reason or len(similarity) < _FEWEST_CLIENTS:
    return None
  across = similarity[np.ix_(split.labels == 0, split.labels == 1)]
  return split if split.gap > _DEVIATIONS * across.std() else None


def guards(config: ClusteringConfig) -> tuple[int, float, float]:
  """Returns the guards that a clustering asks for, in the order of `guarded`."""
  return config.min_cluster_size, config.min_similarity_gap, config.max_cross_similarity


def from_config(config: ClusteringConfig, signatures: Signatures, seed: int) -> Outcome:
  """Returns the two halves of eq. 6, or one cluster where a guard forbids them; splits once, without training."""
  del seed  # Nothing is drawn.
  everybody = ClusterAssignment.from_labels(np.zeros(signatures.num_clients, np.int64), signatures.client_ids)
  if signatures.num_clients == 1:
    figures = {'cross_similarity': None, 'similarity_gap': None}
    return Outcome(everybody, notes=('not split: there is one client',), figures=figures)
  split = guarded(similarities(signatures), *guards(config))
  sizes = np.bincount(split.labels)
  notes = [
    f'halves of {sizes[0]} and {_clients(sizes[1])}: the cross similarity (the highest of two clients across) is '
    f'{split.cross_similarity:.4g}, the similarity gap {split.gap:.4g}'
  ]
  if split.reason:
    notes.append(f'not split: {split.reason}')
  return Outcome(
    everybody if split.reason else ClusterAssignment.from_labels(split.labels, signatures.client_ids),
    notes=tuple(notes),
    figures={'cross_similarity': split.cross_similarity, 'similarity_gap': split.gap},
  )


class Bipartition(ClusterMixin, BaseEstimator):
  """`bipartition` as a scikit-learn estimator; rows of X are clients' updates, at least two.

  Attributes:
    labels_: int64[clients].
    cross_similarity_: float.
    n_features_in_: int.
  """

  def fit(self, X: np.ndarray, y: object = None) -> 'Bipartition':
    """Splits the rows of X, float[clients, features]; y is ignored."""
    X = validate_data(self, X, dtype=(np.float64, np.float32), ensure_min_samples=2)
    self.labels_, self.cross_similarity_ = bipartition(similarities(Signatures.numbered(X)))
    return self


def _check_similarity(similarity: np.ndarray) -> None:
  if similarity.ndim != 2 or similarity.shape[0] != similarity.shape[1]:
    raise InputError(f'similarities must be [clients, clients], found shape {similarity.shape}')
  if len(similarity) < 2:
    raise InputError(f'similarities of {_clients(len(similarity))}: a split needs at least 2')
  if not np.isfinite(similarity).all():
    raise InputError('similarities hold NaN or an infinity; they must be finite')
  if not np.array_equal(similarity, similarity.T):
    one, other = np.argwhere(similarity != similarity.T)[0]
    raise InputError(
      f'similarities must be symmetric, found {similarity[one, other]} for clients {one} and {other}, '
      f'{similarity[other, one]} for {other} and {one}'
    )


def _clients(count: int) -> str:
  return f'{count} client' if count == 1 else f'{count} clients'
