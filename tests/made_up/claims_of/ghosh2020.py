"""IFCA as it is printed, with a fault for each claim."""

from collections.abc import Iterator

from tests.made_up.scorecard_rows import changed, make_ours
from tff_cluster.papers import ghosh2020
from tff_cluster.scorecard.rows import Ours

NAMES = tuple(ghosh2020.PUBLISHED)
TABLE = ghosh2020.PUBLISHED['ifca/rotated_mnist']


def as_printed(seeds=(0,), **changes) -> dict[str, Ours]:
  """Returns all rows as printed in every seed; `changes` by the row's name without blanks."""
  rows = {}
  for row in TABLE.rows:
    m, n = (int(word.split()[1]) for word in row.name.split(', ')[:2])
    ifca, together, alone, _ = ghosh2020.PRINTED[m, n]
    told = {'alone_over_rows': (alone,) * len(seeds)}
    if row.clustering:
      told = {
        'over_rows': (ifca,) * len(seeds), 'baseline_over_rows': (together,) * len(seeds),
        'recovery': {'group': (1.0,) * len(seeds)}, 'empty_models': (0,) * len(seeds),
        'rounds_of_changes': ((2, 3),) * len(seeds),
      }  # fmt: skip
    rows[row.name] = make_ours(row, seeds=seeds, **told)
  return {name: changed(row, **changes.get(name.replace(' ', ''), {})) for name, row in rows.items()}


def good(name: str) -> dict[str, Ours]:
  """Returns rows for which every claim holds."""
  return _of(name, as_printed())


def bad(name: str) -> Iterator[tuple[str, dict[str, Ours]]]:
  """Yields how the words of a claim start, and rows on which it fails."""
  yield 'IFCA is more accurate than one', as_printed(**{'m2400,n100': {'baseline_over_rows': (95.6,)}})
  yield 'IFCA is more accurate than clients', as_printed(**{'m1200,n200,alone': {'alone_over_rows': (96.0,)}})
  yield (
    'The clusters are',
    _of(name, as_printed(**{'m1200,n200': {'recovery': {'group': (0.7,)}, 'empty_models': (1,)}})),
  )
  yield 'After round', _of(name, as_printed(**{'m1200,n200': {'rounds_of_changes': ((2, 14),)}}))


def _of(name: str, rows: dict[str, Ours]) -> dict[str, Ours]:
  """Returns the rows that a table has."""
  return {row.name: rows[row.name] for row in ghosh2020.PUBLISHED[name].rows}
