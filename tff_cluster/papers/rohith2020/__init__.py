"""The three-phase method (Rohith et al. 2020): its tables and figures with their claims, each as a check that can fail."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from tff_cluster.papers.rohith2020 import claims, tables
from tff_cluster.scorecard.published import Published

PUBLISHED: Mapping[str, Published] = MappingProxyType(
  {name: dataclasses.replace(entry, claims=claims.CLAIMS[name]) for name, entry in tables.PUBLISHED.items()}
)
