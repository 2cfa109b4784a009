"""Claims that papers make in words, each as a check over seeds that can come out against the paper.

A claim is made of parts: numbers, one a seed, that must lie in a zone (scorecard/verdicts.py). "In every row" is a part a row, all
of which must hold, so that the claim waits until all were run; one that does not hold is enough to fail it. With one or two seeds
nothing is decided.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tff_cluster.base.words import plural, series, signed
from tff_cluster.scorecard import units, verdicts
from tff_cluster.scorecard.cells import Read
from tff_cluster.scorecard.intervals import student_interval
from tff_cluster.scorecard.rows import Ours
from tff_cluster.scorecard.verdicts import NOT_DECIDABLE, NOT_RUN

HOLDS, FAILS = 'holds', 'fails'
VERDICTS = (HOLDS, FAILS, verdicts.UNDECIDED, *verdicts.FEW.values(), NOT_DECIDABLE, NOT_RUN)
_OF_PLACE = {verdicts.INSIDE: HOLDS, verdicts.OUTSIDE: FAILS}
_LEVEL = 'a level is one of the paper’s own setting'
_PRINTED = 'the number that is its limit is one of the paper’s own setting'
# Points, of pairs of clients: between those that hold a common label and the others. A clustering that ignores labels has 0.
ALIKE = 5.0
_NAMED = 4  # Parts, or missing rows, that are named; the others are counted.

Rows = Mapping[str, Ours]
# Our number by seed; no seed at all where it was not measured.
Reading = Callable[[Rows], Mapping[int, float]]


@dataclasses.dataclass(frozen=True)
class Finding:
  """How a claim fared: one of VERDICTS, our numbers in words, and what a reader must know."""

  verdict: str
  ours: str
  note: str = ''


def show_points(value: float) -> str:
  """Returns a difference in percentage points, signed: '+1.25 points'."""
  return f'{signed(value, 2)} points'


def show_percent(value: float) -> str:
  """Returns a number in percent: '93.40%'."""
  return f'{value:.2f}%'


@dataclasses.dataclass(frozen=True)
class Part:
  """A number that a claim needs to lie in a zone.

  Attributes:
    name: What it is of, for instance a row.
    rows: The rows that it is read from.
    read: Our number, by seed.
    low, high: The zone.
    show: Prints a number.
    is_answer: Whether the number is 1 for yes and 0 for no: then the zone is ignored, and it must be yes in every seed.
    undecidable: Returns why its rows cannot tell, empty where they can; other parts decide without it.
  """

  name: str
  rows: tuple[str, ...]
  read: Reading
  low: float = -math.inf
  high: float = math.inf
  show: Callable[[float], str] = show_points
  is_answer: bool = False
  undecidable: Callable[[Rows], str] | None = None

  def reason(self, rows: Rows) -> str:
    """Returns why its rows, where all of them were run, cannot tell."""
    own = {name: rows[name] for name in self.rows if name in rows}
    return self.undecidable(own) if self.undecidable is not None and len(own) == len({*self.rows}) else ''

  def place(self, rows: Rows, inside_of: int = 1, outside_of: int = 1) -> tuple[str, list[float]]:
    """Returns where the mean lies (verdicts.place), NOT_RUN where a row is missing or has no such number; and our numbers.

    NOT_DECIDABLE where they cannot tell.
    """
    if not all(name in rows for name in self.rows):
      return NOT_RUN, []
    values = list(self.read(rows).values())
    if not values:
      return NOT_RUN, []
    if self.reason(rows):
      return NOT_DECIDABLE, values
    if self.is_answer:
      return verdicts.place_of_answers([value == 1.0 for value in values]), values
    return verdicts.place(values, self.low, self.high, inside_of, outside_of), values

  def told(self, values: Sequence[float]) -> str:
    """Returns numbers in words: their mean, and its 95% interval over seeds; or in how many seeds it is so."""
    if self.is_answer:
      return f'in {sum(value == 1.0 for value in values)} of {plural(len(values), "seed")}'
    middle = _middle(values)
    if math.isnan(middle):
      return 'not defined'
    mean = self.show(middle)
    known = [value for value in values if not math.isnan(value)]
    if infinite := sum(map(math.isinf, known)):
      several = infinite < len(known)
      return f'{mean} (infinite in {infinite} of {plural(len(known), "seed")}, left out)' if several else mean
    if len(known) < 2:
      return mean
    interval = student_interval(known)
    assert interval.low is not None and interval.high is not None
    # Without the unit, which stands behind the mean.
    low, high = (self.show(end).split()[0].rstrip('%x') for end in (interval.low, interval.high))
    return mean if low == high else f'{mean} ({low} to {high})'


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim that a paper makes about a table or figure.

  Attributes:
    words: What is claimed, with the limit that decides where the paper gives none.
    source: Where.
    published: The paper's own numbers for it, in words.
    parts: What it needs.
    enough: How many parts must hold; None: all.
    undecidable: Returns why these rows cannot tell, empty where they can; asked where all rows were run, and where those that were run
      decide without the others.
    is_of_its_setting: Whether a limit of it is a number that the paper printed of its own setting.
  """

  words: str
  source: str
  published: str
  parts: tuple[Part, ...]
  enough: int | None = None
  undecidable: Callable[[Rows], str] | None = None
  is_of_its_setting: bool = False

  @property
  def names(self) -> tuple[str, ...]:
    """The rows that it is about, each once."""
    return tuple(dict.fromkeys(name for part in self.parts for name in part.rows))

  @property
  def is_of_levels(self) -> bool:
    """Whether it is about percent as they are, not about differences or ratios: another setting has levels of its own."""
    return any(part.show is show_percent for part in self.parts)

  def check(self, rows: Rows, remark: str = '') -> Finding:
    """Returns how the claim fares.

    Args:
      rows: Ours by name, those that were run; other rows than those of the claim do not matter.
      remark: What was run instead of the paper's experiment; empty in the paper's setting.
    """
    about = {name: rows[name] for name in self.names if name in rows}
    # That all are inside is an intersection-union test (Berger 1982), which takes no correction; that some are, or are outside, does.
    count = len(self.parts)
    inside_of = 1 if self.enough in (None, count) else count
    found = [part.place(about, inside_of, count) for part in self.parts]
    if not any(values for _, values in found):
      return Finding(
        NOT_RUN, '–', self._missing(about) or self._apart(about) or 'a number of it was not measured'
      )
    reason = '' if not remark else _PRINTED if self.is_of_its_setting else _LEVEL if self.is_of_levels else ''
    place = verdicts.agreed([where for where, _ in found], self.enough)
    # Some rows may be enough to decide it, and then they must be able to.
    is_told = len(about) == len(self.names) or place in _OF_PLACE
    if not reason and self.undecidable is not None and is_told:
      reason = self.undecidable(about)
    verdict = NOT_DECIDABLE if reason else _OF_PLACE.get(place, place)
    departures = dict.fromkeys(phrase for ours in about.values() for phrase in ours.departures)
    of_parts = dict.fromkeys(part.reason(about) for part in self.parts)
    notes = [reason, *of_parts, self._against(found), self._missing(about), *departures, _seeds(found)]
    return Finding(verdict, self._told(found), '; '.join(filter(None, notes)))

  def _told(self, found: Sequence[tuple[str, list[float]]]) -> str:
    """Returns the numbers of a single part, else how many parts hold and between what they lie."""
    measured = [(part, *where) for part, where in zip(self.parts, found, strict=True) if where[1]]
    # Those that cannot tell are counted only where there are no others.
    measured = [each for each in measured if each[1] != NOT_DECIDABLE] or measured
    if len(self.parts) == 1:
      part, _, values = measured[0]
      return part.told(values)
    held = sum(_on_side(*each) for each in measured)
    some = '' if len(measured) == len(self.parts) else ' measured'
    undecided = sum(where == verdicts.UNDECIDED for _, where, _ in measured)
    share = f'so in {held} of {len(measured)}{some}' + (f', undecided in {undecided}' if undecided else '')
    kinds = {(part.show, part.is_answer) for part, *_ in measured}
    if len(kinds) > 1 or measured[0][0].is_answer:
      return share
    means = sorted(_middle(values) for *_, values in measured if not any(map(math.isnan, values)))
    ends = dict.fromkeys(measured[0][0].show(end) for end in means[:1] + means[-1:])
    return f'{" to ".join(ends) or "not defined"} ({share})'

  def _against(self, found: Sequence[tuple[str, list[float]]]) -> str:
    """Returns which parts are not on the claim's side, and of several which are undecided, each with its numbers."""
    told: dict[bool, list[str]] = {False: [], True: []}
    for part, (where, values) in zip(self.parts, found, strict=True):
      undecided = where == verdicts.UNDECIDED
      if where == NOT_DECIDABLE:
        continue
      if values and not _on_side(part, where, values) and not (undecided and len(self.parts) == 1):
        told[undecided].append(f'{part.name} {part.told(values)}' if len(self.parts) > 1 else '')
    if any(where in verdicts.FEW.values() for where, _ in found) and not any(told.values()):
      return 'on the claim’s side'
    notes = []
    for undecided, names in told.items():
      more = [f'and {len(names) - _NAMED} more'] if len(names) > _NAMED else []
      listed = '; '.join([*filter(None, names[:_NAMED]), *more])
      if names:
        notes.append(f'{"undecided" if undecided else "not on the claim’s side"}: {listed}'.rstrip(': '))
    return '; '.join(notes)

  def _apart(self, about: Rows) -> str:
    """Returns a note where rows that are compared were run with other seeds each."""
    for part in self.parts:
      seeds = [set(about[name].seeds) for name in part.rows if name in about]
      if len(seeds) > 1 and all(seeds) and not set.intersection(*seeds):
        return 'rows that it compares have no seed in common'
    return ''

  def _missing(self, about: Rows) -> str:
    absent = [name for name in self.names if name not in about]
    more = [f'and {len(absent) - _NAMED} more'] if len(absent) > _NAMED else []
    return f'not run: {"; ".join([*absent[:_NAMED], *more])}' if absent else ''


