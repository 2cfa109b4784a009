"""The planted groups as a clustering: no method, but the oracle that methods are measured against.

It is the one place where true groups make clusters, and only where `planted` is asked for by name.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.fields import option
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Method, Newcomers
from tff_cluster.clustering.method_options import OnSignatures
from tff_cluster.clustering.outcome import Joined, Outcome
from tff_cluster.clustering.recovery import all_in_all

NOTE = (
  'the planted groups themselves: what no method can know, and what clusters could gain if they were found'
)
NOTE_OF_MIXTURES = 'every client has rows of every planted group, so each is put where it has most'
_NEEDS_A_RUN = f'{argument("method", "planted")}: planted groups are those of a run; vectors alone have none'


def groups(
  truths: Mapping[str, np.ndarray], name: str | None, client_ids: Sequence[str]
) -> ClusterAssignment:
  """Returns the planted groups; a client is in every group of which it has a share, so groups may overlap.

  Where every client is in every group, that would be the same cluster again and again: each is in the group of which it has most.
  Groups of the same clients are one cluster.

  Args:
    truths: float[groups, clients] by name.
    name: Which of them; None where there is one.
    client_ids: The clients.

  Raises:
    InputError: if there is no such truth, or several and none is named.
  """
  truth = _chosen(truths, name)
  member = _member(truth, all_in_all(truth))
  rows = dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in member if row.any())
  clusters = [[client_ids[k] for k in row] for row in rows]
  return ClusterAssignment.from_clusters(clusters, client_ids)


@dataclasses.dataclass(frozen=True)
class Options(OnSignatures):
  """The options of the oracle; its signature is what pictures show."""

  truth: str | None = option(
    None,
    'Which planted groups, where the data has several (pathological: digit, label set; with noise clients source).',
  )


class Planted(Method[Options]):
  """The planted groups of a run."""

  name = 'planted'
  title = 'planted groups'
  options_type = Options
  oracle = True
  overlaps = True

  def needs_run(self, options: Options) -> str | None:
    """Vectors alone have no planted groups."""
    return _NEEDS_A_RUN

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the planted groups of all clients, who send nothing for that."""
    if evidence.truths is None:
      raise InputError(_NEEDS_A_RUN)
    mixed = all_in_all(_chosen(evidence.truths, options.truth))
    notes = (NOTE, *((NOTE_OF_MIXTURES,) if mixed else ()))
    return Outcome(groups(evidence.truths, options.truth, evidence.client_ids), notes=notes, sent_bytes=0)

  def join(self, options: Options, newcomers: Newcomers) -> Joined:
    """Returns the clusters of the newcomers' own groups.

    A newcomer whose groups have no cluster, because nobody who was clustered belongs to them, is in all clusters, and that
    is told: the oracle knows that none is its own.
    """
    assert newcomers.known is not None and newcomers.known.truths is not None and newcomers.truths is not None
    truth = _chosen(newcomers.known.truths, options.truth)
    by_most = all_in_all(truth)
    member = _member(truth, by_most)
    new = _member(_chosen(newcomers.truths, options.truth), by_most)
    of_cluster = (newcomers.assignment.membership[:, None, :] > 0.0) == member[None, :, :]
    joined = of_cluster.all(axis=2).astype(np.int64) @ new.astype(np.int64) > 0
    fallback = ~joined.any(axis=0)
    joined[:, fallback] = True
    return Joined(joined, fallback)

  def basis(self, options: Options) -> str:
    """Says that it is an oracle."""
    return 'planted groups, an oracle'


METHOD = Planted()


def _member(truth: np.ndarray, by_most: bool) -> np.ndarray:
  """Returns bool[groups, clients], those of which a client has a share, or has most."""
  return (truth == truth.max(axis=0) if by_most else truth > 0.0) & (truth > 0.0)


def _chosen(truths: Mapping[str, np.ndarray], name: str | None) -> np.ndarray:
  if not truths:
    raise InputError(
      f'{argument("clustering", "planted")}: these clients have no planted groups; leave it out'
    )
  if name is None and len(truths) > 1:
    raise InputError(
      f'{argument("clustering", "planted")}: several groups are planted; give one as truth=X: {", ".join(truths)}'
    )
  if name is not None and name not in truths:
    raise InputError(f'{argument("clustering", "planted")},truth={name}: there are {", ".join(truths)}')
  return np.asarray(truths[name if name is not None else next(iter(truths))])
