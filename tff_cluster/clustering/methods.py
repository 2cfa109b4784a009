"""All clustering methods behind one door, and the alternatives that a report shows beside a clustering."""

import dataclasses
from collections.abc import Callable
from typing import Any

from tff_cluster.assignment import ClusterAssignment
from tff_cluster.clustering import (
  bipartition,
  dynamic_distance,
  embedding,
  hierarchical,
  kmeans,
  planted,
  spectral,
)
from tff_cluster.clustering.outcome import Outcome
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.config import ClusteringConfig
from tff_cluster.errors import InputError

__all__ = ['METHODS', 'Candidate', 'Outcome', 'candidates', 'cluster']

METHODS: dict[str, Callable[[ClusteringConfig, Signatures, int], Outcome]] = {
  'kmeans': kmeans.from_config,
  'dynamic_distance': dynamic_distance.from_config,
  'hierarchical': hierarchical.from_config,
  'bipartition': bipartition.from_config,
  'spectral': spectral.from_config,
  'planted': planted.from_config,
}

_MOST_MEANS = 10
_THRESHOLDS = ('mean', 'quantile:0.05', 'quantile:0.1', 'quantile:0.2')


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
  """A clustering that was not trained.

  Attributes:
    method: Name of the method.
    parameters: What was given to it, by the names of ClusteringConfig.
    num_clusters: Its number of clusters; None where it gave up.
    memberships: Mean number of clusters of a client; None where it gave up.
    silhouette: Mean silhouette under Euclidean distance; None where undefined (overlap, one cluster).
    assignment: The clustering; None where it gave up.
    notes: Sentences for readers.
  """

  method: str
  parameters: dict[str, Any]
  num_clusters: int | None
  memberships: float | None
  silhouette: float | None
  assignment: ClusterAssignment | None
  notes: tuple[str, ...]


def cluster(config: ClusteringConfig, signatures: Signatures, seed: int) -> Outcome:
  """Clusters the clients.

  Args:
    config: Method and its parameters.
    signatures: The clients' vectors.
    seed: The experiment's seed; methods that draw do so through tff_cluster.seeding.

  Raises:
    InputError: if the method is unknown, or its parameters do not fit these clients.
  """
  if config.method not in METHODS:
    raise InputError(f'--method={config.method}: allowed are {", ".join(METHODS)}')
  return METHODS[config.method](config, signatures, seed)


def candidates(signatures: Signatures, seed: int) -> list[Candidate]:
  """Returns other clusterings of the same clients, none of them trained.

  K-means for K = 2 .. 10 (at most clients - 1), then dynamic distance with the mean threshold and with the
  quantiles 0.05, 0.1 and 0.2. What exceeds the cap on clusters comes back as a note.

  Args:
    signatures: The clients' vectors.
    seed: As in `cluster`: the same K and seed give the same clustering there and here.
  """
  asked: list[tuple[str, dict[str, Any]]] = []
  for count in range(2, min(_MOST_MEANS, signatures.num_clients - 1) + 1):
    asked.append(('kmeans', {'num_clusters': count}))
  if signatures.num_clients > 1:
    asked.extend(('dynamic_distance', {'distance_threshold': text}) for text in _THRESHOLDS)
  return [_candidate(method, parameters, signatures, seed) for method, parameters in asked]


def _candidate(method: str, parameters: dict[str, Any], signatures: Signatures, seed: int) -> Candidate:
  try:
    outcome = cluster(ClusteringConfig(method=method, **parameters), signatures, seed)
  except InputError as error:
    return Candidate(method, parameters, None, None, None, None, (str(error),))
  assignment = outcome.assignment
  return Candidate(
    method,
    parameters,
    assignment.num_clusters,
    float(assignment.membership.sum() / assignment.num_clients),
    embedding.silhouette(signatures.distances('l2'), assignment),
    assignment,
    outcome.notes,
  )
