"""CFL (Sattler et al. 2019): its figures and our table of splits with their claims, each claim as a check that can fail."""

from tff_cluster.papers.sattler2019 import claims, tables, toy_claims
from tff_cluster.scorecard.published import with_claims

PUBLISHED = with_claims(tables.PUBLISHED, {**claims.CLAIMS, **toy_claims.CLAIMS})
