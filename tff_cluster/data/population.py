"""The clients and their rows: what every phase trains and measures on."""

import abc
import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Mapping, Sequence

import numpy as np

from tff_cluster.base import digests
from tff_cluster.base.errors import InputError
from tff_cluster.data.partitioners.counts import label_table

# The name of the truth that says which clients do harm, see data/malicious.py: its groups are honest and malicious.
MALICIOUS = 'malicious'


def cohort_size(fraction: float, members: int) -> int:
  """Returns how many of some members train in a round: max(C * K, 1) (McMahan et al. 2017, Algorithm 1), rounded down.

  Args:
    fraction: C, above 0 and at most 1.
    members: K, at least 1.
  """
  # 0.29 * 100 is 28.999999999999996.
  return max(int(fraction * members + 1e-9), 1)


class ClientRows(abc.ABC):
  """The rows of one kind (train, validation or test) of all clients, as what trains and measures sees them."""

  _digests: dict[int, str]

  @property
  @abc.abstractmethod
  def counts(self) -> np.ndarray:
    """int64[clients], rows of each client."""

  @abc.abstractmethod
  def client(self, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns views of client k's rows: x [rows of k, ...] and y int32[rows of k]."""

  @abc.abstractmethod
  def alike(self, k: int) -> int:
    """Returns the first client whose rows and labels are the same as client k's: what is measured on the one holds for the other."""

  @abc.abstractmethod
  def together(self, first: int, stop: int) -> tuple[np.ndarray, list[slice]]:
    """Returns the rows x of clients first to stop - 1, none twice, and where those of each of these clients lie in them."""

  @property
  @abc.abstractmethod
  def rows_added(self) -> np.ndarray:
    """int64[clients], how many rows each client adds to those of the clients before it."""

  def digest(self, k: int) -> str:
    """Returns the digest of client k's rows, computed when it is first asked for."""
    k = self.alike(k)
    if k not in self._digests:
      self._digests[k] = digests.of_arrays(self.client(k))
    return self._digests[k]

  def label_counts(self, num_classes: int) -> np.ndarray:
    """Returns int64[clients, classes], how often each client has each label."""
    return label_table([self.client(k)[1] for k in range(len(self.counts))], num_classes)


@dataclasses.dataclass(frozen=True, eq=False)
class Split(ClientRows):
  """Rows that clients have to themselves, client after client.

  Attributes:
    x: [rows, ...], of the source's type: uint8 (models see it divided by 255), int8 (codes of characters) or float32.
    y: int32[rows], class labels.
    offsets: int64[clients + 1]; client k owns rows offsets[k]:offsets[k + 1].
  """

  x: np.ndarray
  y: np.ndarray
  offsets: np.ndarray
  _digests: dict[int, str] = dataclasses.field(default_factory=dict, init=False, repr=False)

  @property
  def counts(self) -> np.ndarray:
    return np.diff(self.offsets)

  def client(self, k: int) -> tuple[np.ndarray, np.ndarray]:
    start, stop = self.offsets[k], self.offsets[k + 1]
    return self.x[start:stop], self.y[start:stop]

  def alike(self, k: int) -> int:
    return k

  def together(self, first: int, stop: int) -> tuple[np.ndarray, list[slice]]:
    start, offsets = self.offsets[first], self.offsets[first : stop + 1] - self.offsets[first]
    places = [slice(one, other) for one, other in itertools.pairwise(offsets.tolist())]
    return self.x[start : start + offsets[-1]], places

  @property
  def rows_added(self) -> np.ndarray:
    return self.counts

  def take(self, clients: np.ndarray) -> 'Split':
    """Returns the rows of some clients, int64[taken] positions, one client after the other."""
    rows = np.concatenate([np.arange(self.offsets[k], self.offsets[k + 1]) for k in clients])
    offsets = np.concatenate([[0], np.cumsum(self.counts[clients])]).astype(np.int64)
    return Split(self.x[rows], self.y[rows], offsets)

  def check(self, name: str) -> None:
    """Raises InputError where the arrays do not fit one another."""
    if self.offsets[0] != 0 or (np.diff(self.offsets) < 0).any():
      raise InputError(f'{name} has offsets that do not start at 0 and ascend')
    if not self.offsets[-1] == len(self.x) == len(self.y):
      raise InputError(
        f'{name} has {len(self.x)} rows, {len(self.y)} labels and offsets up to {self.offsets[-1]}'
      )


@dataclasses.dataclass(frozen=True, eq=False)
class SharedSplit(ClientRows):
  """Rows that all clients have, with the labels of the client's group: the test sets of equation 7 of Sattler et al. 2019.

  Attributes:
    x: [rows, ...], of the source's type, once for all clients.
    y: int32[groups, rows], the class labels that each group gives them.
    groups: int64[clients], the group of each client.
  """

  x: np.ndarray
  y: np.ndarray
  groups: np.ndarray
  _digests: dict[int, str] = dataclasses.field(default_factory=dict, init=False, repr=False)

  @property
  def counts(self) -> np.ndarray:
    return np.full(len(self.groups), len(self.x), np.int64)

  def client(self, k: int) -> tuple[np.ndarray, np.ndarray]:
    return self.x, self.y[self.groups[k]]

  def alike(self, k: int) -> int:
    return int(np.argmax(self.groups == self.groups[k]))

  def together(self, first: int, stop: int) -> tuple[np.ndarray, list[slice]]:
    return self.x, [slice(None)] * (stop - first)

  @property
  def rows_added(self) -> np.ndarray:
    return np.where(np.arange(len(self.groups)) == 0, len(self.x), 0)

  def take(self, clients: np.ndarray) -> 'SharedSplit':
    """Returns the rows of some clients, int64[taken] positions."""
    return SharedSplit(self.x, self.y, self.groups[clients])

  def check(self, name: str) -> None:
    """Raises InputError where the arrays do not fit one another."""
    if self.y.ndim != 2 or self.y.shape[1] != len(self.x):
      raise InputError(f'{name} has {len(self.x)} rows and labels of shape {list(self.y.shape)}')
    if len(self.groups) and not 0 <= self.groups.min() <= self.groups.max() < len(self.y):
      raise InputError(f'{name} has labels of {len(self.y)} groups, and clients of others')


def natural_key(client_id: str) -> list[tuple[bool, int, str]]:
  """Returns what ids are sorted by so that numbers in them count as numbers: 'client 2' comes before 'client 10'."""
  parts = re.findall('[0-9]+|[^0-9]+', client_id)
  # Numbers without leading zeros are ordered by length, then digit by digit; equal ones as they are written.
  numbers = [part.lstrip('0') if part[0] in '0123456789' else None for part in parts]
  key = [(n is None, len(n or ''), part if n is None else n) for n, part in zip(numbers, parts, strict=True)]
  return [*key, (True, 0, client_id)]


@dataclasses.dataclass(frozen=True, eq=False)
class Population:
  """All clients of an experiment. Clients are never reordered: position k is client_ids[k].

  Attributes:
    name: How people call it, for instance 'mnist label_swapped'.
    client_ids: The clients' ids, distinct.
    train, validation, test: The clients' rows. Test rows are for reports only, and may be the same for all clients.
    global_test_x, global_test_y: [rows, ...] and int32[rows], the test set that belongs to nobody.
    num_classes: Labels are 0 .. num_classes - 1.
    truths: Planted memberships by name, float64[groups, clients] each, columns sum to at least 1;
      the first is the main one. For scores, and for the oracle (method planted, asked for by name); never for training or other clusterings.
    update_scales: float32[clients], what each client multiplies the update with that it sends: 1 for honest clients,
      NaN for one that sends NaN; None where all are honest.
  """

  name: str
  client_ids: tuple[str, ...]
  train: Split
  validation: Split
  test: Split | SharedSplit
  global_test_x: np.ndarray
  global_test_y: np.ndarray
  num_classes: int
  truths: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
  update_scales: np.ndarray | None = None

  def __post_init__(self):
    repeated = sorted(i for i, n in collections.Counter(self.client_ids).items() if n > 1)
    if repeated:
      raise InputError(f'client ids must be distinct; given twice or more: {", ".join(repeated[:5])}')
    if not len(self.global_test_y) or len(self.global_test_x) != len(self.global_test_y):
      raise InputError(
        f'the global test set has {len(self.global_test_x)} rows and {len(self.global_test_y)} labels'
      )
    if not 0 <= self.global_test_y.min() <= self.global_test_y.max() < self.num_classes:
      raise InputError(
        f'the global test set has labels from {self.global_test_y.min()} to {self.global_test_y.max()}, allowed are 0 to '
        f'{self.num_classes - 1}'
      )
    scales = self.update_scales
    if scales is not None and (scales.dtype != np.float32 or scales.shape != (self.num_clients,)):
      raise InputError(
        f'update_scales must be float32[{self.num_clients}], found {scales.dtype} of shape {scales.shape}'
      )
    for name in ('train', 'validation', 'test'):
      split = getattr(self, name)
      split.check(name)
      if len(split.y) and not 0 <= split.y.min() <= split.y.max() < self.num_classes:
        raise InputError(
          f'{name} has labels from {split.y.min()} to {split.y.max()}, allowed are 0 to {self.num_classes - 1}'
        )
      if split.x.dtype != self.global_test_x.dtype or split.x.shape[1:] != self.global_test_x.shape[1:]:
        raise InputError(
          f'{name} has {split.x.dtype} rows of shape {split.x.shape[1:]}, the global test set '
          f'{self.global_test_x.dtype} rows of shape {self.global_test_x.shape[1:]}'
        )
      if len(split.counts) != len(self.client_ids):
        raise InputError(f'{name} has {len(split.counts)} clients, expected {len(self.client_ids)}')
      empty = np.flatnonzero(split.counts == 0)
      if len(empty):
        raise InputError(
          f'client {self.client_ids[empty[0]]} has no {name} rows ({len(empty)} such clients); give every '
          'client more rows or use fewer clients'
        )

  def take(self, clients: Sequence[int] | np.ndarray) -> 'Population':
    """Returns some of the clients with their rows and their columns of the truths; the global test set is shared.

    Args:
      clients: Positions, ascending, at least one; clients keep their order.

    Raises:
      InputError: if they are not such positions.
    """
    chosen = np.asarray(clients, np.int64)
    ascending = chosen.ndim == 1 and chosen.size > 0 and bool((np.diff(chosen) > 0).all())
    if not ascending or chosen[0] < 0 or chosen[-1] >= self.num_clients:
      raise InputError(
        f'clients to take must be ascending positions from 0 to {self.num_clients - 1}, at least one, found '
        f'{np.array2string(chosen, threshold=8)}'
      )
    return dataclasses.replace(
      self,
      client_ids=tuple(self.client_ids[k] for k in chosen),
      train=self.train.take(chosen),
      validation=self.validation.take(chosen),
      test=self.test.take(chosen),
      truths={name: np.asarray(truth)[:, chosen] for name, truth in self.truths.items()},
      update_scales=None if self.update_scales is None else self.update_scales[chosen],
    )

  def training_rows(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Returns views of each client's training rows by id: x [rows of the client, ...] and y int32[rows of the client]."""
    return {client_id: self.train.client(k) for k, client_id in enumerate(self.client_ids)}

  def update_scale(self, k: int) -> np.float32:
    """Returns what client k multiplies its updates with."""
    return np.float32(1.0) if self.update_scales is None else self.update_scales[k]

  @property
  def num_clients(self) -> int:
    return len(self.client_ids)

  @property
  def input_shape(self) -> tuple[int, ...]:
    """The shape of one example, without the batch dimension."""
    return self.train.x.shape[1:]

  @functools.cached_property
  def client_digests(self) -> tuple[str, ...]:
    """One digest a client over its id, all of its rows and how it alters its updates: what training on it depends on."""
    splits = (self.train, self.validation, self.test)
    # As text, because JSON has no NaN; left out for honest clients, whose digests are those without malicious ones.
    altered = [
      [] if self.update_scale(k) == 1.0 else [repr(float(self.update_scale(k)))]
      for k in range(self.num_clients)
    ]
    return tuple(
      digests.of_json([client_id, *(split.digest(k) for split in splits), *altered[k]])
      for k, client_id in enumerate(self.client_ids)
    )

  @functools.cached_property
  def global_test_digest(self) -> str:
    """Digest of the rows of the global test set."""
    return digests.of_arrays([self.global_test_x, self.global_test_y])

  @functools.cached_property
  def digest(self) -> str:
    """Digest of everything that a result can depend on."""
    return digests.of_json(
      [
        list(self.client_digests),
        self.global_test_digest,
        self.num_classes,
        {name: digests.of_arrays([truth]) for name, truth in self.truths.items()},
      ]
    )
