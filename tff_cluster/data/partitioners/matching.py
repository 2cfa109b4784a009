"""Test rows for clients: each client's in the label shares of its training rows."""

import numpy as np

from tff_cluster.base.errors import InputError, argument


def match_test_rows(
  train_counts: np.ndarray, test_labels: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
  """Deals test rows so that every client's label shares are those of its training rows.

  A client is due the share of the test rows that it has of all clients' training rows, but not more test
  rows than it has training rows. No row goes to two clients.

  Departures and choices: where a label is rarer among the test rows than among the training rows, its holders get less of it,
  all by the same factor. What a client then lacks of its due is filled up with its other labels, as far as one row
  of each goes: with MNIST's 10,000 test rows all of 100 even clients have 100, not some of them 99.

  Args:
    train_counts: int64[clients, classes], the clients' training labels (before any group's transformation).
    test_labels: int[test rows], likewise.
    rng: Draws the rows.

  Returns:
    int64[test rows of the client] for each client, at least one each.

  Raises:
    InputError: if there is no test row left for a client.
  """
  clients, classes = train_counts.shape
  sizes = train_counts.sum(axis=1)
  due = np.minimum(sizes, len(test_labels) * sizes / sizes.sum())
  wanted = train_counts * (due / np.maximum(sizes, 1))[:, None]
  supply = np.bincount(test_labels, minlength=classes)
  demand = wanted.sum(axis=0)
  wanted *= np.minimum(1.0, np.divide(supply, demand, out=np.ones(classes), where=demand > 0))
  given = _whole(wanted, supply)
  _fill(given, train_counts, np.floor(due + 1e-9).astype(np.int64), supply)
  _feed(given, train_counts, supply)
  rows: list[list[np.ndarray]] = [[] for _ in range(clients)]
  for label in range(classes):
    shuffled = rng.permutation(np.flatnonzero(test_labels == label))
    stops = np.cumsum(given[:, label])
    for client, (start, stop) in enumerate(zip(stops - given[:, label], stops, strict=True)):
      rows[client].append(shuffled[start:stop])
  return [np.concatenate(pieces) for pieces in rows]


def _whole(wanted: np.ndarray, supply: np.ndarray) -> np.ndarray:
  """Rounds float64[clients, classes] up or down, label after label, passing on what a client is still due."""
  given = np.floor(wanted + 1e-9).astype(np.int64)
  still_due = np.zeros(len(wanted))
  for label in range(wanted.shape[1]):
    fraction = np.maximum(wanted[:, label] - given[:, label], 0.0)
    extra = min(round(wanted[:, label].sum()), int(supply[label])) - int(given[:, label].sum())
    still_due += fraction
    # Only clients with a fraction of a row may get one: others would be off by more than rounding.
    ranked = np.lexsort((-still_due, fraction <= 1e-9))[: max(extra, 0)]
    ranked = ranked[fraction[ranked] > 1e-9]
    given[ranked, label] += 1
    still_due[ranked] -= 1.0
  return given


def _fill(given: np.ndarray, train_counts: np.ndarray, due: np.ndarray, supply: np.ndarray) -> None:
  """Gives clients with less than their due int64[clients] a row more of each of their labels, as far as rows are left."""
  left = supply - given.sum(axis=0)
  lacking = due - given.sum(axis=1)
  filled = train_counts == 0
  # Who has few labels is served first: whoever has many can take what is left.
  for client in np.argsort((~filled).sum(axis=1), kind='stable'):
    for _ in range(max(lacking[client], 0)):
      stock = np.where(filled[client], 0, left)
      label = np.argmax(stock)
      if stock[label] == 0:
        break
      given[client, label] += 1
      left[label] -= 1
      filled[client, label] = True


def _feed(given: np.ndarray, train_counts: np.ndarray, supply: np.ndarray) -> None:
  """Gives clients that rounding left without a test row one of their labels, most frequent first."""
  for client in np.flatnonzero(given.sum(axis=1) == 0):
    for label in np.argsort(-train_counts[client], kind='stable'):
      if train_counts[client, label] == 0:
        continue
      if given[:, label].sum() < supply[label]:
        given[client, label] += 1
        break
      spare = np.where(given[:, label] > 0, given.sum(axis=1), 0)
      if spare.max(initial=0) > 1:
        given[np.argmax(spare), label] -= 1
        given[client, label] += 1
        break
    else:
      raise InputError(
        f'{argument("num_clients", len(given))}: {supply.sum()} test rows are too few to give every client one with a label '
        'that it trains on; use fewer clients or more test rows'
      )
