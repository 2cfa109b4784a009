"""Metrics as mergeable counts, so that the mean over clients and over examples both follow from them."""

import dataclasses
import math
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Scores:
  """How models did on the rows of some clients.

  Attributes:
    confusion: int64[clients, classes, classes], rows by (true label, predicted label).
    loss_sum: float64[clients], summed cross-entropy in nats.
  """

  confusion: np.ndarray
  loss_sum: np.ndarray

  @property
  def total(self) -> np.ndarray:
    """int64[clients], rows measured."""
    return self.confusion.sum(axis=(1, 2))

  @property
  def correct(self) -> np.ndarray:
    """int64[clients], rows whose label was predicted."""
    return np.trace(self.confusion, axis1=1, axis2=2)

  @property
  def client_accuracy(self) -> np.ndarray:
    """float64[clients], share of each client's rows that were predicted; 0 for a client without rows."""
    return self.correct / np.maximum(self.total, 1)

  def select(self, clients: Any) -> 'Scores':
    return Scores(self.confusion[clients], self.loss_sum[clients])

  def summary(self) -> dict[str, float | None]:
    """Returns metrics over all rows and over clients.

    accuracy, precision, recall (macro) and loss come from the counts of all rows together, never from
    averages over batches; loss is None where it is not finite; mean_client_accuracy weighs every client the same; highest_client_accuracy and
    share_at_highest are the numbers of table 2 of Rohith et al. 2020.
    """
    table, accuracy = self.confusion.sum(axis=0), self.client_accuracy
    loss = float(self.loss_sum.sum() / max(table.sum(), 1))
    highest = float(accuracy.max())
    return {
      'accuracy': float(np.trace(table) / max(table.sum(), 1)),
      'precision': macro_precision(table),
      'recall': macro_recall(table),
      'loss': loss if math.isfinite(loss) else None,
      'mean_client_accuracy': float(accuracy.mean()),
      'highest_client_accuracy': highest,
      'share_at_highest': float(np.mean(accuracy >= highest)),
    }


def macro_precision(confusion: np.ndarray) -> float:
  """Returns the mean over classes of precision; a class that is neither present nor predicted is left out.

  Args:
    confusion: int[classes, classes], (true, predicted). A present class that is never predicted counts 0.
  """
  return _macro(confusion, confusion.sum(axis=0))


def macro_recall(confusion: np.ndarray) -> float:
  """Returns the mean over classes of recall; a class that is neither present nor predicted is left out.

  Args:
    confusion: int[classes, classes], (true, predicted). A class that is predicted but absent counts 0.
  """
  return _macro(confusion, confusion.sum(axis=1))


def _macro(confusion: np.ndarray, denominator: np.ndarray) -> float:
  seen = (confusion.sum(axis=0) + confusion.sum(axis=1)) > 0
  hits = np.diag(confusion)
  return float(np.mean(hits[seen] / np.maximum(denominator[seen], 1))) if seen.any() else 0.0
