"""Planted groups of clients: who belongs to which, and what a group's rows undergo."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from tff_cluster.base.arrays import one_hot
from tff_cluster.base.errors import InputError, argument
from tff_cluster.data.partitioners.counts import apportion


@dataclasses.dataclass(frozen=True, eq=False)
class Transform:
  """What the rows of each group undergo, in training, validation and test alike.

  Attributes:
    label_maps: int32[groups, classes], the label that each label becomes; None: labels stay.
    degrees: float64[groups], by which images are turned anticlockwise; None: images stay. Quarter turns move pixels; other
      turns interpolate linearly between them, and what comes from outside the image is 0.
  """

  label_maps: np.ndarray | None = None
  degrees: np.ndarray | None = None

  def apply(self, x: np.ndarray, y: np.ndarray, groups: np.ndarray) -> None:
    """Transforms rows in place.

    Args:
      x: [rows, ...]; [rows, side, side, ...] where images are turned.
      y: int32[rows].
      groups: int64[rows], the group of each row.

    Raises:
      InputError: if images are to be turned and x does not hold square images.
    """
    if self.label_maps is not None:
      y[:] = self.label_maps[groups, y]
    if self.degrees is not None:
      if x.ndim < 3 or x.shape[1] != x.shape[2]:
        raise InputError(
          f'rotation needs square images [rows, side, side, ...], found examples of shape {list(x.shape[1:])}'
        )
      for group, angle in enumerate(self.degrees):
        if angle % 360.0:
          members = groups == group
          x[members] = _turned(x[members], angle)


def _turned(x: np.ndarray, degrees: float) -> np.ndarray:
  """Returns images [rows, side, side, ...] turned anticlockwise, of the same type."""
  if degrees % 90.0 == 0.0:
    return np.rot90(x, int(degrees // 90.0), axes=(1, 2))
  from scipy import ndimage  # Imported late: nobody else needs it.

  return ndimage.rotate(x, degrees, axes=(1, 2), order=1, reshape=False)


def assign_groups(num_clients: int, num_groups: int, rng: np.random.Generator) -> np.ndarray:
  """Returns int64[clients]: groups as equal in size as possible, in random positions.

  Raises:
    InputError: if a group would have no client.
  """
  if num_groups > num_clients:
    raise InputError(
      f'{argument("num_groups", num_groups)}: at most as many groups as clients ({num_clients})'
    )
  return rng.permutation(np.arange(num_clients) % num_groups)


def make_transform(
  kind: str, num_groups: int, num_classes: int, rng: np.random.Generator, degrees: Sequence[float] = ()
) -> Transform:
  """Returns the transformation that tells the groups apart.

  Args:
    kind: 'label_swapped', 'label_permuted' or 'rotated'.
    rng: Draws pairs or permutations.
    degrees: By how much each group is turned, where they are rotated.

  Raises:
    InputError: if that many groups cannot be told apart.
  """
  if kind == 'label_swapped':
    return Transform(label_maps=swapped_labels(num_groups, num_classes, rng))
  if kind == 'label_permuted':
    return Transform(label_maps=permuted_labels(num_groups, num_classes, rng))
  if kind != 'rotated':
    raise InputError(
      f'no transformation is called {kind!r}; allowed are label_swapped, label_permuted, rotated'
    )
  return Transform(degrees=np.array(degrees, np.float64))


def swapped_labels(num_groups: int, num_classes: int, rng: np.random.Generator) -> np.ndarray:
  """Every group swaps a pair of labels of its own (Briggs et al. 2020, section IV).

  Returns:
    int32[groups, classes]. No two groups have the same pair, and no label is in two pairs as long as the labels suffice.

  Raises:
    InputError: if there are more groups than pairs of labels.
  """
  pairs = num_classes * (num_classes - 1) // 2
  if num_groups > pairs:
    raise InputError(
      f'{argument("num_groups", num_groups)}: {num_classes} labels have {pairs} pairs to swap; at most that many groups'
    )
  order = rng.permutation(num_classes)
  chosen = [(int(order[2 * i]), int(order[2 * i + 1])) for i in range(min(num_groups, num_classes // 2))]
  if len(chosen) < num_groups:
    used = {tuple(sorted(pair)) for pair in chosen}
    others = [(a, b) for a in range(num_classes) for b in range(a + 1, num_classes) if (a, b) not in used]
    chosen += [others[i] for i in rng.permutation(len(others))[: num_groups - len(chosen)]]
  maps = np.tile(np.arange(num_classes, dtype=np.int32), (num_groups, 1))
  for group, (a, b) in enumerate(chosen):
    maps[group, [a, b]] = b, a
  return maps


def permuted_labels(num_groups: int, num_classes: int, rng: np.random.Generator) -> np.ndarray:
  """Every group has its own random permutation of all labels (Sattler et al. 2019, section V).

  Returns:
    int32[groups, classes], all rows different.

  Raises:
    InputError: if there are more groups than permutations.
  """
  if num_classes < 20 and num_groups > math.factorial(num_classes):
    raise InputError(
      f'{argument("num_groups", num_groups)}: {num_classes} labels have {math.factorial(num_classes)} permutations; '
      'at most that many groups'
    )
  chosen: dict[tuple[int, ...], None] = {}
  while len(chosen) < num_groups:
    chosen[tuple(int(label) for label in rng.permutation(num_classes))] = None
  return np.array(list(chosen), np.int32)


def mix_groups(
  num_clients: int,
  num_groups: int,
  mixed_clients: float,
  mixture_share: float | None,
  rng: np.random.Generator,
) -> np.ndarray:
  """Gives every client a group, and some of them a share of a second one.

  Args:
    mixed_clients: Share of the clients that are mixed (rounded to a whole number of clients).
    mixture_share: Share of a mixed client's rows that comes from its second group; None: those of the n mixed clients of a
      first group are (j + 1/2) / (2 n), j = 0 .. n - 1. Of two groups with all clients mixed every client then has another
      share of the first, from 1 / (2 clients) in steps of 1 / clients ("linear" in Ruan and Joe-Wong 2022 and their public code).
    rng: Draws who is mixed and of what.

  Returns:
    float64[groups, clients], columns sum to 1: a pure client has one 1.0, a mixed one what its second group has not, and
    that. First groups are as equal in size as possible.

  Raises:
    InputError: if there are fewer than two groups, or a group would have no client.
  """
  if num_groups < 2:
    raise InputError(f'{argument("num_groups", num_groups)}: a mixture needs at least 2 groups')
  first = assign_groups(num_clients, num_groups, rng)
  second = (first + rng.integers(1, num_groups, size=num_clients)) % num_groups
  shares = one_hot(first, num_groups)
  mixed = rng.permutation(num_clients)[: round(mixed_clients * num_clients)]
  of_second = _rising(first[mixed]) if mixture_share is None else np.full(len(mixed), mixture_share)
  shares[first[mixed], mixed] = 1.0 - of_second
  shares[second[mixed], mixed] = of_second
  return shares


def _rising(groups: np.ndarray) -> np.ndarray:
  """Returns float64[clients] that in each of their groups, int64[clients], rise evenly from 0 to a half."""
  found = np.empty(len(groups))
  for group in np.unique(groups):
    members = np.flatnonzero(groups == group)
    found[members] = (np.arange(len(members)) + 0.5) / (2 * len(members))
  return found


def groups_of_rows(shares: np.ndarray, num_rows: int, rng: np.random.Generator) -> np.ndarray:
  """Returns int64[rows]: groups in the numbers that `shares` (float64[groups], sum 1) asks for, shuffled."""
  return rng.permutation(np.repeat(np.arange(len(shares)), apportion(shares * num_rows, num_rows)))
