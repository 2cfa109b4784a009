"""Trainings that lost what they had learnt: what is compared with them may say more of the learning rate than of clusters."""

from collections.abc import Sequence

from tff_cluster.base.words import percent, series
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.experiment.measured import History
from tff_cluster.experiment.results import Results

# Of the best round's accuracy, what may be gone at the end: cohorts of few clients move it by less.
_MOST = 0.2


def told(runs: Sequence[Results]) -> str:
  """Returns which trainings without clusters lost more than a fifth of their best accuracy on validation rows; empty where none did.

  Args:
    runs: Results of one experiment under several seeds.
  """
  lost = []
  for name in dict.fromkeys(name for results in runs for name, _ in _histories(results)):
    ends = [
      (max(found.validation_accuracy), found.validation_accuracy[-1])
      for results in runs
      for called, found in _histories(results)
      if called == name
    ]
    fallen = [(best, last) for best, last in ends if last < (1.0 - _MOST) * best]
    if fallen:
      best, last = max(fallen, key=lambda pair: pair[0] - pair[1])
      of_seeds = f', under {len(fallen)} of {len(ends)} seeds' if len(ends) > 1 else ''
      lost.append(f'{name} (from {percent(best)} to {percent(last)}{of_seeds})')
  if not lost:
    return ''
  return (
    f'Training lost what it had learnt, on validation rows: {series(lost)}. Such numbers may tell of the learning rate more than of clusters: '
    'try a smaller one.'
  )


def _histories(results: Results) -> list[tuple[str, History]]:
  return [
    (FEDAVG, results.baseline.history),
    *((each.title, each.history) for each in results.personalized),
  ]
