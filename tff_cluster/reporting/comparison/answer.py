"""The answer of a comparison in words; a difference counts where its interval excludes zero."""

from tff_cluster.reporting.comparison.contenders import BUDGETS, ROUNDS
from tff_cluster.reporting.comparison.statistics import Statistics
from tff_cluster.reporting.words import percent, points, series


def headline(statistics: Statistics) -> str:
  """Returns which clusterings helped, and which did not, against FedAvg at equal rounds."""
  found = [s for s in statistics.summaries[ROUNDS] if s.is_clustering]
  clauses = []
  for side, verb in (('above', 'helped'), ('unclear', 'made no clear difference'), ('below', 'harmed')):
    chosen = sorted((s for s in found if s.gain.side == side), key=lambda s: -s.gain.interval.mean)
    if chosen:
      clauses.append(f'{series([f"{s.name} ({points(s.gain.interval.mean)})" for s in chosen])} {verb}')
  if not clauses:
    return 'These runs have no clustering, so there is nothing to compare.'
  return f'Against FedAvg without clusters at equal rounds, {"; ".join(clauses)}.'


def sentences(statistics: Statistics) -> list[str]:
  """Returns overlap against disjoint at either budget, and the clusterings against every client alone."""
  words = {
    'above': 'is better than',
    'unclear': 'is not shown to be better or worse than',
    'below': 'is worse than',
  }
  told = []
  for budget, name in BUDGETS.items():
    overlapping, disjoint = (statistics.best(kind, budget) for kind in ('overlapping', 'disjoint'))
    if overlapping is not None and disjoint is not None:
      difference = statistics.pair(overlapping.name, disjoint.name, budget).difference
      told.append(
        f'At {name} the best overlapping clustering, {overlapping.name} ({percent(overlapping.mean.mean)}), '
        f'{words[difference.side]} the best disjoint one, {disjoint.name} ({percent(disjoint.mean.mean)}): '
        f'{difference.words}.'
      )
  alone = [
    s for s in statistics.summaries[ROUNDS] if s.over_local is not None and s.kind not in ('fedavg', 'oracle')
  ]
  if alone:
    better = [s.name for s in alone if s.over_local is not None and s.over_local.side == 'above']
    told.append(f'Better than every client alone: {series(better) or "no clustering"}.')
  return told
