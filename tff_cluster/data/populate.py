"""From a configuration to the population that an experiment trains and measures on."""

import dataclasses

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError, argument
from tff_cluster.data import malicious, new_clients, sources
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.partition import Partition, make_partition
from tff_cluster.data.population import Population, SharedSplit, Split
from tff_cluster.data.source import Source, hold_out


@dataclasses.dataclass(frozen=True, eq=False)
class _Held:
  """Rows of one client: positions (test rows count on after the training rows) and their groups."""

  rows: np.ndarray
  groups: np.ndarray

  def part(self, chosen: np.ndarray) -> '_Held':
    return _Held(self.rows[chosen], self.groups[chosen])


def build_population(
  config: DataConfig, fold: tuple[int, int] | None = None, source: Source | None = None
) -> Population:
  """Loads, partitions, transforms and splits.

  The clients' test rows have the label shares and groups of their training rows, or are the global test set with their group's
  labels (test_rows). The global test set is the
  source's test set, untransformed; for a source without one it is the rows that are held out before the partition, and for
  by_writer the test rows of the clients that take part (of all of them without new clients, see data/new_clients.py).

  Args:
    config: What to load and how to share it out.
    fold: (i, n) for fold i (from 0) of n-fold cross-validation: each client's own rows, training, validation
      and test, are pooled and cut in n parts with about the same labels; part i are its test rows. The global test
      set is then what no client trains on: test rows that no client holds, and the test rows of the fold,
      untransformed.
    source: The rows, where they are loaded already (`sources.load(config)`); for instance for several folds.

  Raises:
    InputError: if the rows cannot be shared out as asked.
    EnvironmentFault: if the data is missing or damaged.
  """
  if source is None:
    source = sources.load(config)
  if source.test_y is None:
    rng = seeding.generator(config.data_seed, 'held-out rows')
    source = hold_out(source, config.test_fraction, config.partition == 'by_writer', rng)
  partition = make_partition(source, config)
  pools, tests = _held_rows(source, partition)
  if fold is not None:
    pools, tests = _fold(source, partition, pools, tests, fold, config.data_seed)
  part = _validation_in_all_groups if config.relabels_copies else _validation
  trains, validations = part(partition, pools, config)
  taking_part = [tests[k] for k in new_clients.participants(config, len(tests))]
  global_x, global_y = _global_test(source, config, taking_part, trains + validations, fold is not None)
  population = Population(
    name=f'{source.name} {config.partition}' + (f' fold {fold[0] + 1} of {fold[1]}' if fold else ''),
    client_ids=partition.client_ids,
    train=_split(source, partition, trains),
    validation=_split(source, partition, validations),
    test=_shared(partition, global_x, global_y)
    if config.test_rows == 'all'
    else _split(source, partition, tests),
    global_test_x=global_x,
    global_test_y=global_y,
    num_classes=source.num_classes,
    truths=partition.truths,
  )
  return malicious.corrupt(population, config)


def _validation(
  partition: Partition, pools: list[_Held], config: DataConfig
) -> tuple[list[_Held], list[_Held]]:
  """Returns each client's rows for training, and a share of them that is kept for validation, at least one."""
  trains, validations = [], []
  for client_id, pool in zip(partition.client_ids, pools, strict=True):
    number = max(1, round(config.validation_fraction * len(pool.rows)))
    if config.overlapping_rows and config.partition == 'by_writer':
      # The end of a text, and rows between that have characters of both are left out.
      first = len(pool.rows) - number
      validations.append(pool.part(np.arange(first, len(pool.rows))))
      trains.append(pool.part(np.arange(max(first - config.overlapping_rows, 1))))
      continue
    order = seeding.generator(config.data_seed, 'validation rows', client_id).permutation(len(pool.rows))
    validations.append(pool.part(np.sort(order[:number])))
    trains.append(pool.part(np.sort(order[number:])))
  return trains, validations


def _validation_in_all_groups(
  partition: Partition, pools: list[_Held], config: DataConfig
) -> tuple[list[_Held], list[_Held]]:
  """Returns the same where groups hold copies of a row: what one client keeps for validation, no other one trains on.

  A row is drawn for all groups at once, so that a client's share is about the one that was asked for.
  """
  rows = 1 + max(int(pool.rows.max()) for pool in pools)
  drawn = seeding.generator(config.data_seed, 'validation rows').random(rows)
  kept = drawn < config.validation_fraction
  # A client without one gets the row that would come next.
  kept[[pool.rows[np.argmin(drawn[pool.rows])] for pool in pools]] = True
  is_kept = [kept[pool.rows] for pool in pools]
  trains = [pool.part(~mine) for pool, mine in zip(pools, is_kept, strict=True)]
  return trains, [pool.part(mine) for pool, mine in zip(pools, is_kept, strict=True)]


