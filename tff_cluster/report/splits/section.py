"""The section of report.html about a recursive bi-partition: what was tested, what was split, and what that gave."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base.words import client, percent, plural, points, score, series, signed
from tff_cluster.report.cluster_sections import composition
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.markup import Markup, table, tag
from tff_cluster.report.splits.pictures import SHORT, main_groups
from tff_cluster.report.splits_tree import Recursion, SplitTest, read_recursion

_OPEN_UP_TO = 12
_NAMED_ROUNDS = 6
_NAMED_CLIENTS = 6
_WIDE = 'min-width:9rem'  # Words in a column between numbers would get a syllable a line.
_LOOKS = {'split': 'good', 'stopped': 'none', 'kept': 'warn'}


def splits_section(
  run: FinishedRun, clustering: Mapping[str, Any], figures: Callable[[str], Sequence[Markup]]
) -> list[Markup]:
  """Returns the recursion of one clustering: what happened, its tests, accuracy around splits, and its pictures.

  Args:
    run: The run.
    clustering: One entry of results['clusterings'].
    figures: Returns the figures of a section, here of 'splits LABEL'.

  Returns:
    The content; empty where the clustering was found in one step.
  """
  recursion = read_recursion(run, clustering)
  if recursion is None:
    return []
  return [
    tag('p', tag('strong', story(recursion)), ' ', _cut_groups(recursion, main_groups(run))),
    *(
      tag('p', tag('strong', 'Take care. '), f'{t.warning}.', class_='alarm')
      for t in recursion.tests
      if t.warning
    ),
    *_rule(clustering['parameters']),
    *_tests(run, recursion),
    *_changes(run, recursion),
    *figures(f'splits {clustering["label"]}'),
  ]


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
  what = {fate: fates.count(fate) for fate in ('stopped', 'alone', 'kept', 'open')}
  parts = []
  if number := what['stopped']:
    parts.append(f'{_clusters(number)} stopped: {SHORT}')
  if number := what['alone']:
    parts.append(
      f'{plural(number, "cluster")} {_verb(number, "has", "have")} a single client, so nothing is left to split'
    )
  if number := what['kept']:
    parts.append(f'{_clusters(number)} kept whole: a guard forbade the split')
  if number := what['open']:
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
  text = f'{series(faults[:3])}{more} (“{name}”).'
  return text[0].upper() + text[1:]


def _rule(parameters: Mapping[str, Any]) -> list[Markup]:
  stationary, stopping = parameters.get('stationary_norm'), parameters.get('stopping_norm')
  if stationary is None or stopping is None:
    return []
  return [
      tag(
          'p', f'A cluster is tested when its training is stationary: the norm of the weighted mean update is below {stationary:g} '
          f'(eps_1). It is stopped where the norm of every client’s update is below {stopping:g} (eps_2); else it is parted so that '
          'the highest similarity of two updates across the halves is as low as possible (Sattler et al. 2019, eq. 6), unless a '
          'guard forbids it. The gap is by how much every client is at least more similar to one of its own half.',
          class_='note',
      )
  ]  # fmt: skip


def _tests(run: FinishedRun, recursion: Recursion) -> list[Markup]:
  if not recursion.tests:
    return []
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
  return _folded(header, rows, (0, 1, 4, 5, 6, 7), 'tests')


def _verdict(test: SplitTest) -> list[Markup]:
  chip = tag(
    'span', test.verdict, class_=f'chip {"warn" if test.warning else _LOOKS.get(test.verdict, "none")}'
  )
  return [chip, tag('div', test.reason, class_='note', style=_WIDE)] if test.reason else [chip]


def _halves(run: FinishedRun, test: SplitTest) -> list[Markup]:
  if not test.halves:
    return [tag('div', _described(run, test.members), class_='note', style=_WIDE)]
  sizes = ' + '.join(str(len(half)) for half in test.halves)
  return [
    tag('span', sizes),
    *(tag('div', _described(run, half), class_='members note', style=_WIDE) for half in test.halves),
  ]


def _described(run: FinishedRun, members: np.ndarray) -> str:
  """Says who the members are: by planted group where there is one, else by their ids."""
  if run.truths:
    return composition(members, next(iter(run.truths.values())))
  names = [client(run.client_ids[k]) for k in members]
  more = f' and {len(names) - _NAMED_CLIENTS} more' if len(names) > _NAMED_CLIENTS else ''
  return ', '.join(names[:_NAMED_CLIENTS]) + more


def _changes(run: FinishedRun, recursion: Recursion) -> list[Markup]:
  """Returns the accuracy of the clients of each half right before a split, right after it, and later."""
  accuracy = recursion.accuracy
  if accuracy is None or not recursion.splits:
    return []

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
          test.round, len(half), tag('div', _described(run, half), class_='members note', style=_WIDE), percent(before), percent(after),
          points(change), better, '–' if until <= test.round else [percent(later), tag('div', f'round {until}', class_='note')],
      ))  # fmt: skip
  header = (
      'round', 'clients', 'who', 'right before', 'next round', 'change', 'better', 'at the end',
  )  # fmt: skip
  return [
      tag('h3', 'Accuracy around the splits'),
      tag(
          'p', 'Means over the clients of a half on their own test rows: after the round of the split (the common model), after '
          'the next round (their own), and “at the end”, that is when the half was split again or after the last round.',
          class_='note',
      ),
      *_folded(header, rows, (0, 1, 3, 4, 5, 6, 7), 'halves'),
  ]  # fmt: skip


def _trained_until(recursion: Recursion, test: SplitTest, half: np.ndarray, last: int) -> int:
  members = set(half.tolist())
  again = [t.round for t in recursion.splits if t.round > test.round and set(t.members.tolist()) == members]
  return min(again, default=last)


def _folded(
  header: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[int], noun: str
) -> list[Markup]:
  shown = table(header, rows, numeric=numeric)
  return (
    [shown]
    if len(rows) <= _OPEN_UP_TO
    else [tag('details', tag('summary', f'All {len(rows)} {noun}'), shown)]
  )


def _similarity(value: float | None) -> str:
  return '–' if value is None else signed(value, 2)


def _groups(numbers: Sequence[int]) -> str:
  return f'group{"" if len(numbers) == 1 else "s"} {series([str(number) for number in numbers])}'


def _clusters(count: int) -> str:
  return f'{plural(count, "cluster")} {_verb(count, "was", "were")}'


def _verb(count: int, one: str, many: str) -> str:
  return one if count == 1 else many
