"""FedEM as it is printed, with a fault for each claim."""

from collections.abc import Iterator

from tests.made_up.scorecard_rows import changed, make_ours
from tff_cluster.papers import marfoq2021
from tff_cluster.scorecard.rows import Ours

NAMES = tuple(marfoq2021.PUBLISHED)
TABLE = marfoq2021.PUBLISHED['fedem/table2']


def as_printed(**changes) -> dict[str, Ours]:
  """Returns all rows of one seed, some changed by their names."""
  rows = {}
  for row in TABLE.rows:
    alone, fedavg, tuned, fedem = marfoq2021.PRINTED[row.name.partition(',')[0]]
    told = {'over_rows': (fedem,)} if row.clustering else {'alone_over_rows': (alone,)}
    told['fine_tuned_over_rows'] = (tuned,) if 'fine_tuning' in row.settings else ()
    rows[row.name] = make_ours(row, seeds=(0,), baseline_over_rows=(fedavg,), rounds_end=200, **told)
  return {name: changed(row, **changes.get(name, {})) for name, row in rows.items()}


def good(name: str) -> dict[str, Ours]:
  """Returns rows for which every claim holds."""
  del name
  return as_printed()


def bad(name: str) -> Iterator[tuple[str, dict[str, Ours]]]:
  """Yields how the words of a claim start, and rows on which it fails."""
  del name
  yield 'FedEM is more accurate than FedAvg,', as_printed(**{'EMNIST, FedEM': {'over_rows': (82.0,)}})
  yield (
    'FedEM is more accurate than FedAvg that',
    as_printed(**{'EMNIST, alone': {'fine_tuned_over_rows': (83.5,)}}),
  )
  yield 'FedEM is more accurate than clients', as_printed(**{'FEMNIST, alone': {'alone_over_rows': (80.0,)}})
  # FedAvg of FEMNIST is read beside FedEM, which has the same learning rate.
  yield 'FedAvg is more accurate', as_printed(**{'FEMNIST, FedEM': {'baseline_over_rows': (70.0,)}})
