"""The three-phase method (Rohith et al. 2020): its tables and figures with their claims, each as a check that can fail."""

from tff_cluster.papers.rohith2020 import claims, tables
from tff_cluster.scorecard.published import with_claims

PUBLISHED = with_claims(tables.PUBLISHED, claims.CLAIMS)
