"""FedEx (Miles et al. 2024): its tables and figures with their claims, each claim as a check that can fail."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from tff_cluster.papers.miles2024 import claims, replication_claims, tables
from tff_cluster.scorecard.published import Published

_CLAIMS = {**claims.CLAIMS, **replication_claims.CLAIMS}
PUBLISHED: Mapping[str, Published] = MappingProxyType(
  {name: dataclasses.replace(entry, claims=_CLAIMS[name]) for name, entry in tables.PUBLISHED.items()}
)