def check_folds(population: Population, number: int) -> None:
  """Raises InputError if a client has too few rows for cross-validation with so many folds."""
  totals = population.train.counts + population.validation.counts + population.test.counts
  for client_id, total in zip(population.client_ids, totals, strict=True):
    _check_fold(number, client_id, int(total))


def _check_fold(number: int, client_id: str, total: int) -> None:
  if total < max(number, 3) or total - -(-total // number) < 2:
    raise InputError(
      f'{argument("num_folds", number)}: client {client_id} has {total} rows; every fold needs one, and two must be left to '
      'train and validate on: use fewer folds or clients'
    )


def _held_rows(source: Source, partition: Partition) -> tuple[list[_Held], list[_Held]]:
  shift = len(source.train_y)
  pools = [_Held(r, g) for r, g in zip(partition.train_rows, partition.train_groups, strict=True)]
  tests = [_Held(r + shift, g) for r, g in zip(partition.test_rows, partition.test_groups, strict=True)]
  return pools, tests


def _fold(
  source: Source,
  partition: Partition,
  pools: list[_Held],
  tests: list[_Held],
  fold: tuple[int, int],
  seed: int,
) -> tuple[list[_Held], list[_Held]]:
  """Pools training and test rows of each client and takes fold i of n as its test rows."""
  index, number = fold
  if number < 2 or not 0 <= index < number:
    raise InputError(f'fold {index} of {number}: there must be at least 2 folds, counted from 0')
  rest, chosen = [], []
  for client_id, pool, test in zip(partition.client_ids, pools, tests, strict=True):
    held = _Held(np.concatenate([pool.rows, test.rows]), np.concatenate([pool.groups, test.groups]))
    total = len(held.rows)
    _check_fold(number, client_id, total)
    order = seeding.generator(seed, 'folds', client_id).permutation(total)
    # Dealt in label order, every fold gets each label in proportion.
    order = order[np.argsort(_take_labels(source, held.rows[order]), kind='stable')]
    is_test = np.zeros(total, bool)
    is_test[order[index::number]] = True
    rest.append(held.part(~is_test))
    chosen.append(held.part(is_test))
  return rest, chosen


def _global_test(
  source: Source, config: DataConfig, tests: list[_Held], trained: list[_Held], is_fold: bool
) -> tuple[np.ndarray, np.ndarray]:
  own = np.concatenate([held.rows for held in tests])
  first, stop = len(source.train_y), len(source.train_y) + len(source.test[1])
  if config.partition == 'by_writer':
    rows = own
  elif is_fold:
    in_use = np.concatenate([held.rows for held in trained])
    # Where all groups have all rows, what is tested in one may be trained on in another.
    rows = np.setdiff1d(np.concatenate([np.arange(first, stop), own]), in_use)
  else:
    return source.test
  rows = np.sort(rows)
  return _take(source.train_x, source.test[0], rows), _take_labels(source, rows)


def _split(source: Source, partition: Partition, held: list[_Held]) -> Split:
  rows = np.concatenate([h.rows for h in held])
  x, y = _take(source.train_x, source.test[0], rows), _take_labels(source, rows)
  partition.transform.apply(x, y, np.concatenate([h.groups for h in held]))
  offsets = np.concatenate([[0], np.cumsum([len(h.rows) for h in held])]).astype(np.int64)
  return Split(x, y, offsets)


def _shared(partition: Partition, x: np.ndarray, y: np.ndarray) -> SharedSplit:
  """Returns the global test set as each client has it: with the labels of its group."""
  maps = partition.transform.label_maps
  assert maps is not None  # The option applies to partitions that map labels only.
  return SharedSplit(x, maps[:, y], partition.truths['group'].argmax(axis=0))


def _take_labels(source: Source, rows: np.ndarray) -> np.ndarray:
  return _take(source.train_y, source.test[1], rows)


def _take(train: np.ndarray, test: np.ndarray, rows: np.ndarray) -> np.ndarray:
  """Copies rows of two arrays, the second of which counts on after the first."""
  taken = np.empty((len(rows), *train.shape[1:]), train.dtype)
  in_train = rows < len(train)
  taken[in_train] = train[rows[in_train]]
  taken[~in_train] = test[rows[~in_train] - len(train)]
  return taken
