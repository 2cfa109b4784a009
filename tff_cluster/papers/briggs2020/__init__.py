"""FL+HC (Briggs et al. 2020): its tables and figures with their claims, each claim as a check that can come out against the paper.

Departures and choices: where the paper says "similar", "negligible" or "little", the margin of scorecard/units.py decides, and a
claim's words name its limit; where a sentence turns on a printed digit ("marginally", "within 0.1%"), that digit does. What is
compared with IID clients is compared with the paper's own 99.1%, since a table of other clients holds no IID row of ours. "In any
given communication round" is said of the figures, and checked there. Sentences that sum over several tables ("overall, ...") have no
claim of their own. Claims that say "ours adds" are not the paper's, but what its explanation needs to be true. That FedAvg cannot
exceed 80% on swapped labels is arithmetic: it is not decidable here.
"""

from tff_cluster.papers.briggs2020 import by_metric, by_rounds, tables
from tff_cluster.scorecard.published import with_claims

_CLAIMS = {
  'fl_hc/table1': by_rounds.table1(),
  'fl_hc/table2': by_rounds.table2(),
  'fl_hc/table3': by_rounds.table3(),
  'fl_hc/table4': by_metric.table4('fl_hc/table4'),
  'fl_hc/table4_late': by_metric.table4('fl_hc/table4_late'),
  'fl_hc/table5': by_metric.table5(),
  'fl_hc/table6': by_metric.table6(),
  'fl_hc/iid': (*by_rounds.iid(), *by_metric.iid()),
  **by_rounds.figures(),
  **by_metric.figures(),
}
PUBLISHED = with_claims(tables.PUBLISHED, _CLAIMS)
