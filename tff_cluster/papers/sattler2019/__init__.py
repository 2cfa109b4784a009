"""CFL (Sattler et al. 2019): its figures and our table of splits with their claims, each claim as a check that can fail."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from tff_cluster.papers.sattler2019 import claims, tables, toy_claims
from tff_cluster.scorecard.claims import AnyClaim
from tff_cluster.scorecard.published import Published

_CLAIMS: Mapping[str, tuple[AnyClaim, ...]] = {**claims.CLAIMS, **toy_claims.CLAIMS}
PUBLISHED: Mapping[str, Published] = MappingProxyType(
  {name: dataclasses.replace(entry, claims=_CLAIMS[name]) for name, entry in tables.PUBLISHED.items()}
)
