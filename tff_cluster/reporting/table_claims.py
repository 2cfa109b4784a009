"""Rows of ours beside a published table, and claims about them that can fail."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tff_cluster.papers.tables import Row
from tff_cluster.reporting.claims import Finding
from tff_cluster.scorecard.words import plural

_NAMED = 6  # Missing rows that are named; the others are counted.


@dataclasses.dataclass(frozen=True, eq=False)
class Reproduced:
  """Our numbers for a published row; percentages are means over seeds, rounds are counted from 1.

  A row of FedAvg alone has no clusters: what is about them is empty, and rounds_after is the last round.

  Attributes:
    row: The published row.
    percent: Percent by column of papers.tables.COLUMNS.
    baseline: The same of FedAvg without clusters, at the same rounds.
    seeds: The seeds.
    num_clusters: Clusters found, one number a seed.
    threshold: Distance thresholds used, one a seed; None where the method has none.
    rounds_after: The round right after the clustering, n + 1.
    rounds_end: The last round.
    accuracy_curve: Mean test accuracy in percent by round, from rounds_after on.
    baseline_curve: The same of FedAvg, from round 1 on.
    share_curve: Percent of clients at the target accuracy by round, from rounds_after on.
    baseline_share_curve: The same of FedAvg, from round 1 on.
    recovery: Adjusted Rand index by name of the planted groups, one a seed; None where it is not defined.
    choice: How the threshold was chosen (CHOICE in tff_cluster/results.py), one a seed; None where it was given.
    splits: The tests of CFL (SPLIT in tff_cluster/results.py), one list a seed; None for other methods.
    experts: The cluster models as experts (EXPERTS in tff_cluster/results.py, shares from 0 to 1), one a seed; None where
      they were not asked for.
    baseline_global: Accuracy in percent of FedAvg on the global test set after the last round, one a seed.
    shared: Clients that a planted group and a cluster have in common, int[groups][clusters] by name of the planted
      groups, one a seed.
    together: How often two clients are in one cluster, where they hold a common label and where they do not
      (reporting.cluster_contents), one pair a seed.
    baseline_by_seed: The curves behind baseline_curve, one a seed.
  """

  row: Row
  percent: Mapping[str, float]
  baseline: Mapping[str, float]
  seeds: tuple[int, ...]
  num_clusters: tuple[int, ...]
  threshold: tuple[float | None, ...]
  rounds_after: int
  rounds_end: int
  accuracy_curve: Mapping[int, float]
  baseline_curve: Mapping[int, float]
  share_curve: Mapping[int, float]
  baseline_share_curve: Mapping[int, float]
  recovery: Mapping[str, tuple[float | None, ...]]
  choice: tuple[Mapping[str, Any] | None, ...] = ()
  splits: tuple[Sequence[Mapping[str, Any]] | None, ...] = ()
  experts: tuple[Mapping[str, Any] | None, ...] = ()
  baseline_global: tuple[float, ...] = ()
  shared: Mapping[str, tuple[Sequence[Sequence[int]], ...]] = dataclasses.field(default_factory=dict)
  together: tuple[tuple[float | None, float | None], ...] = ()
  baseline_by_seed: tuple[Mapping[int, float], ...] = ()


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

  def complete(self, rows: Mapping[str, Reproduced]) -> list[tuple[str, ...]]:
    """Returns the groups of which all rows were run."""
    return [group for group in self.groups if all(name in rows for name in group)]

  def missing(self, rows: Mapping[str, Reproduced]) -> str:
    """Returns which rows were not run, in words; empty where enough were."""
    wanted = self.at_least - len(self.complete(rows))
    if wanted <= 0:
      return ''
    absent = [name for name in self.names if name not in rows]
    more = f'; and {len(absent) - _NAMED} more' if len(absent) > _NAMED else ''
    enough = f' (any {wanted} of them would do)' if self._are_single() and len(absent) > wanted else ''
    return f'not run: {"; ".join(absent[:_NAMED])}{more}{enough}'

  def share(self, rows: Mapping[str, Reproduced]) -> str:
    """Returns on how much of what it is about a claim was checked, in words; empty for a single group."""
    done, total = len(self.complete(rows)), len(self.groups)
    if total == 1:
      return ''
    noun = 'row' if self._are_single() else 'comparison of rows'
    unit = plural(total, noun) if noun == 'row' else f'{total} comparisons of rows'
    return f'all {unit}' if done == total else f'only {done} of {unit}: the others were not run'

  def _are_single(self) -> bool:
    return all(len(group) == 1 for group in self.groups)


@dataclasses.dataclass(frozen=True)
class TableClaim:
  """A claim that a paper makes about a table or figure.

  Attributes:
    words: What is claimed, with the limit that decides where the paper gives none.
    source: Where.
    published: The paper's own numbers for it, in words.
    needs: The rows that it is about.
    rule: Checks it on those rows, by name in the table's order; called only where enough of them were run.
  """

  words: str
  source: str
  published: str
  needs: Needs
  rule: Callable[[Mapping[str, Reproduced]], Finding]

  def check(self, rows: Mapping[str, Reproduced]) -> Finding:
    """Returns how the claim fares.

    Args:
      rows: Our rows by name, those that were run; other rows than those of the claim do not matter.
    """
    missing = self.needs.missing(rows)
    if missing:
      return Finding('not run', '–', missing)
    run = {name for group in self.needs.complete(rows) for name in group}
    finding = self.rule({name: rows[name] for name in self.needs.names if name in run})
    if finding.verdict == 'not run':
      return finding
    note = '; '.join(part for part in (finding.note, self.needs.share(rows)) if part)
    return dataclasses.replace(finding, note=note)
