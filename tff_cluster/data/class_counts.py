"""Metrics as mergeable counts, so that the mean over clients and over examples both follow from them."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tff_cluster.base import records


@dataclasses.dataclass(frozen=True)
class RowMetrics(records.Record):
  """Metrics of the counts of all rows together, never averages over batches.

  Attributes:
    accuracy: Share of the rows whose label was predicted.
    precision, recall: Macro.
    loss: Mean of what clients minimise, in nats (cross-entropy, where nothing else was asked for); None where it is not finite.
  """

  accuracy: float
  precision: float
  recall: float
  loss: float | None


@dataclasses.dataclass(frozen=True)
class Metrics(RowMetrics):
  """Metrics over rows, and over clients, every one of which weighs the same.

  Attributes:
    mean_client_accuracy: Over clients.
    highest_client_accuracy, share_at_highest: Highest accuracy of a client, and share of the clients that have it: the
      numbers of table 2 of Rohith et al. 2020.
  """

  mean_client_accuracy: float
  highest_client_accuracy: float
  share_at_highest: float


@dataclasses.dataclass(frozen=True, eq=False)
class Scores:
  """How models did on the rows of some clients.

  Attributes:
    counts: int64[clients, 3, classes], the rows that have a label, those for which it was predicted, and those of both
      (a table of classes x classes would fill the memory where labels go up to thousands).
    loss_sum: float64[clients], summed cross-entropy in nats.
  """

  counts: np.ndarray
  loss_sum: np.ndarray

  @property
  def total(self) -> np.ndarray:
    """int64[clients], rows measured."""
    return self.counts[:, 0].sum(axis=1)

  @property
  def correct(self) -> np.ndarray:
    """int64[clients], rows whose label was predicted."""
    return self.counts[:, 2].sum(axis=1)

  @property
  def client_accuracy(self) -> np.ndarray:
    """float64[clients], share of each client's rows that were predicted; 0 for a client without rows."""
    return self.correct / np.maximum(self.total, 1)

  def select(self, clients: Any) -> 'Scores':
    return Scores(self.counts[clients], self.loss_sum[clients])

  def over_rows(self) -> RowMetrics:
    """Returns metrics over all rows together."""
    counts = self.counts.sum(axis=0)
    total = max(counts[0].sum(), 1)
    loss = float(self.loss_sum.sum() / total)
    return RowMetrics(
      float(counts[2].sum() / total),
      macro_precision(counts),
      macro_recall(counts),
      loss if math.isfinite(loss) else None,
    )

  def summary(self) -> Metrics:
    """Returns metrics over all rows and over clients."""
    accuracy = self.client_accuracy
    highest = float(accuracy.max())
    return Metrics(
      **vars(self.over_rows()),
      mean_client_accuracy=float(accuracy.mean()),
      highest_client_accuracy=highest,
      share_at_highest=float(np.mean(accuracy >= highest)),
    )


def of_predictions(predictions: np.ndarray, labels: np.ndarray, num_classes: int) -> Scores:
  """Returns the scores of predictions of one client's rows, whose loss nobody knows.

  Args:
    predictions, labels: int[rows], from 0 to num_classes - 1.
  """
  counted = (labels, predictions, labels[predictions == labels])
  counts = np.stack([np.bincount(each, minlength=num_classes) for each in counted])
  return Scores(counts[None], np.array([np.nan]))


def concatenate(found: Sequence[Scores]) -> Scores:
  """Returns the scores of all clients, one after the other."""
  return Scores(
    np.concatenate([each.counts for each in found]), np.concatenate([each.loss_sum for each in found])
  )


def macro_precision(counts: np.ndarray) -> float:
  """Returns the mean over classes of precision; a class that is neither present nor predicted is left out.

  Args:
    counts: int[3, classes], see Scores. A present class that is never predicted counts 0.
  """
  return _macro(counts, counts[1])


def macro_recall(counts: np.ndarray) -> float:
  """Returns the mean over classes of recall; a class that is neither present nor predicted is left out.

  Args:
    counts: int[3, classes], see Scores. A class that is predicted but absent counts 0.
  """
  return _macro(counts, counts[0])


def _macro(counts: np.ndarray, denominator: np.ndarray) -> float:
  seen = (counts[0] + counts[1]) > 0
  return float(np.mean(counts[2][seen] / np.maximum(denominator[seen], 1))) if seen.any() else 0.0