@dataclasses.dataclass(frozen=True)
class RuledClaim:
  """A claim that a rule of its own decides: of toy problems, which are computed and have no seeds, or of shares of runs.

  Attributes:
    words, source, published: See Claim.
    names: The rows that it is about; all must have been run.
    rule: Checks it on these rows, or on the results of toy problems, by name in this order.
  """

  words: str
  source: str
  published: str
  names: tuple[str, ...]
  rule: Callable[[Mapping[str, Any]], Finding]

  def check(self, rows: Mapping[str, Any], remark: str = '') -> Finding:
    """Returns how the claim fares; see Claim.check. Its rule is the same in every setting."""
    del remark
    absent = [name for name in self.names if name not in rows]
    if absent:
      return Finding(NOT_RUN, '–', f'not run: {"; ".join(absent)}')
    return self.rule({name: rows[name] for name in self.names})


AnyClaim = Claim | RuledClaim


def judged(condition: object, ours: str, note: str = '') -> Finding:
  """Returns the finding that a claim holds, or fails."""
  return Finding(HOLDS if condition else FAILS, ours, note)


def of(row: str, read: Read) -> Reading:
  """Returns a row's numbers by seed; a number that is None is nan."""

  def by_seed(rows: Rows) -> dict[int, float]:
    values = read(rows[row])
    if not values:
      return {}
    told = [math.nan if value is None else float(value) for value in values]
    return dict(zip(rows[row].seeds, told, strict=True))

  return by_seed


