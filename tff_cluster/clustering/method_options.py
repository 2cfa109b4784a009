"""Options that several clustering methods share, declared once; a method's options derive from those that it has."""

import dataclasses
from typing import Any

from tff_cluster.base.fields import option

METRICS = ('l1', 'l2', 'cosine')
SIGNATURES = ('weights', 'updates')


def signature_option(default: str) -> Any:
  """Declares what is clustered."""
  return option(
    default,
    "What is clustered: the clients' own weights of the last round, or one local update from the global model.",
    choices=SIGNATURES,
    of_runs=True,
  )


@dataclasses.dataclass(frozen=True)
class NoOptions:
  """A method without any option."""


@dataclasses.dataclass(frozen=True)
class OnSignatures:
  """A method that clusters one vector a client."""

  signature: str = signature_option('weights')


@dataclasses.dataclass(frozen=True)
class WithNumber:
  """A method that is told the number of clusters."""

  num_clusters: int = option(4, 'Number of clusters K.', at_least=1)


@dataclasses.dataclass(frozen=True)
class WithThreshold:
  """A method with a distance threshold."""

  distance_threshold: str | None = option(
    None,
    'dynamic_distance: mean (default), a number, or quantile:q, the distance below which a share q of all pairs of clients lie. '
    'hierarchical: a number T, quantile:q, or validation '
    '(of several cuts the one that is best on validation rows after a round), validation:N (of fewer cuts, after N rounds of Phase 2) '
    'or validation:last (after all of them). pacfl: degrees, mean or quantile:q, in place of num_clusters.',
  )
