"""Scores of clusterings in which a client may be in several clusters: overlapping NMI and extended BCubed.

A cover is a set of clusters of the same clients, float or bool[clusters, clients]; above 0 is a member.
"""

import dataclasses
import math

import numpy as np

from tff_cluster.base.errors import InputError

# Numbers in a working array: 10,000 clients have 100 million pairs, 1,000 clusters a million.
_CELLS = 2**22


@dataclasses.dataclass(frozen=True)
class BCubed:
  """Extended BCubed, from 0 to 1 each.

  Attributes:
    precision: Whether clients that are together belong together.
    recall: Whether clients that belong together are together.
    f: Harmonic mean of the two.
  """

  precision: float
  recall: float
  f: float


def same_clients(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Returns both covers as bool[clusters, clients].

  Raises:
    InputError: if the two are not matrices over equally many clients, at least one.
  """
  a, b = np.asarray(a), np.asarray(b)
  if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
    raise InputError(
      f'memberships must be [clusters, clients] over the same clients, found {a.shape} and {b.shape}'
    )
  if not a.shape[1]:
    raise InputError('memberships must have at least one client, found none')
  return a > 0.0, b > 0.0


def overlapping_nmi(a: np.ndarray, b: np.ndarray) -> float:
  """Returns the normalised mutual information of two covers, NMI_max of McDaid, Greene and Hurley 2011.

  NMI_max = I(X:Y) / max(H(X), H(Y)) with I(X:Y) = (H(X) - H(X|Y) + H(Y) - H(Y|X)) / 2 (arXiv:1110.2515). A cluster is a
  binary variable, member or not, of a client drawn at random; H(X) sums the entropies of a cover's clusters, and
  H(X|Y) what is left of each when the one cluster of the other cover that tells most is known (Lancichinetti, Fortunato
  and Kertész 2009, appendix B). A cluster tells something only where h(P11) + h(P00) >= h(P10) + h(P01), h(p) = -p log p,
  so that a complement is no match. Clusters without a common client are compared as well, as the equations have it;
  the authors' program passes them over.

  It depends neither on the order of clusters or clients nor on which cover comes first. Not corrected for chance, and
  not the NMI of labels where nothing overlaps.

  Args:
    a, b: [clusters, clients] each, same clients in the same order.

  Returns:
    From 0 to 1. 1 for equal covers and for no others, but for what follows. A cover is a set: clusters with the same
    members count once. Clusters of all clients or of none have zero entropy, so they count as if they were not there:
    two covers with no others give 1, one of them with any other cover 0.

  Raises:
    InputError: if the two are not matrices over equally many clients, at least one.
  """
  a, b = (_informative(side) for side in same_clients(a, b))
  clients = a.shape[1]
  from scipy import special  # Readers of results need none of it.

  # h of every share that can occur; from whole counts, so that equal shares have equal bits.
  h = special.entr(np.arange(clients + 1) / clients)
  size_a, size_b = a.sum(axis=1), b.sum(axis=1)
  entropy_a, entropy_b = h[size_a] + h[clients - size_a], h[size_b] + h[clients - size_b]
  left_a, left_b = entropy_a.copy(), entropy_b.copy()
  members_a, members_b = a.astype(np.float32), b.astype(np.float32).T
  step = max(_CELLS // max(len(b), 1), 1)
  for start in range(0, len(a), step):
    rows = slice(start, start + step)
    both = (members_a[rows] @ members_b).astype(np.int64)
    size = size_a[rows, None]
    alike = h[both] + h[clients - size - size_b + both]
    unlike = h[size - both] + h[size_b - both]
    joint = np.where(alike >= unlike, alike + unlike, np.inf)
    left_a[rows] = np.minimum(left_a[rows], (joint - entropy_b).min(axis=1, initial=np.inf))
    left_b = np.minimum(left_b, (joint - entropy_a[rows, None]).min(axis=0, initial=np.inf))
  # Sums that do not depend on the order.
  of_a, of_b, of_a_left, of_b_left = map(math.fsum, (entropy_a, entropy_b, left_a, left_b))
  largest = max(of_a, of_b)
  return ((of_a - of_a_left) + (of_b - of_b_left)) / 2.0 / largest if largest else 1.0


def bcubed(found: np.ndarray, truth: np.ndarray) -> BCubed:
  """Returns extended BCubed precision, recall and F (Amigó, Gonzalo, Artiles and Verdejo 2009, overlapping clustering).

  For clients e and e' that share C clusters and L groups, multiplicity precision is min(C, L) / C and multiplicity
  recall min(C, L) / L. Precision is the mean over e of the mean over all e' with C > 0, recall the same with L > 0; e'
  may be e. Where nothing overlaps this is BCubed of Bagga and Baldwin 1998. Not corrected for chance.

  Args:
    found: [clusters, clients].
    truth: [groups, clients], same clients in the same order.

  Raises:
    InputError: if the two are not matrices over equally many clients, at least one, or a client is in no cluster or
      no group.
  """
  found, truth = same_clients(found, truth)
  for name, cover in (('found', found), ('truth', truth)):
    if not cover.any(axis=0).all():
      raise InputError(f'client number {int(np.argmin(cover.any(axis=0)))} is in no cluster of {name}')
  # Clients with the same clusters and the same groups count alike. Where nothing overlaps that leaves few.
  first, counts = _distinct(np.concatenate([found, truth]).T)
  clusters, groups = found[:, first].astype(np.float32), truth[:, first].astype(np.float32)
  precision, recall = np.empty(len(first)), np.empty(len(first))
  step = max(_CELLS // len(first), 1)
  for start in range(0, len(first), step):
    rows = slice(start, start + step)
    together = (clusters[:, rows].T @ clusters).astype(np.float64)
    belonging = (groups[:, rows].T @ groups).astype(np.float64)
    both = np.minimum(together, belonging)
    precision[rows] = _mean_share(both, together, counts)
    recall[rows] = _mean_share(both, belonging, counts)
  p, r = (float(each @ counts / counts.sum()) for each in (precision, recall))
  return BCubed(p, r, 2.0 * p * r / (p + r))


def _mean_share(part: np.ndarray, whole: np.ndarray, counts: np.ndarray) -> np.ndarray:
  """Returns float64[rows], means of part / whole over the columns where whole > 0, each counted so many times."""
  shares = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)
  return (shares @ counts) / ((whole > 0.0) @ counts)


def _informative(cover: np.ndarray) -> np.ndarray:
  """Returns bool[clusters, clients], the distinct clusters with some clients but not all."""
  size = cover.sum(axis=1)
  cover = cover[(size > 0) & (size < cover.shape[1])]
  return cover[_distinct(cover)[0]]


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Returns int64[kinds] and float64[kinds]: the first place of each distinct row of a bool matrix, and how many there are."""
  kinds: dict[bytes, list[int]] = {}
  for place, row in enumerate(np.packbits(rows, axis=1)):
    kinds.setdefault(row.tobytes(), []).append(place)
  first = np.array([places[0] for places in kinds.values()], np.int64)
  return first, np.array([len(places) for places in kinds.values()], np.float64)
