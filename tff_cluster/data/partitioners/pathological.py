"""Label-sorted shards: every client has a few labels only."""

import collections

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data.partitioners.counts import apportion, split_at
from tff_cluster.data.partitioners.rows import check_enough

_BALANCING_STEPS = 200


def pathological(
  labels: np.ndarray, num_clients: int, shards_per_client: int, rng: np.random.Generator
) -> list[np.ndarray]:
  """Sorts rows by label, cuts them in shards and deals every client shards of different labels.

  Sources: McMahan et al. 2017, section 3 ("pathological non-IID"); Briggs et al. 2020, section IV: 2 labels
  a client.

  Departures and choices: shards are cut within labels, so a client has exactly `shards_per_client` labels
  and never a shard that straddles two. Where the labels are not equally frequent the shards of a client
  are not equal in size either, but clients are: 600 rows each for MNIST and 100 clients. Which labels meet
  in a client is uniform over the possible ways, up to a random walk of 20 swaps a shard.

  Args:
    labels: int[rows].
    shards_per_client: Labels of each client.
    rng: Draws who gets which label, and which rows.

  Returns:
    int64[rows of the client] for each client. Every row is given once, except that labels get no shard where
    there are fewer shards than labels. The clients' sizes differ by one at most wherever the
    labels that they hold allow it.

  Raises:
    InputError: if there are fewer labels than shards_per_client, or fewer rows than shards.
  """
  present, counts = np.unique(labels, return_counts=True)
  if shards_per_client > len(present):
    raise InputError(
      f'{argument("shards_per_client", shards_per_client)}: the rows have {len(present)} labels; at most that many'
    )
  check_enough(len(labels), num_clients)
  if len(labels) < shards_per_client * num_clients:
    raise InputError(
      f'{argument("shards_per_client", shards_per_client)} and {argument("num_clients", num_clients)} need {shards_per_client * num_clients} '
      f'rows at least, found {len(labels)}'
    )
  shards = _shards_of_labels(counts, num_clients, shards_per_client)
  holds = _deal(shards, num_clients, rng)
  sizes = _sizes(holds, np.where(shards > 0, counts, 0))
  pieces: list[list[np.ndarray]] = [[] for _ in range(num_clients)]
  for position, label in enumerate(present):
    rows = rng.permutation(np.flatnonzero(labels == label))
    for client, piece in enumerate(split_at(rows, sizes[:, position])):
      pieces[client].append(piece)
  return [rng.permutation(np.concatenate(piece)) for piece in pieces]


def _shards_of_labels(counts: np.ndarray, num_clients: int, per_client: int) -> np.ndarray:
  """int64[labels]: shards of each label, as equal in size as possible, no label with more than one a client."""
  total = num_clients * per_client
  shards = np.full(len(counts), 1 if total >= len(counts) else 0, np.int64)
  limit = np.minimum(num_clients, counts)
  for _ in range(total - shards.sum()):
    size = np.where(shards < limit, counts / (shards + 0.5), -1.0)
    if size.max() < 0:
      raise InputError(
        f'{argument("shards_per_client", per_client)}: the rare labels have too few rows for {num_clients} clients; '
        'use fewer shards or clients'
      )
    shards[np.argmax(size)] += 1
  return shards


def _deal(shards: np.ndarray, num_clients: int, rng: np.random.Generator) -> np.ndarray:
  """bool[clients, labels]: who holds which label; the shards are dealt evenly, as many labels to each client."""
  holds = np.zeros((num_clients, len(shards)), bool)
  # Dealt round robin in label order no client gets a label twice; random swaps that keep this mix it.
  holds[np.arange(shards.sum()) % num_clients, np.repeat(np.arange(len(shards)), shards)] = True
  for first, second in rng.integers(num_clients, size=(20 * int(shards.sum()), 2)):
    gives = np.flatnonzero(holds[first] & ~holds[second])
    takes = np.flatnonzero(holds[second] & ~holds[first])
    if len(gives):
      give, take = rng.choice(gives), rng.choice(takes)
      holds[first, [give, take]] = False, True
      holds[second, [give, take]] = True, False
  return holds


def _sizes(holds: np.ndarray, counts: np.ndarray) -> np.ndarray:
  """int64[clients, labels] rows: columns sum to `counts`, rows to equal numbers where that is possible."""
  clients = len(holds)
  sizes = holds.astype(np.float64)
  for _ in range(_BALANCING_STEPS):
    sizes *= (counts.sum() / clients) / sizes.sum(axis=1, keepdims=True)
    totals = sizes.sum(axis=0)
    sizes *= np.divide(counts, totals, out=np.zeros(len(counts)), where=totals > 0)
    if np.abs(sizes.sum(axis=1) - counts.sum() / clients).max() < 0.01:
      break
  whole = np.zeros(sizes.shape, np.int64)
  for label in np.flatnonzero(counts):
    holders = np.flatnonzero(holds[:, label])
    # One row first, so that rounding takes no label from a client.
    whole[holders, label] = 1 + apportion(
      np.maximum(sizes[holders, label] - 1, 0), counts[label] - len(holders)
    )
  _even_out(whole, holds)
  return whole


def _even_out(sizes: np.ndarray, holds: np.ndarray) -> None:
  """Moves single rows between clients that share a label until sizes differ by one, where that is possible."""
  while True:
    totals = sizes.sum(axis=1)
    low, high = totals.min(), totals.max()
    if high - low <= 1:
      return
    path = _path(sizes, holds, totals)
    if path is None:
      return
    for giver, taker, label in path:
      sizes[giver, label] -= 1
      sizes[taker, label] += 1


def _path(sizes: np.ndarray, holds: np.ndarray, totals: np.ndarray) -> list[tuple[int, int, int]] | None:
  """A shortest chain of moves (giver, taker, label) from a client, the largest if it has one, to one smaller by two or more."""
  larger = (int(k) for k in np.argsort(-totals, kind='stable') if totals[k] >= totals.min() + 2)
  found = (_path_from(start, sizes, holds, totals) for start in larger)
  return next((path for path in found if path is not None), None)


def _path_from(
  start: int, sizes: np.ndarray, holds: np.ndarray, totals: np.ndarray
) -> list[tuple[int, int, int]] | None:
  came: dict[int, tuple[int, int]] = {start: (-1, -1)}
  queue = collections.deque([start])
  while queue:
    giver = queue.popleft()
    if totals[giver] <= totals[start] - 2:
      path = []
      while giver != start:
        before, label = came[giver]
        path.append((before, giver, label))
        giver = before
      return path
    for label in np.flatnonzero(sizes[giver] > 1):
      for taker in np.flatnonzero(holds[:, label]):
        if int(taker) not in came:
          came[int(taker)] = (giver, int(label))
          queue.append(int(taker))
  return None
