"""Metrics from counts, against scikit-learn and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from tff_cluster.data.class_counts import RowMetrics, Scores, macro_precision, macro_recall


def counts(true, predicted, classes):
  """Returns int[3, classes]: rows of a class, rows that are taken for it, and hits."""
  confusion = np.zeros((classes, classes), np.int64)
  np.add.at(confusion, (list(true), list(predicted)), 1)
  return np.stack([confusion.sum(axis=1), confusion.sum(axis=0), np.diagonal(confusion)])


@st.composite
def labellings(draw):
  """Returns (true, predicted) of some clients and the number of classes; classes may be absent."""
  classes = draw(st.integers(1, 6))
  label = st.integers(0, classes - 1)
  clients = draw(st.lists(st.lists(st.tuples(label, label), min_size=1, max_size=12), min_size=1, max_size=5))
  return [tuple(zip(*rows, strict=True)) for rows in clients], classes


@given(labellings())
@settings(deadline=None, max_examples=50)
def test_summary_is_scikit_learns_over_all_rows_together(drawn):
  clients, classes = drawn
  losses = np.arange(len(clients)) * 0.75 + 0.1
  summary = Scores(np.stack([counts(t, p, classes) for t, p in clients]), losses).summary()
  true = np.concatenate([t for t, _ in clients])
  predicted = np.concatenate([p for _, p in clients])
  # scikit-learn, too, leaves out classes that are neither present nor predicted.
  for name, function in (('precision', metrics.precision_score), ('recall', metrics.recall_score)):
    expected = function(true, predicted, average='macro', zero_division=0)
    assert getattr(summary, name) == pytest.approx(expected, abs=1e-12), name
  assert summary.accuracy == pytest.approx(metrics.accuracy_score(true, predicted), abs=1e-12)
  assert summary.loss == pytest.approx(losses.sum() / len(true))
  each = [metrics.accuracy_score(t, p) for t, p in clients]
  assert summary.mean_client_accuracy == pytest.approx(np.mean(each))
  assert summary.highest_client_accuracy == pytest.approx(max(each))
  assert summary.share_at_highest == pytest.approx(np.mean(np.isclose(each, max(each))))


def test_counts_are_by_client_and_one_without_rows_has_accuracy_0():
  rows = [counts([], [], 2), counts([0] * 5 + [1], [0, 0, 0, 1, 1, 1], 2)]
  scores = Scores(np.stack(rows), np.array([0.0, 3.0]))
  assert scores.total.tolist() == [0, 6] and scores.correct.tolist() == [0, 4]
  assert scores.client_accuracy.tolist() == [0.0, 4 / 6]
  assert scores.select([1]).summary() == Scores(scores.counts[1:], np.array([3.0])).summary()
  assert scores.select([0]).over_rows() == RowMetrics(0.0, 0.0, 0.0, 0.0)


def test_absent_classes_by_hand():
  # Class 0: 2 rows, both right. Class 1: 2 rows, predicted as 2. Class 2: absent, predicted twice. Class 3: neither.
  found = counts([0, 0, 1, 1], [0, 0, 2, 2], 4)
  assert macro_recall(found) == pytest.approx((1 + 0 + 0) / 3)
  assert macro_precision(found) == pytest.approx((1 + 0 + 0) / 3)
  # Class 1 is present and never predicted: its precision counts 0, its recall 0.
  found = counts([0, 0, 1], [0, 0, 0], 2)
  assert macro_precision(found) == pytest.approx((2 / 3 + 0) / 2)
  assert macro_recall(found) == pytest.approx((1 + 0) / 2)


def test_a_loss_that_is_not_finite_is_none():
  for loss in (math.inf, math.nan):
    scores = Scores(np.stack([counts([0, 1], [0, 1], 2)] * 2), np.array([0.5, loss]))
    assert scores.summary().loss is None
    assert scores.select([0]).summary().loss == 0.25
