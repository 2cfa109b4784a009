"""Rows that come with their owners: which owners become clients."""

from collections.abc import Mapping

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data.partitioners.rows import MIN_ROWS
from tff_cluster.data.population import natural_key


def select_writers(
  train_counts: Mapping[str, int],
  test_counts: Mapping[str, int],
  num_clients: int,
  min_examples: int,
  max_examples: int | None,
  rng: np.random.Generator,
) -> list[str]:
  """Draws writers with a permitted number of examples (training and test together).

  A writer also needs two training rows (one is for validation) and a test row.

  Args:
    train_counts, test_counts: Examples of each writer in the two splits.
    num_clients: How many to draw.
    min_examples, max_examples: Bounds, both inclusive; None: no upper bound.
    rng: Draws them. Drawing again out of those that were drawn gives the same ones.

  Returns:
    The writers' ids, ascending, numbers in them as numbers.

  Raises:
    InputError: if fewer qualify.
  """
  qualified = [
    writer
    for writer, train in train_counts.items()
    if train >= MIN_ROWS
    and (test := test_counts.get(writer, 0)) >= 1
    and min_examples <= train + test
    and (max_examples is None or train + test <= max_examples)
  ]
  qualified.sort(key=natural_key)
  if len(qualified) < num_clients:
    least = max(min_examples, MIN_ROWS + 1)
    bounds = f'at least {least}' if max_examples is None else f'{least} to {max_examples}'
    # Fewer than these nobody can have.
    narrow = min_examples > MIN_ROWS + 1 or max_examples is not None
    ways = [
      *(['ask for fewer clients'] if qualified else []),
      *([f'widen {argument("min_examples")} and {argument("max_examples")}'] if narrow else []),
    ]
    raise InputError(
      f'{argument("num_clients", num_clients)}: {len(qualified)} of {len({*train_counts, *test_counts})} writers qualify ({bounds} examples, '
      f'of these {MIN_ROWS} to train and 1 to test on); {" or ".join(ways) or "give data with more rows a writer"}'
    )
  chosen = rng.permutation(len(qualified))[:num_clients]
  return [qualified[i] for i in sorted(chosen)]


def rows_of_writers(owner: np.ndarray, writers: list[str]) -> list[np.ndarray]:
  """Returns int64[rows of the writer], ascending, for each writer.

  Args:
    owner: str[rows].
    writers: Ids; one without rows gets an empty array.
  """
  order = np.argsort(owner, kind='stable')
  ranked = owner[order]
  starts = np.searchsorted(ranked, writers, side='left')
  stops = np.searchsorted(ranked, writers, side='right')
  return [order[start:stop] for start, stop in zip(starts, stops, strict=True)]
