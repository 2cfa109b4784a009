"""FedEx (Miles et al. 2024): its tables and figures with their claims, each claim as a check that can fail."""

from tff_cluster.papers.miles2024 import claims, replication_claims, tables
from tff_cluster.scorecard.published import with_claims

PUBLISHED = with_claims(tables.PUBLISHED, {**claims.CLAIMS, **replication_claims.CLAIMS})
