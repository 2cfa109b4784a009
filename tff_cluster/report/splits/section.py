"""The section of report.html about a recursive bi-partition: what was tested, what was split, and what that gave."""

from collections.abc import Callable, Sequence

import numpy as np

from tff_cluster.base.words import capital, client, percent, plural, points, score, series, signed
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.report.cluster_sections import composition
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.pages import Cell, Section, Table
from tff_cluster.report.pictures import Picture
from tff_cluster.report.splits.pictures import SHORT
from tff_cluster.report.splits_tree import Recursion, SplitTest, read_recursion

_OPEN_UP_TO = 12
_NAMED_ROUNDS = 6
_NAMED_CLIENTS = 6
_WIDE = 'note wide'  # Words in a column between numbers would get a syllable a line.
_LOOKS = {'split': 'good', 'stopped': 'none', 'kept': 'warn'}


def splits_section(
  run: FinishedRun, clustering: Clustering, figures: Callable[[str], Sequence[Picture]]
) -> Section | None:
  """Returns the recursion of one clustering: what happened, its tests, accuracy around splits, and its pictures.

  Args:
    run: The run.
    clustering: One of the run's.
    figures: Returns the pictures of a section, here of 'splits LABEL'.

  Returns:
    The section; None where the clustering was found in one step.
  """
  recursion = read_recursion(run, clustering)
  if recursion is None:
    return None
  norms = tuple(clustering.parameters.get(name) for name in ('stationary_norm', 'stopping_norm'))
  data = {
    'story': story(recursion),
    'cut_groups': _cut_groups(recursion, run.main_groups),
    'warnings': [f'{test.warning}.' for test in recursion.tests if test.warning],
    'norms': None if None in norms else norms,
    'tests': _tests(run, recursion),
    'changes': _changes(run, recursion),
    'open_up_to': _OPEN_UP_TO,
    'pictures': figures(f'splits {clustering.label}'),
  }
  return Section(f'Splits of {clustering.label}', 'splits.html', 'splits', data)


def story(recursion: Recursion) -> str:
  """Returns in a sentence or two what happened, for instance '3 splits, in rounds 50, 100 and 150, made 4 clusters; ...'."""
  if not recursion.splits:
    return f'No split: {_why_none(recursion)}.'
  rounds = recursion.split_rounds
  when = f'rounds {rounds[0]} to {rounds[-1]}'
  if len(rounds) <= _NAMED_ROUNDS:
    when = f'round{"" if len(rounds) == 1 else "s"} {series([str(at) for at in rounds])}'
  count, leaves = len(recursion.splits), len(recursion.clusters)
  fates = [recursion.fate(cluster) for cluster in recursion.clusters]
  parts = []
  if number := fates.count('stopped'):
    parts.append(f'{_clusters(number)} stopped: {SHORT}')
  if number := fates.count('alone'):
    parts.append(
      f'{plural(number, "cluster")} {_verb(number, "has", "have")} a single client, so nothing is left to split'
    )
  if number := fates.count('kept'):
    parts.append(f'{_clusters(number)} kept whole: a guard forbade the split')
  if number := fates.count('open'):
    parts.append(f'{_clusters(number)} not tested again before the last round')
  return f'{plural(count, "split")}, in {when}, made {plural(leaves, "cluster")}; {"; ".join(parts)}.'


def _why_none(recursion: Recursion) -> str:
  everyone = f'all {recursion.num_clients} clients' if recursion.num_clients > 1 else 'the only client'
  if not recursion.tests:
    return f'the training of {everyone} was never found stationary, so nothing was tested'
  last = recursion.tests[-1]
  if last.verdict == 'stopped':
    were = _verb(recursion.num_clients, 'was', 'were')
    return f'{everyone} {were} found stationary after round {last.round} and stopped: {SHORT}'
  often = '' if len(recursion.tests) == 1 else f', tested {len(recursion.tests)} times, the last time'
  return f'{everyone} were kept whole{often} after round {last.round}: {last.reason or "a guard forbade it"}'


