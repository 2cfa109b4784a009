"""From a source and a configuration to each client's rows, groups and planted truth."""

import collections
import dataclasses
from collections.abc import Mapping

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.arrays import one_hot
from tff_cluster.base.errors import InputError, argument
from tff_cluster.data.data_config import GROUPED, DataConfig
from tff_cluster.data.partitioners import by_source, groups, matching, pathological, rows, writers
from tff_cluster.data.partitioners.counts import label_table
from tff_cluster.data.source import Source


@dataclasses.dataclass(frozen=True, eq=False)
class Partition:
  """Which client holds which rows, and what they undergo.

  Attributes:
    client_ids: The clients' ids.
    train_rows: int64[rows of the client] for each client, positions in the source's training rows; what is
      kept for validation is still among them.
    test_rows: Likewise, positions in the source's test rows; none where every client is tested on all of them (test_rows).
    train_groups, test_groups: int64[rows of the client] for each client, the planted group of each row.
    transform: What rows of a group undergo.
    truths: Planted memberships, float64[groups, clients] each; see population.Population.
  """

  client_ids: tuple[str, ...]
  train_rows: list[np.ndarray]
  test_rows: list[np.ndarray]
  train_groups: list[np.ndarray]
  test_groups: list[np.ndarray]
  transform: groups.Transform
  truths: dict[str, np.ndarray]


def make_partition(source: Source, config: DataConfig) -> Partition:
  """Shares out a source's rows; the same source and configuration give the same partition.

  Args:
    source: A source with a test set.
    config: partition, num_clients, rows_per_client, data_seed and what applies to the partition. With noise_clients
      the source's rows have groups, 0 and 1, and clients hold rows of one group.

  Raises:
    InputError: if the source cannot be shared out like that.
    ValueError: if the source has no test set, or no noise that noise clients could hold.
  """
  kinds, test_kinds = _kinds(source, config)
  if config.partition != 'by_writer':
    # Before anything that grows with the clients: a number of them may be a slip of the finger.
    rows.check_enough(len(source.train_y) * config.row_copies, config.num_clients)
  shares, transform = _groups(source, config)
  holds = _sources_of_clients(config, shares)
  if config.partition == 'by_writer':
    ids, train, test = _by_writer(source, config)
  else:
    ids = tuple(f'c{k:0{len(str(config.num_clients - 1))}d}' for k in range(config.num_clients))
    train, test = _training_rows(source, kinds, config, holds), []
  train = [
    rows.cap(r, source.train_y, config.rows_per_client, _rng(config, 'row cap', client_id))
    for client_id, r in zip(ids, train, strict=True)
  ]
  _check_sizes(ids, train)
  counts = label_table([source.train_y[r] for r in train], source.num_classes)
  if config.partition != 'by_writer':
    table = label_table([kinds[r] for r in train], int(max(kinds.max(), test_kinds.max())) + 1)
    if config.test_rows == 'all':
      test = [np.empty(0, np.int64)] * len(ids)
    else:
      test = _test_rows(source, test_kinds, config, table, holds)
  return Partition(
    client_ids=ids,
    train_rows=train,
    test_rows=test,
    train_groups=_row_groups(config, 'groups of training rows', ids, train, shares),
    test_groups=_row_groups(config, 'groups of test rows', ids, test, shares),
    transform=transform,
    truths=_truths(source, config, train, counts, shares, holds),
  )


def _rng(config: DataConfig, purpose: str, *keys: int | str) -> np.random.Generator:
  return seeding.generator(config.data_seed, purpose, *keys)


def _sources_of_clients(config: DataConfig, shares: np.ndarray | None) -> np.ndarray | None:
  """int64[clients], 1 for those that hold noise, or the group where each has all rows; None where rows are of one source."""
  if config.noise_clients > 0.0:
    return by_source.assign_sources(config.num_clients, config.noise_clients, _rng(config, 'noise clients'))
  return None if config.group_rows == 'split' or shares is None else shares.argmax(axis=0)


def _rows_of_sources(source: Source, config: DataConfig, group: np.ndarray | None, number: int) -> np.ndarray:
  """bool[sources, rows], which of so many rows each source has; `group` is the source of each, where they have one."""
  if config.noise_clients == 0.0:
    return np.ones((config.row_copies, number), bool)
  if group is None:
    raise ValueError(f'{source.name} has no rows of noise; sources.load adds them')
  return np.arange(2)[:, None] == group


def _kinds(source: Source, config: DataConfig) -> tuple[np.ndarray, np.ndarray]:
  """Returns what training and test rows are dealt by, int[rows] each from 0 up: their labels, or the groups they come with."""
  _, test_labels = source.test
  if not config.deals_groups:
    return source.train_y, test_labels
  if source.train_group is None or source.test_group is None:
    raise InputError(
      f'{argument("dirichlet_over", "group")}: the rows of {source.name} are of one group; a file needs group, and a text lines '
      "'# PLAY' of several plays"
    )
  return source.train_group, source.test_group


def _training_rows(
  source: Source, labels: np.ndarray, config: DataConfig, holds: np.ndarray | None
) -> list[np.ndarray]:
  if holds is None:
    return _dealt(labels, config.num_clients, config, _rng(config, 'training rows'))
  return by_source.share_out(
    holds,
    _rows_of_sources(source, config, source.train_group, len(labels)),
    lambda group, clients, rows: _dealt(
      labels[rows], len(clients), config, _rng(config, 'training rows', group)
    ),
  )


