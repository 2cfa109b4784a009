"""The planted groups as a clustering: no method, but the oracle that methods are measured against.

It is the one place where true groups make clusters, and only where `planted` is asked for by name.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tff_cluster.assignment import ClusterAssignment
from tff_cluster.clustering.joined import Joined
from tff_cluster.clustering.outcome import Outcome
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.config import PLANTED_NEEDS_A_RUN, ClusteringConfig
from tff_cluster.errors import InputError

METHOD = 'planted'
NOTE = (
  'the planted groups themselves: what no method can know, and what clusters could gain if they were found'
)


def groups(
  truths: Mapping[str, np.ndarray], name: str | None, client_ids: Sequence[str]
) -> ClusterAssignment:
  """Returns the planted groups; a client is in every group of which it has a share, so groups may overlap.

  Args:
    truths: float[groups, clients] by name.
    name: Which of them; None where there is one.
    client_ids: The clients.

  Raises:
    InputError: if there is no such truth, or several and none is named.
  """
  member = _chosen(truths, name) > 0.0
  clusters = [[client_ids[k] for k in np.flatnonzero(row)] for row in member if row.any()]
  return ClusterAssignment.from_clusters(clusters, client_ids)


def join(
  truths: Mapping[str, np.ndarray],
  new_truths: Mapping[str, np.ndarray],
  name: str | None,
  assignment: ClusterAssignment,
) -> Joined:
  """Returns the clusters of the newcomers' own groups.

  A newcomer whose groups have no cluster, because nobody who was clustered belongs to them, is in all clusters, and that
  is told: the oracle knows that none is its own.

  Args:
    truths, new_truths: float[groups, clients] by name, of the clients that were clustered and of the newcomers.
    name: Which of them; None where there is one.
    assignment: What `groups` made of the truths.

  Raises:
    InputError: as `groups`.
  """
  member, new = _chosen(truths, name) > 0.0, _chosen(new_truths, name) > 0.0
  of_cluster = (assignment.membership[:, None, :] > 0.0) == member[None, :, :]
  joined = of_cluster.all(axis=2).astype(np.int64) @ new.astype(np.int64) > 0
  fallback = ~joined.any(axis=0)
  joined[:, fallback] = True
  return Joined(joined, fallback)


def from_config(config: ClusteringConfig, signatures: Signatures, seed: int) -> Outcome:
  """Raises InputError: vectors alone have no planted groups."""
  raise InputError(PLANTED_NEEDS_A_RUN)


def _chosen(truths: Mapping[str, np.ndarray], name: str | None) -> np.ndarray:
  if not truths:
    raise InputError('--clustering=planted: these clients have no planted groups; leave it out')
  if name is None and len(truths) > 1:
    raise InputError(
      f'--clustering=planted: several groups are planted; give one as truth=X: {", ".join(truths)}'
    )
  if name is not None and name not in truths:
    raise InputError(f'--clustering=planted,truth={name}: there are {", ".join(truths)}')
  return np.asarray(truths[name if name is not None else next(iter(truths))])
