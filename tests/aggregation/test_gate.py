"""The gate on planted specialists, and where its features or labels are at an edge."""

import numpy as np
import pytest

from tff_cluster.aggregation.rules import mean
from tff_cluster.aggregation.rules.gate import gate
from tff_cluster.base.errors import InputError


def specialists(rows, seed):
  """float64[3, rows, 6] and int64[rows]: one expert knows classes 0 to 2, one 3 to 5, a third is loud and knows nothing."""
  rng = np.random.default_rng(seed)
  labels = rng.integers(6, size=rows)
  outputs = np.full((3, rows, 6), 0.01)
  for expert in (0, 1):
    own = (labels // 3) == expert
    # Sure of its own classes; of a foreign sample it says one of its own, less surely.
    said = np.where(own, labels, 3 * expert + rng.integers(3, size=rows))
    outputs[expert, np.arange(rows), said] = np.where(own, 0.8, 0.4)
  outputs[2, np.arange(rows), rng.integers(6, size=rows)] = 5.0
  return outputs / outputs.sum(axis=2, keepdims=True), labels


def test_the_gate_beats_the_mean_on_planted_specialists():
  validation, validation_labels = specialists(400, 0)
  outputs, labels = specialists(1000, 1)
  found = gate(validation, validation_labels, outputs)
  assert found.shape == labels.shape and found.dtype == np.int64
  # The mean follows the loud expert, which is right for one sample in six.
  assert (mean.mean(outputs) == labels).mean() < 0.3
  assert (found == labels).mean() > 0.95
  # It sees outputs in proportion only.
  np.testing.assert_array_equal(gate(validation * 8, validation_labels, outputs / 4), found)


def test_zeros_are_no_infinities():
  labels = np.arange(60) % 3
  outputs = np.eye(3)[labels][None]
  np.testing.assert_array_equal(gate(outputs, labels, np.eye(3)[None]), [0, 1, 2])
  assert gate(outputs, labels, np.zeros((1, 2, 3))).shape == (2,)


def test_a_class_that_is_not_in_the_validation_rows_is_not_predicted():
  validation, labels = specialists(400, 0)
  outputs, _ = specialists(200, 1)
  seen = labels != 4
  assert set(gate(validation[:, seen], labels[seen], outputs)) == {0, 1, 2, 3, 5}
  only = labels == 4
  assert set(gate(validation[:, only], labels[only], outputs)) == {4}


def test_wrong_input():
  validation, labels = specialists(20, 0)
  for given, message in (
    (
      (validation, labels, validation[:2]),
      r'same experts and classes, found shapes \[2, 20, 6\] and \[3, 20, 6\]',
    ),
    ((validation, labels[:-1], validation), r'one for each of 20, found shape \[19\]'),
    ((validation, labels, np.log(validation)), r'outputs\[0, 0, 0\] is -'),
  ):
    with pytest.raises(InputError, match=message):
      gate(*given)
