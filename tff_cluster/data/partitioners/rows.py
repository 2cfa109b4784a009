"""Who holds which training rows, where nothing is planted: even, uneven in number, uneven in labels."""

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data.partitioners.counts import apportion, split_at

# One row to train on and one for validation.
MIN_ROWS = 2


def iid(num_rows: int, num_clients: int, rng: np.random.Generator) -> list[np.ndarray]:
  """Shuffles the rows and deals them evenly (McMahan et al. 2017, section 3).

  Returns:
    int64[rows of the client] for each client; sizes differ by one at most, every row is given once.

  Raises:
    InputError: if there are fewer rows than the clients need.
  """
  check_enough(num_rows, num_clients)
  return np.array_split(rng.permutation(num_rows), num_clients)


def quantity_skew(
  num_rows: int, num_clients: int, alpha: float, rng: np.random.Generator
) -> list[np.ndarray]:
  """Shuffles the rows and deals them unevenly: the clients' shares are one draw from Dirichlet(alpha, ...).

  Args:
    alpha: Concentration; the smaller, the more uneven. Every client gets MIN_ROWS before shares are dealt.
    rng: Draws the shares and the rows.

  Returns:
    int64[rows of the client] for each client; every row is given once.
  """
  check_enough(num_rows, num_clients)
  # Beyond these NumPy draws for ever, or its sum overflows; shares are one client's, or equal, long before.
  shares = rng.dirichlet(np.full(num_clients, np.clip(alpha, 1e-9, 1e12)))
  spare = num_rows - MIN_ROWS * num_clients
  return split_at(rng.permutation(num_rows), MIN_ROWS + apportion(shares * spare, spare))


def dirichlet(
  labels: np.ndarray, num_clients: int, alpha: float, rng: np.random.Generator
) -> list[np.ndarray]:
  """Gives all clients the same number of rows, with label shares drawn from Dirichlet(alpha * p).

  Source: Hsu, Qi and Brown 2019, section 3.1, where p is the labels' share in the whole set. As there, rows are drawn without
  replacement, and where a label has run out the client's shares are renormalised over the others.
  Clients draw in random order, so that it is not always the last ones who take what is left.

  Args:
    labels: int[rows].
    alpha: Concentration; the smaller, the fewer labels a client has. Large values give equal shares.
    rng: Draws shares, rows and order.

  Returns:
    int64[rows of the client] for each client; sizes differ by one at most, every row is given once.
  """
  check_enough(len(labels), num_clients)
  present, inverse = np.unique(labels, return_inverse=True)
  queues = [rng.permutation(np.flatnonzero(inverse == label)) for label in range(len(present))]
  left = np.array([len(queue) for queue in queues])
  prior = left / left.sum()
  sizes = np.full(num_clients, len(labels) // num_clients)
  sizes[rng.permutation(num_clients)[: len(labels) % num_clients]] += 1
  rows: list[np.ndarray] = [np.empty(0, np.int64)] * num_clients
  for client in rng.permutation(num_clients):
    taken = _draw_counts(rng.dirichlet(np.maximum(alpha * prior, 1e-9)), left, sizes[client], rng)
    pieces = [queues[label][left[label] - n : left[label]] for label, n in enumerate(taken)]
    left = left - taken
    rows[client] = rng.permutation(np.concatenate(pieces))
  return rows


def cap(rows: np.ndarray, labels: np.ndarray, limit: int | None, rng: np.random.Generator) -> np.ndarray:
  """Returns at most `limit` of the rows, drawn so that the labels keep their shares; in the order given."""
  if limit is None or len(rows) <= limit:
    return rows
  _, inverse, counts = np.unique(labels[rows], return_inverse=True, return_counts=True)
  quota = apportion(counts * (limit / len(rows)), limit)
  keep = np.zeros(len(rows), bool)
  for label, number in enumerate(quota):
    keep[rng.permutation(np.flatnonzero(inverse == label))[:number]] = True
  return rows[keep]


def check_enough(num_rows: int, num_clients: int) -> None:
  """Raises InputError where not every client can have a row to train on and one for validation."""
  if num_rows < MIN_ROWS * num_clients:
    raise InputError(
      f'{argument("num_clients", num_clients)}: {num_rows} training rows are too few for {MIN_ROWS} rows each; '
      f'at most {num_rows // MIN_ROWS} clients'
    )


def _draw_counts(shares: np.ndarray, left: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
  """Draws how many rows of each label a client takes, none more than are left: int64[labels]."""
  taken = np.zeros(len(left), np.int64)
  while (missing := number - taken.sum()) > 0:
    open_shares = np.where(taken < left, shares, 0.0)
    if 0.0 < open_shares.sum() < 1e-12:
      # Of the labels that are left the client wanted next to nothing, and of each its own part of that.
      open_shares /= open_shares.max()
    elif not open_shares.any():
      # All that the client wanted has run out: take from what is left, in proportion.
      open_shares = (left - taken).astype(np.float64)
    drawn = rng.multinomial(missing, open_shares / open_shares.sum())
    taken = np.minimum(taken + drawn, left)
  return taken
