"""Rows before they are given to clients."""

import dataclasses

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data.partitioners.counts import apportion


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
  """A labelled data set.

  Attributes:
    name: How people call it.
    train_x: [rows, ...], uint8 (models see it divided by 255), or int8 or float32, which they take as they are.
    train_y: int32[rows], labels from 0 to num_classes - 1.
    num_classes: Number of labels.
    test_x, test_y: As train_x and train_y; None where the source has no test set.
    train_owner, test_owner: str[rows], the client that each row belongs to; None where rows have no owner.
    train_group, test_group: int64[rows], the known group of each row from 0 up; None where there is none.
  """

  name: str
  train_x: np.ndarray
  train_y: np.ndarray
  num_classes: int
  test_x: np.ndarray | None = None
  test_y: np.ndarray | None = None
  train_owner: np.ndarray | None = None
  test_owner: np.ndarray | None = None
  train_group: np.ndarray | None = None
  test_group: np.ndarray | None = None

  @property
  def test(self) -> tuple[np.ndarray, np.ndarray]:
    """test_x and test_y.

    Raises:
      ValueError: if the source has no test set.
    """
    if self.test_x is None or self.test_y is None:
      raise ValueError(f'{self.name} has no test set; hold_out makes one')
    return self.test_x, self.test_y


def hold_out(source: Source, fraction: float, by_owner: bool, rng: np.random.Generator) -> Source:
  """Returns the source with a test set: `fraction` of its rows, the others stay for training.

  Args:
    source: A source without a test set.
    fraction: Share of the rows, above 0 and below 1.
    by_owner: Hold out rows of every owner (at least one each); else rows of every label in proportion.
    rng: Draws the rows.

  Raises:
    InputError: if nothing would be left to train or to test on, or rows have no owners.
  """
  rows = len(source.train_y)
  key = source.train_owner if by_owner else source.train_y
  if key is None:
    raise InputError(
      f'{argument("partition", "by_writer")}: the rows of {source.name} have no owners; a file needs client_id'
    )
  strata = np.unique(key, return_inverse=True)[1]
  sizes = np.bincount(strata)
  if by_owner:
    held = np.maximum(1, np.rint(fraction * sizes).astype(np.int64))
  else:
    held = apportion(fraction * sizes, round(fraction * rows))
  order = rng.permutation(rows)
  order = order[np.argsort(strata[order], kind='stable')]
  starts = np.cumsum(sizes) - sizes
  rank = np.arange(rows) - np.repeat(starts, sizes)
  is_test = np.zeros(rows, bool)
  is_test[order[rank < np.repeat(held, sizes)]] = True
  if not is_test.any() or is_test.all():
    raise InputError(
      f'{argument("test_fraction", fraction)}: of {rows} rows {is_test.sum()} would be test rows; '
      'both training and testing need some'
    )

  return with_test(source, is_test)


def with_test(source: Source, is_test: np.ndarray) -> Source:
  """Returns a source without a test set with one: the rows where bool[rows] is true, the others stay for training."""

  def part(values: np.ndarray | None, mask: np.ndarray) -> np.ndarray | None:
    return None if values is None else values[mask]

  return dataclasses.replace(
    source,
    train_x=source.train_x[~is_test],
    train_y=source.train_y[~is_test],
    test_x=source.train_x[is_test],
    test_y=source.train_y[is_test],
    train_owner=part(source.train_owner, ~is_test),
    test_owner=part(source.train_owner, is_test),
    train_group=part(source.train_group, ~is_test),
    test_group=part(source.train_group, is_test),
  )
