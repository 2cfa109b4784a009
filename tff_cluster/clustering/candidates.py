"""The alternatives that a report shows beside a clustering, so that a choice can be judged."""

import dataclasses
from typing import Any

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import embedding, methods
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.clustering_config import ClusteringConfig
from tff_cluster.clustering.signatures import Signatures


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
  """A clustering that was not trained.

  Attributes:
    config: What was asked; `methods.cluster(config, signatures, seed)` gives the same clustering.
    parameters: The options that were given, by name, those at their default too.
    num_clusters: Its number of clusters; None where it gave up.
    memberships: Mean number of clusters of a client; None where it gave up.
    silhouette: Mean silhouette under Euclidean distance; None where undefined (overlap, one cluster).
    assignment: The clustering; None where it gave up.
    notes: Sentences for readers.
  """

  config: ClusteringConfig
  parameters: dict[str, Any]
  num_clusters: int | None
  memberships: float | None
  silhouette: float | None
  assignment: ClusterAssignment | None
  notes: tuple[str, ...]


def candidates(signatures: Signatures, seed: int) -> list[Candidate]:
  """Returns other clusterings of the same clients, none of them trained: what each method names as alternatives.

  What exceeds a cap comes back as a note.

  Args:
    signatures: The clients' vectors.
    seed: As in `methods.cluster`: the same options and seed give the same clustering there and here.
  """
  return [
    _candidate(ClusteringConfig(name, **given), dict(given), signatures, seed)
    for name, method in methods.METHODS.items()
    for given in method.alternatives(signatures.num_clients)
  ]


def _candidate(
  config: ClusteringConfig, given: dict[str, Any], signatures: Signatures, seed: int
) -> Candidate:
  try:
    outcome = methods.cluster(config, signatures, seed)
  except InputError as error:
    return Candidate(config, given, None, None, None, None, (str(error),))
  assignment = outcome.assignment
  return Candidate(
    config,
    given,
    assignment.num_clusters,
    float(assignment.membership.sum() / assignment.num_clients),
    embedding.silhouette(signatures.distances('l2'), assignment),
    assignment,
    outcome.notes,
  )
