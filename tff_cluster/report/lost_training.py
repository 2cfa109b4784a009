"""Trainings that lost what they had learnt: they, and what is compared with them, may say more of the learning rate than of clusters."""

import itertools
from collections.abc import Sequence

from tff_cluster.base.words import percent, series
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.experiment.results import Results

# Of the best round's accuracy, what may be gone at the end, or in a round of fine-tuning: cohorts of few clients move it by less.
_MOST = 0.2


def told(runs: Sequence[Results]) -> str:
  """Returns which trainings lost more than a fifth of their best accuracy on validation rows; empty where none did.

  FedAvg, every baseline and every clustering are looked at, at their last round, and fine-tuning at its worst one: a step that
  improves nothing may be taken back by the next ones, and clients that go on training FedAvg's model should not need that.

  Args:
    runs: Results of one experiment under several seeds.
  """
  by_name: dict[str, list[tuple[float, float]]] = {}
  for name, accuracy in itertools.chain.from_iterable(map(_histories, runs)):
    by_name.setdefault(name, []).append((max(accuracy), accuracy[-1]))
  lost = []
  for name, ends in by_name.items():
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


def _histories(results: Results) -> list[tuple[str, list[float]]]:
  """Returns accuracies on validation rows by name, round by round; those of fine-tuning up to the worst round."""
  found = [(FEDAVG, results.baseline.history.validation_accuracy)]
  for each in results.personalized:
    accuracy = each.history.validation_accuracy
    tuned = accuracy[: accuracy.index(min(accuracy)) + 1] if each.name == 'fine_tuning' else accuracy
    found.append((each.title, tuned))
  found += [(each.label, each.history.validation_accuracy) for each in results.clusterings]
  return [(name, accuracy) for name, accuracy in found if accuracy]
