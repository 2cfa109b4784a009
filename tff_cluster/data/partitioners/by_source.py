"""Clients that hold rows of one of several sources only."""

from collections.abc import Callable

import numpy as np

from tff_cluster.base.errors import InputError, argument


def num_holders(num_clients: int, share: float) -> int:
  """Returns how many clients hold the second source: the share, at least one, and never all.

  Args:
    share: Their share, above 0 and at most 0.5.

  Raises:
    InputError: if there are fewer than 2 clients.
  """
  if num_clients < 2:
    raise InputError(
      f'{argument("noise_clients", share)} needs at least 2 clients, found {argument("num_clients", num_clients)}'
    )
  return max(1, round(share * num_clients))


def assign_sources(num_clients: int, share: float, rng: np.random.Generator) -> np.ndarray:
  """Returns int64[clients]: 1 for those that hold the second source, in random positions, else 0; see `num_holders`."""
  return rng.permutation((np.arange(num_clients) < num_holders(num_clients, share)).astype(np.int64))


def share_out(
  holds: np.ndarray, has: np.ndarray, deal: Callable[[int, np.ndarray, np.ndarray], list[np.ndarray]]
) -> list[np.ndarray]:
  """Deals the rows of each source to the clients that hold it.

  Args:
    holds: int64[clients], the source that each client holds.
    has: bool[sources, rows], which rows each source has.
    deal: Called with a source, its clients int64[n] and its rows int64[m]; returns for each of these clients which of
      these rows it gets, positions from 0 to m - 1.

  Returns:
    int64[rows of the client] for each client.
  """
  held = [np.empty(0, np.int64)] * len(holds)
  for source in np.unique(holds):
    clients, rows = np.flatnonzero(holds == source), np.flatnonzero(has[source])
    for client, chosen in zip(clients, deal(int(source), clients, rows), strict=True):
      held[client] = rows[chosen]
  return held