def _cut_groups(recursion: Recursion, main: tuple[str, np.ndarray | None]) -> str:
  """Says whether a split put clients of one planted group into both halves."""
  name, groups = main
  if groups is None or not recursion.splits:
    return ''
  faults = []
  for test in recursion.splits:
    first, second = (set(groups[half].tolist()) for half in test.halves)
    if shared := sorted(first & second):
      faults.append(f'the split after round {test.round} cut through {_groups(shared)}')
  if not faults:
    return f'No split cut through a planted group (“{name}”).'
  more = f', and {len(faults) - 3} more did' if len(faults) > 3 else ''
  return capital(f'{series(faults[:3])}{more} (“{name}”).')


def _tests(run: FinishedRun, recursion: Recursion) -> Table:
  rows = [
      (
          t.round, len(t.members), _verdict(t), _halves(run, t),
          _similarity(t.cross_similarity), '–' if t.similarity_gap is None else score(t.similarity_gap),
          f'{t.mean_update_norm:.3g}', f'{t.max_update_norm:.3g}',
      )
      for t in recursion.tests
  ]  # fmt: skip
  header = (
      'round', 'clients', 'verdict', 'halves', 'similarity across', 'gap', 'mean norm', 'top norm',
  )  # fmt: skip
  return Table(header, rows, (0, 1, 4, 5, 6, 7))


def _verdict(test: SplitTest) -> Cell:
  look = 'warn' if test.warning else _LOOKS.get(test.verdict, 'none')
  return Cell(test.verdict, (test.reason,), f'chip {look}', _WIDE)


def _halves(run: FinishedRun, test: SplitTest) -> Cell:
  if not test.halves:
    return Cell('', (_described(run, test.members),), note_look=_WIDE)
  sizes = ' + '.join(str(len(half)) for half in test.halves)
  return Cell(sizes, [_described(run, half) for half in test.halves], note_look=f'members {_WIDE}')


def _described(run: FinishedRun, members: np.ndarray) -> str:
  """Says who the members are: by planted group where there is one, else by their ids."""
  if run.truths:
    return composition(members, next(iter(run.truths.values())))
  names = [client(run.client_ids[k]) for k in members]
  more = f' and {len(names) - _NAMED_CLIENTS} more' if len(names) > _NAMED_CLIENTS else ''
  return ', '.join(names[:_NAMED_CLIENTS]) + more


def _changes(run: FinishedRun, recursion: Recursion) -> Table | None:
  """Returns the accuracy of the clients of each half right before a split, right after it, and later; None if unknown."""
  accuracy = recursion.accuracy
  if accuracy is None or not recursion.splits:
    return None

  def mean(at: int, half: np.ndarray) -> float | None:
    return float(accuracy[at - 1, half].mean()) if 1 <= at <= len(accuracy) else None

  rows = []
  for test in recursion.splits:
    for half in test.halves:
      until = _trained_until(recursion, test, half, len(accuracy))
      before, after, later = mean(test.round, half), mean(test.round + 1, half), mean(until, half)
      change = None if before is None or after is None else after - before
      better = '–'
      if change is not None:
        better = f'{int((accuracy[test.round, half] > accuracy[test.round - 1, half]).sum())} of {len(half)}'
      rows.append((
          test.round, len(half), Cell('', (_described(run, half),), note_look=f'members {_WIDE}'), percent(before), percent(after),
          points(change), better, '–' if until <= test.round else Cell(percent(later), (f'round {until}',)),
      ))  # fmt: skip
  header = (
      'round', 'clients', 'who', 'right before', 'next round', 'change', 'better', 'at the end',
  )  # fmt: skip
  return Table(header, rows, (0, 1, 3, 4, 5, 6, 7))


def _trained_until(recursion: Recursion, test: SplitTest, half: np.ndarray, last: int) -> int:
  members = set(half.tolist())
  again = [t.round for t in recursion.splits if t.round > test.round and set(t.members.tolist()) == members]
  return min(again, default=last)


def _similarity(value: float | None) -> str:
  return '–' if value is None else signed(value, 2)


def _groups(numbers: Sequence[int]) -> str:
  return f'group{"" if len(numbers) == 1 else "s"} {series([str(number) for number in numbers])}'


def _clusters(count: int) -> str:
  return f'{plural(count, "cluster")} {_verb(count, "was", "were")}'


def _verb(count: int, one: str, many: str) -> str:
  return one if count == 1 else many
