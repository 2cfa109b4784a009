"""FedEx against hand calculation and exact fractions; the other rules against SciPy and brute force; the gate on planted specialists."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.made_up.expert_outputs import HAND
from tests.made_up.refusals import refused
from tff_cluster.aggregation.expert_outputs import ExpertOutputs
from tff_cluster.aggregation.rules import confidence, fedex, mean, oracle, vote
from tff_cluster.aggregation.rules.gate import gate
from tff_cluster.base import seeding


@st.composite
def streams(draw):
  """float64[experts, samples, classes], from 0 to 1 in sixteenths."""
  shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 8), st.integers(1, 4)))
  numbers = st.lists(st.integers(0, 16), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
  return np.array(draw(numbers), np.int64).reshape(shape) / 16


def algorithm_2(outputs, weights):
  """Algorithm 2 in exact fractions, index by index; the smallest lead of a prediction over the next class too."""
  num_experts, num_samples, num_classes = outputs.shape
  w = [[Fraction(x) for x in row] for row in weights.tolist()]
  predictions, lead = [], Fraction(1)
  for t in range(1, num_samples + 1):
    m = [[Fraction(x) for x in row] for row in outputs[:, t - 1].tolist()]
    scores = [sum(w[i][j] * m[i][j] for i in range(num_experts)) for j in range(num_classes)]
    p = max(range(num_classes), key=lambda j: scores[j])
    lead = min([lead, *(scores[p] - scores[j] for j in range(num_classes) if j != p)])
    total = sum(m[i][p] for i in range(num_experts))
    for i in range(num_experts):
      c = m[i][p] / total if total else Fraction(1, num_experts)
      w[i][p] = (w[i][p] * t + c) / (t + 1)
    predictions.append(p)
  return predictions, np.array([[float(x) for x in row] for row in w]), lead


def test_three_steps_by_hand():
  steps = [
    # t = 1. Sums 1/2 (3/4, 1/2, 3/4): classes 0 and 2 tie, 0 wins. c = (1/2, 1/4) / (3/4) = (2/3, 1/3).
    # w_10 = (1/2 + 2/3) / 2 = 7/12, w_20 = (1/2 + 1/3) / 2 = 5/12.
    [[7 / 12, 1 / 2, 1 / 2], [5 / 12, 1 / 2, 1 / 2]],
    # t = 2. Sums 7/60 + 10/60 = 17/60, 24/60, 18/60: class 1. c = (3/4, 1/4).
    # w_11 = (1/2 * 2 + 3/4) / 3 = 7/12, w_21 = (1/2 * 2 + 1/4) / 3 = 5/12.
    [[7 / 12, 7 / 12, 1 / 2], [5 / 12, 5 / 12, 1 / 2]],
    # t = 3. Sums times 240: 84 + 10 = 94, 7 + 50 = 57, 42 + 48 = 90: class 0, where equal weights give class 2
    # (14/40 against 15/40). c = (12/14, 2/14) = (6/7, 1/7).
    # w_10 = (7/12 * 3 + 6/7) / 4 = (49/28 + 24/28) / 4 = 73/112, w_20 = (35/28 + 4/28) / 4 = 39/112.
    [[73 / 112, 7 / 12, 1 / 2], [39 / 112, 5 / 12, 1 / 2]],
  ]
  for t, after in enumerate(steps, 1):
    predictions, weights = fedex.fedex(HAND[:, :t])
    assert predictions.tolist() == [0, 1, 0][:t] and predictions.dtype == np.int64
    np.testing.assert_allclose(weights, after, rtol=1e-15)
  assert mean.mean(HAND).tolist() == [0, 1, 2]


def test_the_prediction_comes_before_the_update():
  # Sums 0.6 and 0.58: class 0. After the update (6/7 of the confidence is expert 0's, so w_00 falls from 1 to
  # 13/14 and w_10 rises to 1/14) they would be (13 * 0.6 + 0.1) / 14 = 0.564 and 0.58: class 1.
  start = np.array([[1.0, 0.0], [0.0, 1.0]])
  sample = np.array([[0.6, 0.0], [0.1, 0.58]])
  predictions, weights = fedex.fedex(sample[:, None], start)
  assert predictions.tolist() == [0]
  np.testing.assert_allclose(weights, [[13 / 14, 0.0], [1 / 14, 1.0]])
  assert (weights * sample).sum(axis=0).argmax() == 1
  assert start.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@settings(max_examples=50)
@given(streams(), st.booleans(), st.integers(0, 2**31))
def test_the_stream_is_algorithm_2_in_fractions(outputs, with_start, seed):
  shape = (outputs.shape[0], outputs.shape[2])
  equal = np.full(shape, 1 / shape[0])
  start = np.random.default_rng(seed).integers(0, 9, size=shape) / 8 if with_start else None
  expected, final, lead = algorithm_2(outputs, equal if start is None else start)
  # Sums that tie in fractions may differ in their last bit here, and then all that comes after them differs.
  assume(lead > 1e-9)
  predictions, weights = fedex.fedex(outputs, start)
  assert predictions.tolist() == expected
  np.testing.assert_allclose(weights, final, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize('start', [None, np.random.default_rng(5).dirichlet(np.ones(5), 3)])
def test_shuffled_predictions_come_back_in_order(start):
  outputs = np.random.default_rng(4).dirichlet(np.full(5, 0.4), (3, 200))
  before = None if start is None else start.copy()
  found = fedex.shuffled(outputs, seeding.generator(0, 'test'), 4, start)
  rng = seeding.generator(0, 'test')
  assert found.shape == (4, 200)
  for row in found:
    order = rng.permutation(200)
    np.testing.assert_array_equal(row[order], fedex.fedex(outputs[:, order], before)[0])
  assert (found != fedex.fedex(outputs, before)[0]).any()
  np.testing.assert_array_equal(start, before)


@pytest.mark.parametrize(
  ('experts', 'voted', 'of_mean', 'most_confident'),
  [
    # Firsts 0, 0, 2; means 0.3, 0.4, 0.3; the highest output is 0.55.
    ([[0.5, 0.4, 0.1], [0.4, 0.35, 0.25], [0.0, 0.45, 0.55]], 0, 1, 2),
    # A tie of votes goes to the higher mean among the tied. One vote each; means 0.3, 0.45.
    ([[0.6, 0.0, 0.4], [0.0, 0.9, 0.1]], 1, 1, 1),
    # Means 0.25, 0.25, 0.45: class 2 has the highest and no vote.
    ([[0.5, 0.0, 0.45], [0.0, 0.5, 0.45]], 0, 2, 0),
    # One expert.
    ([[0.2, 0.5, 0.3]], 1, 1, 1),
  ],
)
def test_mean_vote_and_confidence_differ_by_hand(experts, voted, of_mean, most_confident):
  outputs = np.array(experts)[:, None]
  found = [rule(outputs) for rule in (vote.vote, mean.mean, confidence.confidence)]
  assert [each.tolist() for each in found] == [[voted], [of_mean], [most_confident]]
  assert all(each.dtype == np.int64 for each in found)


@settings(max_examples=50)
@given(streams(), st.integers(0, 2**31))
def test_vote_is_scipys_mode_and_the_oracle_bounds_rules_that_name_some_experts_class(outputs, seed):
  firsts = outputs.argmax(axis=2)
  counts = np.array([np.bincount(column, minlength=outputs.shape[2]) for column in firsts.T])
  clear = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) == 1
  modes = scipy.stats.mode(firsts, axis=0, keepdims=False).mode
  np.testing.assert_array_equal(vote.vote(outputs)[clear], modes[clear])
  labels = np.random.default_rng(seed).integers(outputs.shape[2], size=outputs.shape[1])
  right = oracle.oracle(outputs, labels) == labels
  of_rules = (rule(outputs) for rule in (mean.mean, vote.vote, confidence.confidence))
  for found in (*firsts, *of_rules):
    assert right[found == labels].all()
  wrong = ~(firsts == labels).any(axis=0)
  np.testing.assert_array_equal(oracle.oracle(outputs, labels)[wrong], mean.mean(outputs)[wrong])


GOOD = np.full((2, 3, 4), 0.25)


def changed(value):
  outputs = GOOD.copy()
  outputs[1, 2, 3] = value
  return outputs


def test_wrong_arrays():
  refused(
    ExpertOutputs,
    (GOOD[0], r'must be \[experts, samples, classes\] with at least one of each, found shape \[3, 4\]'),
    (GOOD[:, :, :0], r'found shape \[2, 3, 0\]'),
    (changed(np.nan), r'outputs\[1, 2, 3\] is nan; allowed are finite numbers from 0'),
    (changed(-0.5), r'outputs\[1, 2, 3\] is -0.5; .*not logits'),
    (GOOD + 0j, 'must be numbers, found dtype complex128'),
    (GOOD, [0, 1], r'labels must be \[samples\], one for each of 3, found shape \[2\]'),
    (GOOD, [0.0, 1.0, 2.0], 'labels must be whole numbers, found dtype float64'),
    (GOOD, [0, 4, 0], r'labels\[1\] is 4; labels go from 0 to 3'),
    (
      GOOD,
      None,
      np.ones((4, 2)),
      r'start_weights must be \[experts, classes\], here \[2, 4\], found shape \[4, 2\]',
    ),
    (GOOD, None, np.full((2, 4), np.nan), r'start_weights\[0, 0\] is nan'),
  )


def test_every_rule_looks_at_what_it_is_given():
  for rule in (fedex.fedex, mean.mean, vote.vote, confidence.confidence):
    refused(rule, (-GOOD, 'not logits'))
  refused(oracle.oracle, (GOOD, [0, 1], 'one for each of 3'))
  refused(fedex.fedex, (GOOD, np.ones(4), 'start_weights must be'))
  draws = np.random.default_rng(0)
  refused(fedex.shuffled, (-GOOD, draws, 1, 'not logits'), (GOOD, draws, 0, 'times=0: must be at least 1'))


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
  shapes = r'same experts and classes, found shapes \[2, 20, 6\] and \[3, 20, 6\]'
  refused(
    gate,
    (validation, labels, validation[:2], shapes),
    (validation, labels[:-1], validation, r'one for each of 20, found shape \[19\]'),
    (validation, labels, np.log(validation), r'outputs\[0, 0, 0\] is -'),
  )
