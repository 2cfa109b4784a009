"""The first screen of a page: the answer in one sentence, one table and one picture, of the lines that programs print.

Whether a clustering helped or harmed takes a verdict over seeds (scorecard/paired_verdicts.py). With fewer seeds than that, and in one run,
a 95% interval that excludes zero says on which side it came out; where it holds zero, nothing is shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tff_cluster.base.words import percent, plural, score, series
from tff_cluster.experiment.result_parts import SummaryLine
from tff_cluster.experiment.sections import PERSONALIZED
from tff_cluster.report.figures import base, gains
from tff_cluster.report.pages import Cell, Section, Table
from tff_cluster.report.pictures import Picture
from tff_cluster.scorecard import paired_verdicts
from tff_cluster.scorecard.contenders import BUDGETS, REFERENCES, ROUNDS
from tff_cluster.scorecard.intervals import Interval

HEADING = 'The answer'
# Classes of what lies above zero, holds it, and lies below.
LOOKS = {'above': 'good', 'unclear': 'none', 'same': 'none', 'below': 'bad'}
# What a verdict is shown as.
OF_VERDICT = {
  paired_verdicts.HELPS: 'above',
  paired_verdicts.HARMS: 'below',
  paired_verdicts.EQUIVALENT: 'same',
  paired_verdicts.UNDECIDED: 'unclear',
}
_NOTES = {'same': 'practically the same', 'unclear': 'not shown'}
_MOST_NAMES = 3
_ALONE, *_ = PERSONALIZED


def section(
  headline: str,
  numbers: Table,
  about: Sequence[str],
  alarms: Sequence[str],
  pictures: Sequence[Picture],
  links: Mapping[str, str] | None = None,
) -> Section:
  """Returns the first screen.

  Args:
    headline: The answer in one sentence.
    numbers: The one table.
    about: How to read it, a paragraph each.
    alarms: What must not be overlooked.
    pictures: The one picture; none where there is nothing to draw.
    links: Where to go on: addresses by their words.
  """
  data = {
    'headline': headline, 'numbers': numbers, 'about': about, 'alarms': alarms, 'pictures': pictures, 'links': links or {},
  }  # fmt: skip
  return Section(HEADING, 'first_screen.html', 'first', data)


def sentence(
  lines: Sequence[SummaryLine], seeds: Sequence[int], verdicts: Mapping[str, str] | None = None
) -> str:
  """Returns which clusterings helped the clients, which harmed them and of which nothing is shown, in one sentence.

  Args:
    lines: See scorecard.summary, FedAvg without clusters first. Oracles are told where nothing else was run.
    seeds: What they are over.
    verdicts: Over seeds, by label (paired_verdicts.judge). None: of one run, which has none.
  """
  every = [line for line in lines if line.kind not in REFERENCES]
  told = [line for line in every if line.kind != 'oracle'] or every
  if not told:
    return 'No clustering was run, so there is nothing to compare with FedAvg.'
  by_side: dict[str, list[SummaryLine]] = {'above': [], 'below': [], 'same': [], 'unclear': []}
  for line in sorted(told, key=lambda line: -_gain(line).mean):
    by_side[_place(line, verdicts)].append(line)
  few = paired_verdicts.too_few(len(seeds))
  clauses = list(_clauses(by_side, told, bool(few)))
  ending = f'; {few} {"gives" if len(seeds) == 1 else "give"} no verdict' if few else ''
  answer = (
    f'Against FedAvg without clusters at {BUDGETS[ROUNDS]}, {_over(seeds)}: {"; ".join(clauses)}{ending}.'
  )
  return f'{answer}{_alone(lines, by_side["above"], told)}'


def _alone(lines: Sequence[SummaryLine], helped: Sequence[SummaryLine], told: Sequence[SummaryLine]) -> str:
  """Returns a sentence on the clusterings that gain no more than clients have without any federation; empty where none does."""
  alone = next((line.mean_client_accuracy for line in lines if line.kind == _ALONE), None)
  no_more = [line for line in helped if alone is not None and line.mean_client_accuracy <= alone]
  if alone is None or not no_more:
    return ''
  return f' But every client alone has {percent(alone)}, no less than {_names(no_more, told)}.'


def _place(line: SummaryLine, verdicts: Mapping[str, str] | None) -> str:
  """Returns the side of a line; that of its interval where there are too few seeds for a verdict."""
  verdict = '' if verdicts is None else verdicts[line.label]
  return OF_VERDICT.get(verdict) or _gain(line).side


def _clauses(
  by_side: Mapping[str, list[SummaryLine]], told: Sequence[SummaryLine], few: bool
) -> Iterator[str]:
  """Yields a clause for each side; what came out on a side under few seeds has neither helped nor harmed."""
  if helped := by_side['above']:
    what = 'came out above it' if few else 'helped the clients'
    yield f'{_names(helped, told)} {what}{_extreme(helped[0], helped)}'
  if harmed := by_side['below']:
    what = 'came out below it' if few else f'harmed {"them" if helped else "the clients"}'
    yield f'{_names(harmed, told)} {what}{_extreme(harmed[-1], harmed)}'
  if same := by_side['same']:
    alone = _extreme(same[0], same) if len(same) == 1 else ''
    yield f'practically the same (within {paired_verdicts.WITHIN}) came out for {_names(same, told)}{alone}'
  if unclear := by_side['unclear']:
    alone = _extreme(unclear[0], unclear) if len(unclear) == 1 else ''
    every_one = len(unclear) == len(told) > _MOST_NAMES
    whom = f'any of the {len(told)} clusterings' if every_one else _names(unclear, told)
    yield f'no difference is shown for {whom}{alone}'


def table(
  lines: Sequence[SummaryLine], seeds: Sequence[int], verdicts: Mapping[str, str] | None = None
) -> Table:
  """Returns a row a contender: accuracy, gain with its interval, groups found, cost; for the arguments see `sentence`."""
  header = ('contender', 'gain, points', '95% interval', 'accuracy', 'groups found', 'cost, × FedAvg')
  few = bool(paired_verdicts.too_few(len(seeds)))
  return Table(header, [_row(line, lines[0], verdicts, few) for line in lines], range(1, len(header)))


def about(seeds: Sequence[int]) -> list[str]:
  """Returns how to read the table of these seeds."""
  what = 'Accuracies are of clients with their own models on their own test rows, gains are over FedAvg without clusters, at equal rounds. '
  if len(seeds) == 1:
    return [
      f'{what}Intervals are over the clients of one seed and tell nothing of others: run several with phases.compare.'
    ]
  return [
    f'{what}Intervals are over {plural(len(seeds), "seed")} and clients (the wider of a bootstrap of both and of Student’s interval '
    'over seeds).'
  ]


def drawn(lines: Sequence[SummaryLine]) -> base.Drawn | None:
  """Returns the picture of the gains; None where nobody has one."""
  found = [
    gains.Gain(line.label, line.kind, BUDGETS[ROUNDS], _gain(line))
    for line in lines
    if line.difference is not None
  ]
  return picture(gains.draw(found), '') if found else None


def picture(figure: Any, more: str) -> base.Drawn:
  """Returns a drawing of gains as the picture of the first screen, with more words for its caption."""
  caption = (
    f'Marks are means, lines their 95% intervals. {more}Where a line touches zero no difference is shown; over seeds a verdict takes a sign '
    'test, too.'
  )
  return 'gains', 'answer', 'Gain over FedAvg without clusters', caption, figure


def _over(seeds: Sequence[int]) -> str:
  return f'in one run (seed {seeds[0]})' if len(seeds) == 1 else f'over {plural(len(seeds), "seed")}'


def _gain(line: SummaryLine) -> Interval:
  assert line.difference is not None  # Only FedAvg has none.
  low, high = line.interval or (None, None)
  return Interval(line.difference, low, high)


def _names(chosen: Sequence[SummaryLine], every: Sequence[SummaryLine]) -> str:
  if len(chosen) <= _MOST_NAMES:
    return series([line.label for line in chosen])
  count = len(every)
  return f'all {count} clusterings' if len(chosen) == count else f'{len(chosen)} of {count} clusterings'


def _extreme(line: SummaryLine, chosen: Sequence[SummaryLine]) -> str:
  """Returns the gain of the only one in parentheses, or of that which stands out among several."""
  gain = _gain(line)
  mean, span = gain.points
  interval = f'95% interval {span.removesuffix(" points")}' if span else 'no interval: one client'
  return f'{"" if len(chosen) == 1 else f", {line.label} most"} ({mean}, {interval})'


def _row(
  line: SummaryLine, fedavg: SummaryLine, verdicts: Mapping[str, str] | None, few: bool
) -> tuple[Any, ...]:
  """Returns the cells of a line; where there are few seeds nothing is coloured as if it were a verdict."""
  kind = '' if line.kind in REFERENCES else line.kind
  cells = [Cell(line.label, (kind,)), '–', '–', percent(line.mean_client_accuracy), _groups(line)]
  if line.difference is not None:
    gain, side = _gain(line), _place(line, verdicts if line.kind not in REFERENCES else None)
    mean, span = gain.without_unit
    look = LOOKS['unclear' if few else side]
    cells[1:3] = Cell(mean, (_NOTES.get(side),), f'chip {look}'), span or '–'
  return (*cells, _cost(line, fedavg))


def _groups(line: SummaryLine) -> Cell | str:
  """Returns how many clusters there are and how near they come to the planted groups, where there are some."""
  count = line.num_clusters
  if count is None:
    return '–'
  note = None if line.groups_found is None else f'{line.groups_found[0]} {score(line.groups_found[1])}'
  return Cell(f'{count:,}' if isinstance(count, int) else f'{count:,.1f}', (note,))


def _cost(line: SummaryLine, fedavg: SummaryLine) -> Cell:
  """Returns how many times FedAvg's client-rounds were spent, and how many these are."""
  rounds, paid = line.client_rounds or 0, fedavg.client_rounds or 0
  return Cell(f'{rounds / paid:.2f}' if paid else '–', (f'{rounds:,.0f} client-rounds',))