def combined(of_seed: Callable[..., float], readings: Sequence[Reading]) -> Reading:
  """Returns a number that is made of several, in the seeds that all of them have."""

  def by_seed(rows: Rows) -> dict[int, float]:
    found = [read(rows) for read in readings]
    seeds = [seed for seed in found[0] if all(seed in values for values in found)]
    return {seed: of_seed(*(values[seed] for values in found)) for seed in seeds}

  return by_seed


def less(high: Reading, low: Reading) -> Reading:
  """Returns the first number minus the second, seed by seed."""
  return combined(lambda a, b: math.nan if math.isinf(a) and a == b else a - b, (high, low))


def answer(row: str, read: Callable[[Ours], Sequence[bool]]) -> Part:
  """Returns the part that something is so, in every seed of a row."""
  return Part(row, (row,), of(row, read), is_answer=True)


def are_groups(truth: str) -> Callable[[Ours], list[bool]]:
  """Returns what tells by seed whether clusters are just the planted groups of a name; of no seed where they were not scored against them."""
  return lambda ours: [ari == 1.0 for ari in ours.recovery.get(truth, ())]


def above(
  name: str,
  rows: Sequence[str],
  high: Reading,
  low: Reading,
  margin: float = units.EQUIVALENT,
  show: Callable[[float], str] = show_points,
) -> Part:
  """Returns the part that a number is above another one by at least a margin; `show` prints their difference."""
  return Part(name, tuple(dict.fromkeys(rows)), less(high, low), low=margin, show=show)


