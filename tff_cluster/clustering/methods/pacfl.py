"""PACFL (Vahidian et al. 2022, "Efficient Distribution Similarity Identification in Clustered Federated Learning via
Principal Angles Between Client Data Subspaces").

One shot: of the training rows of each of its labels a client sends the first `num_vectors` left singular vectors, features *
num_vectors numbers a label, and nothing that depends on a model. The server compares the subspaces that they span by
their principal angles, in degrees, and cuts an agglomeration at a threshold.

Read for this: the abstract, and the authors' code (repository MMorafah/PACFL), which has three vectors a label, degrees and average
linkage. The paper's text could not be read. That its proximity is the smallest principal angle of two clients, or the
trace of arccos(U_i' U_j), the angles of corresponding vectors added up, is from memory and unverified.

Departures and choices:

* `sum`, the default, adds the principal angles between two clients' subspaces of a label over all labels.
* `smallest` is the smallest principal angle between the spans of all labels together. The authors' code takes the smallest entry of
  arccos(U_i' U_j) instead, which depends on the vectors and on the signs that they happen to have. Neither can tell
  clients apart that call the same images by other names, and where features are few the spans of many labels meet.
* `trace` pairs vectors of the same label and rank, with the sign in which they are nearer. The rank is arbitrary where singular
  values are nearly equal.
* A label, or a vector of one, that only one of two clients has counts 90 degrees in `sum` and `trace`.
* Average linkage is over all pairs of clients (UPGMA); in the code two merged rows count alike, whatever their sizes.
* Clients that come later join the cluster with the least average angle, and send what the others sent. The code agglomerates
  everybody anew with them, which can move others.
* In the code clusters are made before any training, and train from one initial model. Here they are made after Phase 1 and
  start like those of other methods; clients whose training diverged are left out, as everywhere.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base import words
from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.fields import option
from tff_cluster.clustering import number_of_clusters, thresholds
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Method, Newcomers
from tff_cluster.clustering.method_options import WithThreshold
from tff_cluster.clustering.methods import hierarchical
from tff_cluster.clustering.outcome import Joined, Outcome, by_first_member

if TYPE_CHECKING:
  from tff_cluster.clustering.principal_angles import Subspaces
  from tff_cluster.clustering.replay import Found, Grid, Replay

MEASURES = ('sum', 'smallest', 'trace')


# Of a number that is sent, a float32.
_BYTES = 4


@dataclasses.dataclass(frozen=True)
class Options(WithThreshold):
  """The options of PACFL."""

  num_clusters: int | None = option(None, 'Number of clusters K.', at_least=1)
  num_vectors: int = option(3, 'Singular vectors that a client sends of the rows of each label.', at_least=1)
  measure: str = option(
    'sum',
    'Principal angles: all of them label by label, the smallest of all labels together, or those of vectors of one rank.',
    choices=MEASURES,
  )


class PACFL(Method[Options]):
  """Average linkage by the principal angles between subspaces of the clients' training rows."""

  name = 'pacfl'
  title = 'PACFL'
  options_type = Options
  reads_rows = True
  has_linkage = True

  def check(self, options: Options) -> None:
    """Raises InputError unless either a number of clusters or a threshold is given."""
    number, threshold = options.num_clusters, options.distance_threshold
    if (number is None) == (threshold is None):
      given = 'neither is given' if number is None else 'both are given'
      raise InputError(
        f'{argument("method", self.name)} needs {argument("num_clusters", "K")} or {argument("distance_threshold", "T")}: {given}'
      )
    if threshold is not None:
      thresholds.parse_threshold(threshold)

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the clusters; mean and quantile:q are those of the clients' proximities, in degrees."""
    sent, distances, merges = self._agglomerated(options, evidence)
    ids, number = evidence.client_ids, options.num_clusters
    if number is None:
      found = hierarchical.cut_at(str(options.distance_threshold), distances, merges, ids)
    else:
      number_of_clusters.check_num_clusters(number, len(ids))
      assignment = ClusterAssignment.from_labels(_cut_into(number, merges), ids)
      notes = number_of_clusters.notes_on_number(assignment, number)
      found = Outcome(assignment, None, merges, tuple(notes))
    return dataclasses.replace(found, notes=(*found.notes, _cost(sent)), sent_bytes=_bytes(sent))

  def join(self, options: Options, newcomers: Newcomers) -> Joined:
    """Returns the cluster with the least average proximity to the newcomer."""
    from tff_cluster.clustering import newcomer_rules, principal_angles

    assert newcomers.known is not None and newcomers.rows is not None
    known = self._sent(options, newcomers.known)
    new = principal_angles.subspaces(newcomers.rows.values(), options.num_vectors)
    across = principal_angles.proximity(known, new, options.measure)
    members = newcomer_rules.members(newcomers)
    means = np.stack([across[rows].mean(axis=0) for rows in members])
    return dataclasses.replace(newcomer_rules.cheapest(means, across, members), sent_bytes=_bytes(new))

  def replay(self, grid: 'Grid', asked: 'Replay') -> 'Iterator[Found]':
    """Yields the clusters for each number of them; the merges are found once."""
    from tff_cluster.clustering.replay import Found

    counts = [count for count in grid.counts if count <= len(asked.evidence.client_ids)]
    if counts:
      sent, _, merges = self._agglomerated(Options(), asked.evidence)
      for count in counts:
        yield Found({'num_clusters': count}, _cut_into(count, merges), None, (_cost(sent),), None)

  def basis(self, options: Options) -> str:
    """Says that no vectors of models were compared."""
    return 'training rows'

  def _agglomerated(
    self, options: Options, evidence: Evidence
  ) -> tuple[list['Subspaces'], np.ndarray, np.ndarray]:
    """Returns what the clients sent, their proximities float64[clients, clients], and the merges."""
    from tff_cluster.clustering import principal_angles

    sent = self._sent(options, evidence)
    # The two halves differ by rounding.
    upper = np.triu(principal_angles.proximity(sent, sent, options.measure), 1)
    return sent, upper + upper.T, hierarchical.merges_of(upper + upper.T, 'average')

  def _sent(self, options: Options, evidence: Evidence) -> list['Subspaces']:
    from tff_cluster.clustering import principal_angles

    if evidence.rows is None:
      raise InputError(str(self.needs_run(options)))
    rows = [evidence.rows[client_id] for client_id in evidence.client_ids]
    return principal_angles.subspaces(rows, options.num_vectors)


METHOD = PACFL()


def _cut_into(number: int, merges: np.ndarray) -> np.ndarray:
  """Returns labels int64[clients] of so many clusters; of merges at equal heights SciPy chooses which count."""
  from scipy.cluster import hierarchy

  if not len(merges):
    return np.zeros(1, np.int64)
  return by_first_member(hierarchy.cut_tree(merges, n_clusters=number)[:, 0])


def _cost(sent: Sequence['Subspaces']) -> str:
  """Returns what the clients sent, in words."""
  vectors = max(sum(basis.shape[1] for basis in each.values()) for each in sent)
  most = max(_bytes([each]) for each in sent)
  return (
    f'a client sent at most {words.plural(vectors, "singular vector")} of its training rows, {most:,} bytes as '
    f'float32, all together {_bytes(sent):,}, beside what clients send in training'
  )


def _bytes(sent: Sequence['Subspaces']) -> int:
  """Returns the size of what clients sent, all together."""
  return _BYTES * sum(basis.size for each in sent for basis in each.values())
