"""The rounds of McMahan et al. 2017 beside those of our replication of FedAvg (figure 1 of Miles et al. 2024)."""

import dataclasses
from collections.abc import Mapping, Sequence

from tff_cluster.papers import mcmahan2017, miles2024, tables
from tff_cluster.reporting.fedex.curve_measures import TARGETS, CurveMeasures, measure
from tff_cluster.reporting.table_claims import Reproduced
from tff_cluster.reporting.table_scorecard import ROUNDS_FACTOR, Line, scale_remark
from tff_cluster.scorecard.intervals import student_interval
from tff_cluster.scorecard.words import plural

_SOURCE = 'McMahan et al. 2017, table 2'


@dataclasses.dataclass(frozen=True)
class RoundsLine(Line):
  """A line of rounds to a target.

  Attributes:
    ran: The rounds that we ran; None where the row was not run. Where it was and `ours` is None, some seed does not
      reach the target in them.
  """

  ran: int | None = None

  @property
  def agrees(self) -> bool | None:
    """Whether ours is the published number within ROUNDS_FACTOR; None where both are beyond the rounds that we ran."""
    if self.published is None or self.ran is None:
      return None
    if self.ours is None:
      return False if self.published <= self.ran else None
    return max(self.ours / self.published, self.published / self.ours) <= ROUNDS_FACTOR

  @property
  def is_undecided(self) -> bool:
    """Whether both are beyond the rounds that we ran."""
    return self.published is not None and self.ran is not None and self.agrees is None


def rounds_column(target: float) -> str:
  """Returns the column of the rounds to a target in percent."""
  return f'rounds_to_{target:g}'


def scorecard(
  published: tables.Published, rows: Mapping[str, Reproduced], scale: str, scale_words: str
) -> list[Line]:
  """Returns the lines of figure 1: rounds to 99% beside McMahan's, and what of ours has no printed number.

  Args:
    published: The figure.
    rows: Our rows by name; those that are missing were not run.
    scale: 'paper', or the name of another scale.
    scale_words: What that scale scaled down.
  """
  remark = scale_remark(scale, scale_words)
  lines: list[Line] = []
  for row in published.rows:
    found = measure(rows[row.name]) if row.name in rows else None
    printed = miles2024.REPLICATED.get(row.name)
    for target in sorted(TARGETS, reverse=True):
      number = printed.rounds if printed is not None and target == mcmahan2017.TARGET else None
      # What was not run has no lines but the printed ones.
      if found is not None or number is not None:
        lines.append(_rounds_line(published, row.name, target, number, found, remark))
    if found is not None:
      columns = {'accuracy_best': found.best, 'accuracy_end': found.end, 'fluctuation': found.fluctuation}
      lines += [_line(published, row.name, name, values, remark) for name, values in columns.items()]
  return lines


def _rounds_line(
  published: tables.Published,
  row: str,
  target: float,
  number: int | None,
  found: CurveMeasures | None,
  remark: str,
) -> RoundsLine:
  source = published.source if number is None else _SOURCE
  told = (published.name, row, rounds_column(target), number, None)
  if found is None:
    return RoundsLine(*told, *(None,) * 5, 'not run', source)
  values = found.rounds_to[target]
  reached = [value for value in values if value is not None]
  notes = [] if number is not None else ['the paper prints no number here']
  if len(reached) < len(values):
    notes.append(
      f'not in {found.ran} rounds'
      + (f' in {len(values) - len(reached)} of {len(values)} seeds' if reached else '')
    )
    line = RoundsLine(*told, *(None,) * 5, '', '; '.join([*notes, source]), found.ran)
  else:
    interval = student_interval(reached)
    if interval.low is None:
      notes.append('one seed, so no interval')
    difference = None if number is None else interval.mean - number
    line = RoundsLine(
        *told, interval.mean, interval.low, interval.high, None, difference, '', '; '.join([*notes, source]), found.ran,
    )  # fmt: skip
  return dataclasses.replace(line, verdict=_verdict(line, remark))


def _verdict(line: RoundsLine, remark: str) -> str:
  within = plural(line.ran or 0, 'round')
  if line.published is None:
    return f'nothing to compare ({remark})' if remark else 'nothing to compare'
  if line.is_undecided:
    return f'undecided: neither in {within}' + (f' ({remark})' if remark else '')
  if line.agrees:
    words = f'within a factor of {ROUNDS_FACTOR:g}'
    return f'{words} ({remark})' if remark else f'reproduced ({words})'
  if line.ours is None:
    return f'differs: not in {within}' + (f' ({remark})' if remark else '')
  ratio = line.ours / line.published
  side = f'ours takes {"more" if ratio > 1 else "fewer"}'
  return f'differs by a factor of {max(ratio, 1 / ratio):.2f} ({side}{f"; {remark}" if remark else ""})'


def _line(published: tables.Published, row: str, column: str, values: Sequence[float], remark: str) -> Line:
  interval = student_interval(values)
  notes = ['the paper prints no number here', *(['one seed, so no interval'] if interval.low is None else [])]
  verdict = f'nothing to compare ({remark})' if remark else 'nothing to compare'
  return Line(
      published.name, row, column, None, None, interval.mean, interval.low, interval.high, None, None, verdict,
      '; '.join([*notes, published.source]),
  )  # fmt: skip