def compared(
  row: str,
  high: Read,
  low: Read | None = None,
  against: str = '',
  margin: float = units.EQUIVALENT,
  show: Callable[[float], str] = show_points,
) -> Part:
  """Returns the part that a number of a row is above one of its own, or of another row in the seeds that both have.

  Args:
    row: The row.
    high: Reads its number.
    low: Reads the other one; None: as `high`.
    against: The row of the other number; empty: the same.
    margin, show: See `above`.
  """
  other = against or row
  name = row if other == row else f'{row} against {other}'
  return above(name, (row, other), of(row, high), of(other, low or high), margin, show)


def ordered(words: str, source: str, published: str, parts: Sequence[Part]) -> Claim:
  """Returns the claim that numbers are above others, in all parts, by a margin in points that they share; `words` get it added."""
  return Claim(f'{words} (by at least {parts[0].low:g} points)', source, published, tuple(parts))


def same(
  name: str, rows: Sequence[str], one: Reading, other: Reading, margin: float = units.EQUIVALENT
) -> Part:
  """Returns the part that two numbers are practically the same."""
  return Part(name, tuple(dict.fromkeys(rows)), less(one, other), -margin, margin)


def all_fedavg(rows: Rows) -> str:
  """Returns why rows cannot tell what clusters gain or cost where every run of them ended with one cluster; else nothing."""
  if any(count != 1 for ours in rows.values() for count in ours.num_clusters):
    return ''
  return 'every run ended with one cluster, which is FedAvg bit for bit: clustering can neither gain nor lose'


def unless(reason: Callable[[Rows], str], parts: Iterable[Part]) -> tuple[Part, ...]:
  """Returns parts that decide nothing where a reason is given for their rows."""
  return tuple(dataclasses.replace(part, undecidable=reason) for part in parts)


def all_alone(rows: Rows) -> str:
  """Returns why rows cannot tell what clusters gain or cost where every client of one of them is alone in every run; else nothing."""
  alone = [name for name, ours in rows.items() if ours.alone and all(ours.alone)]
  return (
    f'every client is alone in every run of {series(alone)}, which is training without the others'
    if alone
    else ''
  )


def together(row: str) -> Part:
  """Returns the part that clients with a common label are more often in one cluster than others, by ALIKE points of pairs."""

  def read(ours: Ours) -> list[float]:
    return [math.nan if None in pair else 100.0 * (pair[0] - pair[1]) for pair in ours.together]  # type: ignore[operator]

  return Part(row, (row,), of(row, read), ALIKE)


def all_alike(rows: Rows) -> str:
  """Returns why rows cannot tell whether similar clients are together, where all are similar or none is; else nothing."""
  pairs = [pair for ours in rows.values() for pair in ours.together]
  return (
    'all pairs of clients hold a common label, or none does' if any(None in pair for pair in pairs) else ''
  )


def _on_side(part: Part, where: str, values: Sequence[float]) -> bool:
  """Returns whether a part holds; with too few seeds to tell whether its mean lies in the zone."""
  if where not in verdicts.FEW.values():
    return where == verdicts.INSIDE
  if part.is_answer:
    return all(value == 1.0 for value in values)
  return verdicts.is_within(sum(values) / len(values), part.low, part.high)


def _middle(values: Sequence[float]) -> float:
  """Returns the mean of the finite ones; where there is none what all of them are, and nan where that is not one number."""
  finite = [value for value in values if math.isfinite(value)]
  if finite:
    return sum(finite) / len(finite)
  ends = {value for value in values if not math.isnan(value)}
  return ends.pop() if len(ends) == 1 else math.nan


def _seeds(found: Sequence[tuple[str, list[float]]]) -> str:
  """Returns in how many seeds the parts were read."""
  counts = {len(values) for _, values in found if values}
  return plural(counts.pop(), 'seed') if len(counts) == 1 else f'{min(counts)} to {max(counts)} seeds'
