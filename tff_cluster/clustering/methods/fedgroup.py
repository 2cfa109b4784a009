"""FedGroup (Duan et al. 2021, "FedGroup: Efficient Clustered Federated Learning via Decomposed Data-Driven Measure").

One shot: clients train once from one model, and their updates are compared by the decomposed data-driven measure EDC.
With v_1 .. v_m, the leading singular vectors of the matrix of all updates, a client is the point (cos(w_i, v_1), ...,
cos(w_i, v_m)), and the distance of two clients is the Euclidean distance of their points. K-means (k-means++ starts)
makes m groups of them. A client that comes later joins the group whose mean update has the least cosine dissimilarity,
(1 - cos) / 2, to its own.

Read for this: the abstracts, and the authors' code (repository morningD/FlexCFL, of which FedGroup is a part). The
paper's equations could not be read, so that no number of one is given.

Departures and choices:

* m is the number of groups, for directions too, as in that code; an earlier version of it had three directions always.
* At most `pretrain_scale` * m clients, drawn at random, make the groups, and the others join them as if they came later
  (20 in that code). They send the same updates here.
* EDC's constant factor 1 / m is left out: it moves no cluster.
* Fifty starts until nothing moves, as all k-means here; theirs is scikit-learn's k-means with 20 iterations at most.
* Updates are those of the model after Phase 1; theirs are of the initial model. A zero update is orthogonal to everything.
* Groups then train by this suite's Phase 2, not by FedGroup's aggregation between groups (`eta_G`), which is off by default there.
* The mean update of a group is that of all its members at the time of clustering; theirs moves on as the group trains.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.fields import option
from tff_cluster.clustering import number_of_clusters
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Method, Newcomers
from tff_cluster.clustering.method_options import OnSignatures, WithNumber, signature_option
from tff_cluster.clustering.methods import kmeans
from tff_cluster.clustering.outcome import Joined, Outcome, by_first_member

if TYPE_CHECKING:
  from tff_cluster.clustering.replay import Grid


# Equal vectors have equal cosines, which rounding errors would tell apart: k-means has no tolerance.
_DECIMALS = 9


def decomposed_cosines(products: np.ndarray, directions: int) -> np.ndarray:
  """Returns the cosines of vectors to the leading directions of their singular value decomposition.

  With X = U S V' the inner products X X' are U S^2 U', and X V = U S: directions as long as the vectors are never made.

  Args:
    products: float64[clients, clients], the vectors' inner products.
    directions: m.

  Returns:
    float64[clients, m]; 0 for zero vectors, and where the vectors span fewer directions.
  """
  from tff_cluster.clustering import embedding

  found = embedding.gram_coordinates(products, directions)
  cosines = np.zeros((len(products), directions))
  cosines[:, : found.shape[1]] = found
  norms = np.sqrt(np.diag(products))[:, None]
  found = np.divide(cosines, norms, out=np.zeros_like(cosines), where=norms > 0.0)
  return np.round(found, _DECIMALS)


def along_means(norms: np.ndarray, across: np.ndarray, members: Sequence[np.ndarray]) -> np.ndarray:
  """Returns how far vectors reach along the groups' mean vectors; of one vector the farthest has the least dissimilarity.

  Args:
    norms: float64[groups], Euclidean lengths of the mean vectors.
    across: float64[clients, vectors], inner products of the clients with other vectors.
    members: int64[members] of each group.

  Returns:
    float64[groups, vectors]; 0 for a group whose mean is zero.
  """
  found = np.zeros((len(members), across.shape[1]))
  for group, (rows, norm) in enumerate(zip(members, norms, strict=True)):
    if norm > 0.0:
      found[group] = across[rows].mean(axis=0) / norm
  return found


@dataclasses.dataclass(frozen=True)
class Options(WithNumber, OnSignatures):
  """The options of FedGroup."""

  signature: str = signature_option('updates')
  pretrain_scale: int = option(
    20, 'Clients that make the groups, at most, as a multiple of num_clusters; others join them.', at_least=1
  )


class FedGroup(Method[Options]):
  """K-means on the cosines of the clients' updates to the directions of their singular value decomposition."""

  name = 'fedgroup'
  title = 'FedGroup'
  options_type = Options
  draws = True

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the groups; who makes them, and the starts of k-means, are drawn from the seed and the number of groups."""
    from tff_cluster.clustering import cross_distances

    signatures, count = evidence.signatures, options.num_clusters
    number_of_clusters.check_num_clusters(count, signatures.num_clients)
    vectors = signatures.vectors
    first = _drawn(evidence.seed, len(vectors), count, count * options.pretrain_scale)
    drawn = vectors if len(first) == len(vectors) else vectors[first]
    across = cross_distances.inner_products(drawn, vectors, signatures.block_bytes)
    within = across[:, first]
    groups, _ = kmeans.fit(
      decomposed_cosines(within, count), count, evidence.integer_seed('FedGroup starts', count)
    )
    members = [np.flatnonzero(groups == group) for group in range(groups.max() + 1)]
    norms = np.array([np.sqrt(max(within[np.ix_(rows, rows)].mean(), 0.0)) for rows in members])
    labels = np.argmax(along_means(norms, across, members), axis=0)
    labels[first] = groups
    assignment = ClusterAssignment.from_labels(by_first_member(labels), signatures.client_ids)
    notes = number_of_clusters.notes_on_number(assignment, count)
    if len(first) < len(vectors):
      notes.append(f'{len(first)} of {len(vectors)} clients made the groups, and the others joined them')
    return Outcome(assignment, notes=tuple(notes))

  def join(self, options: Options, newcomers: Newcomers) -> Joined:
    """Returns the group whose mean update has the least cosine dissimilarity to the newcomer's."""
    from tff_cluster.clustering import cross_distances, newcomer_rules

    assert newcomers.known is not None and newcomers.arriving is not None
    known, members = newcomers.known.signatures, newcomer_rules.members(newcomers)
    across = cross_distances.inner_products(known.vectors, newcomers.arriving.vectors, known.block_bytes)
    norms = np.array([np.linalg.norm(_mean(known.vectors, rows)) for rows in members])
    return newcomer_rules.cheapest(-along_means(norms, across, members), -across, members)

  def questions(self, grid: 'Grid', num_clients: int) -> Iterator[dict[str, Any]]:
    """Yields each number of groups that is not above the number of clients."""
    return ({'num_clusters': count} for count in grid.counts if count <= num_clients)


METHOD = FedGroup()


def _mean(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
  """Returns float64[features], the mean of some vectors, which are read one by one."""
  total = np.zeros(vectors.shape[1])
  for row in rows:
    total += vectors[row]
  return total / len(rows)


def _drawn(seed: int, clients: int, groups: int, most: int) -> np.ndarray:
  """Returns int64[drawn], ascending positions of the clients that make the groups: all, where they are not too many."""
  if clients <= most:
    return np.arange(clients)
  return np.sort(seeding.generator(seed, 'FedGroup clients', groups).choice(clients, most, replace=False))