def _dealt(
  labels: np.ndarray, clients: int, config: DataConfig, rng: np.random.Generator
) -> list[np.ndarray]:
  """Returns the rows of so many clients, which share all rows with these labels."""
  if config.partition == 'pathological':
    return pathological.pathological(labels, clients, config.shards_per_client, rng)
  if config.partition == 'dirichlet':
    return rows.dirichlet(labels, clients, config.dirichlet_alpha, rng)
  if config.partition == 'quantity_skew':
    return rows.quantity_skew(len(labels), clients, config.quantity_alpha, rng)
  if config.label_skew is not None:
    return rows.dirichlet(labels, clients, config.label_skew, rng)
  if config.partition in ('iid', *GROUPED):
    return rows.iid(len(labels), clients, rng)
  raise ValueError(f'nothing deals out rows by partition {config.partition}')


def _test_rows(
  source: Source, labels: np.ndarray, config: DataConfig, counts: np.ndarray, holds: np.ndarray | None
) -> list[np.ndarray]:
  if holds is None:
    return matching.match_test_rows(counts, labels, _rng(config, 'test rows'))
  return by_source.share_out(
    holds,
    _rows_of_sources(source, config, source.test_group, len(labels)),
    lambda group, clients, rows: matching.match_test_rows(
      counts[clients], labels[rows], _rng(config, 'test rows', group)
    ),
  )


def _by_writer(
  source: Source, config: DataConfig
) -> tuple[tuple[str, ...], list[np.ndarray], list[np.ndarray]]:
  if source.train_owner is None or source.test_owner is None:
    raise InputError(
      f'{argument("partition", "by_writer")}: the rows of {source.name} have no owners; a file needs client_id'
    )
  owners = (source.train_owner, source.test_owner)
  chosen = choose_writers(config, *(collections.Counter(owner.tolist()) for owner in owners))
  train, test = (writers.rows_of_writers(owner, chosen) for owner in owners)
  return tuple(chosen), train, test


def choose_writers(config: DataConfig, train: Mapping[str, int], test: Mapping[str, int]) -> list[str]:
  """Returns the ids of the writers that partition by_writer draws, of those with so many examples in the two splits."""
  bounds = (config.min_examples, config.max_examples)
  return writers.select_writers(train, test, config.num_clients, *bounds, _rng(config, 'writers'))


def _groups(source: Source, config: DataConfig) -> tuple[np.ndarray | None, groups.Transform]:
  """The groups' shares float64[groups, clients] (None: no groups) and their transformation."""
  clients, kind = config.num_clients, config.partition
  if kind == 'mixture':
    share = config.mixture_share if config.mixture_pattern == 'fixed' else None
    shares = groups.mix_groups(
      clients, config.num_groups, config.mixed_clients, share, _rng(config, 'groups')
    )
    kind = config.mixture_kind
  elif kind in ('label_swapped', 'label_permuted', 'rotated'):
    shares = one_hot(
      groups.assign_groups(clients, config.num_groups, _rng(config, 'groups')), config.num_groups
    )
  else:
    return None, groups.Transform()
  transform = groups.make_transform(
    kind, config.num_groups, source.num_classes, _rng(config, 'group transforms'), config.degrees
  )
  return shares, transform


def _row_groups(
  config: DataConfig, purpose: str, ids: tuple[str, ...], held: list[np.ndarray], shares: np.ndarray | None
) -> list[np.ndarray]:
  if shares is None:
    return [np.zeros(len(r), np.int64) for r in held]
  return [
    groups.groups_of_rows(shares[:, k], len(r), _rng(config, purpose, client_id))
    for k, (client_id, r) in enumerate(zip(ids, held, strict=True))
  ]


def _truths(
  source: Source,
  config: DataConfig,
  train: list[np.ndarray],
  counts: np.ndarray,
  shares: np.ndarray | None,
  holds: np.ndarray | None,
) -> dict[str, np.ndarray]:
  if shares is not None:
    return {'group': shares}
  if config.partition == 'pathological':
    held = counts > 0
    _, label_sets = np.unique(held, axis=0, return_inverse=True)
    noise = {} if holds is None else {'source': one_hot(holds, 2)}
    return noise | {
      'digit': held.T[held.any(axis=0)].astype(np.float64),
      'label set': one_hot(label_sets, label_sets.max() + 1),
    }
  if (config.partition == 'by_writer' or config.deals_groups) and source.train_group is not None:
    held_groups = [source.train_group[r] for r in train]
    table = label_table(held_groups, int(source.train_group.max()) + 1).T.astype(np.float64)
    return {'group': table[table.any(axis=1)] / table.sum(axis=0)}
  return {}


def _check_sizes(ids: tuple[str, ...], train: list[np.ndarray]) -> None:
  for client_id, r in zip(ids, train, strict=True):
    if len(r) < rows.MIN_ROWS:
      raise InputError(
        f'client {client_id} would have {len(r)} training rows; every client needs one to train on and one for '
        'validation: use fewer clients'
      )
