"""Claims that papers make in words, each as a check that can fail."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from tff_cluster.base.words import plural

VERDICTS = ('holds', 'fails', 'undecided', 'not run')
_NAMED = 6  # Missing rows that are named; the others are counted.


@dataclasses.dataclass(frozen=True)
class Finding:
  """How a claim fared: one of VERDICTS, our numbers in words, and what a reader must know."""

  verdict: str
  ours: str
  note: str = ''


def judged(condition: object, ours: str, note: str = '') -> Finding:
  """Returns the finding that a claim holds, or fails."""
  return Finding('holds' if condition else 'fails', ours, note)


@dataclasses.dataclass(frozen=True)
class Needs:
  """Which rows a claim is about.

  Attributes:
    groups: Names of rows that only say something together: one row each for a claim about every row, two each for a
      comparison.
    at_least: So many groups must have been run as a whole before the claim is checked.
  """

  groups: tuple[tuple[str, ...], ...]
  at_least: int

  @property
  def names(self) -> tuple[str, ...]:
    """The rows of all groups, each once."""
    return tuple(dict.fromkeys(name for group in self.groups for name in group))

  def complete(self, rows: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Returns the groups of which all rows were run."""
    return [group for group in self.groups if all(name in rows for name in group)]

  def missing(self, rows: Mapping[str, Any]) -> str:
    """Returns which rows were not run, in words; empty where enough were."""
    wanted = self.at_least - len(self.complete(rows))
    if wanted <= 0:
      return ''
    absent = [name for name in self.names if name not in rows]
    more = f'; and {len(absent) - _NAMED} more' if len(absent) > _NAMED else ''
    enough = f' (any {wanted} of them would do)' if self._are_single() and len(absent) > wanted else ''
    return f'not run: {"; ".join(absent[:_NAMED])}{more}{enough}'

  def share(self, rows: Mapping[str, Any]) -> str:
    """Returns on how much of what it is about a claim was checked, in words; empty for a single group."""
    done, total = len(self.complete(rows)), len(self.groups)
    if total == 1:
      return ''
    noun = 'row' if self._are_single() else 'comparison of rows'
    unit = plural(total, noun) if noun == 'row' else f'{total} comparisons of rows'
    return f'all {unit}' if done == total else f'only {done} of {unit}: the others were not run'

  def _are_single(self) -> bool:
    return all(len(group) == 1 for group in self.groups)


def whole(*rows: str) -> Needs:
  """Returns the needs of a claim about all of these rows together."""
  return Needs((rows,), 1)


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim that a paper makes about a table or figure.

  Attributes:
    words: What is claimed, with the limit that decides where the paper gives none.
    source: Where.
    published: The paper's own numbers for it, in words.
    needs: The rows that it is about.
    rule: Checks it on those rows (rows.Ours, or the results of toy problems), by name in the table's order; called only
      where enough of them were run.
  """

  words: str
  source: str
  published: str
  needs: Needs
  rule: Callable[[Mapping[str, Any]], Finding]

  def check(self, rows: Mapping[str, Any]) -> Finding:
    """Returns how the claim fares.

    Args:
      rows: Ours by name, those that were run; other rows than those of the claim do not matter.
    """
    missing = self.needs.missing(rows)
    if missing:
      return Finding('not run', '–', missing)
    run = {name for group in self.needs.complete(rows) for name in group}
    about = {name: rows[name] for name in self.needs.names if name in run}
    finding = self.rule(about)
    if finding.verdict == 'not run':
      return finding
    departures = [phrase for ours in about.values() for phrase in getattr(ours, 'departures', ())]
    notes = [finding.note, *dict.fromkeys(departures), self.needs.share(rows)]
    return dataclasses.replace(finding, note='; '.join(filter(None, notes)))
