"""Figure 1 of CFL: gradients and stationary points against SciPy and scikit-learn, halves against single linkage."""

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import linear_model, metrics

from tff_cluster.base.errors import InputError
from tff_cluster.papers.sattler2019.toys import clients as toy_clients


@pytest.fixture(scope='module')
def toys():
  return {toy.name: toy for toy in toy_clients.run_figure1()}


@pytest.fixture(scope='module', params=[1, 2])
def of_other_seeds(request):
  return {problem: toy_clients.run_clients(problem, seed=request.param) for problem in toy_clients.PROBLEMS}


def _together(toy):
  return toy.groups[:, None] == toy.groups


def _planted(toy):
  return toy.planted[:, None] == toy.planted


_VALUES = st.floats(-2.0, 2.0)


@hypothesis.given(
  hnp.arrays(np.float64, 4, elements=_VALUES),
  hnp.arrays(np.float64, (2, 5, 2), elements=_VALUES),
  hnp.arrays(np.int64, (2, 5), elements=st.integers(0, 1)),
)
def test_gradients_are_those_of_finite_differences(weights, points, labels):
  phi, step = toy_clients.features(points, richer=True), 1e-6
  higher, lower = (
    np.stack([toy_clients.risks(weights + side * step * unit, phi, labels) for unit in np.eye(4)], axis=1)
    for side in (1, -1)
  )
  numeric = (higher - lower) / (2 * step)
  np.testing.assert_allclose(toy_clients.gradients(weights, phi, labels), numeric, atol=1e-7)


def test_risks_are_the_log_loss_of_scikit_learn(toys):
  toy = toys['xor_richer']
  phi, weights = toy_clients.features(toy.points, True), np.array([0.3, -0.2, 0.5, 0.1])
  for risk, own, labels in zip(toy_clients.risks(weights, phi, toy.labels), phi, toy.labels, strict=True):
    assert risk == pytest.approx(metrics.log_loss(labels, 1 / (1 + np.exp(-own @ weights))))


@pytest.mark.parametrize('problem', toy_clients.PROBLEMS)
def test_the_one_model_is_the_logistic_regression_of_all_rows(toys, problem):
  toy = toys[problem]
  oracle = linear_model.LogisticRegression(penalty=None, tol=1e-10, max_iter=10_000)
  oracle.fit(toy.points.reshape(-1, 2), toy.labels.ravel())
  # The gradient is below ε₁, and near 0 the curvature is a quarter of the features' second moments, at least 1/4.
  np.testing.assert_allclose(toy.weights, [*oracle.coef_[0], *oracle.intercept_], atol=6 * toy.eps_1)


def test_the_gradients_are_those_at_the_models(toys):
  for toy in toys.values():
    phi = toy_clients.features(toy.points, toy.name.endswith('richer'))
    np.testing.assert_allclose(toy.gradients, toy_clients.gradients(toy.weights, phi, toy.labels))
    for k, group in enumerate(toy.groups):
      own = toy_clients.gradients(toy.group_weights[group], phi[[k]], toy.labels[[k]])
      np.testing.assert_allclose(toy.group_gradients[[k]], own)


# --- The data ---


def test_xor_shows_each_cluster_one_side_and_both_labels(toys):
  toy = toys['xor']
  first, second = (toy.points[toy.planted == k] for k in (0, 1))
  assert (first[..., 0] > 0).all() and (second[..., 0] < 0).all()
  np.testing.assert_array_equal(toy.labels[toy.planted == 0], first[..., 1] > 0)
  np.testing.assert_array_equal(toy.labels[toy.planted == 1], second[..., 1] < 0)
  assert (toy.labels.mean(axis=1) == 0.5).all()


def test_diverging_conditionals_show_the_same_places_with_opposite_labels(toys):
  toy = toys['conditionals']
  for planted in (0, 1):
    points = toy.points[toy.planted == planted].reshape(-1, 2)
    quarters, counts = np.unique(points > 0, axis=0, return_counts=True)
    assert len(quarters) == 4 and (counts == 50).all()
    np.testing.assert_array_equal(
      toy.labels[toy.planted == planted].ravel(), (points[:, 0] > 0) != bool(planted)
    )


def test_points_fill_discs_that_do_not_touch(toys):
  for toy in toys.values():
    away = np.abs(toy.points) - 1.0
    length = np.hypot(*np.moveaxis(away, -1, 0))
    assert 0.7 < length.max() <= 0.75
    # Evenly by area: half of the points lie within 1/√2 of the radius; 400 points miss ½ by 0.1 once in 15,000.
    assert np.mean(length < 0.75 / math.sqrt(2)) == pytest.approx(0.5, abs=0.1)


def test_points_move_with_the_seed_and_only_with_it():
  one, same, other = (toy_clients.run_clients('xor', clients=2, rows=4, seed=seed) for seed in (0, 0, 1))
  np.testing.assert_array_equal(one.points, same.points)
  np.testing.assert_array_equal(one.weights, same.weights)
  assert not (one.points == other.points).any()
  more = toy_clients.run_clients('xor', clients=4, rows=4)
  np.testing.assert_array_equal(more.points[:2], one.points)


def test_the_best_of_any_model_is_counted():
  points = np.array([[0.3, 0.4], [-1.0, 1.0], [2.0, -0.1]])
  assert toy_clients.ceiling('xor', points) == 1.0
  assert toy_clients.ceiling('conditionals', points) == 0.5


# --- The paper's facts ---


def _check_incongruent(toy):
  # Equations 3 and 4 at the stationary point: the clusters' gradients cancel, and the cosines show the clusters.
  assert np.linalg.norm(toy.gradients.mean(axis=0)) < toy.eps_1
  assert np.linalg.norm(toy.gradients, axis=1).min() > 10 * toy.eps_2
  of_clusters = [toy.gradients[toy.planted == k].mean(axis=0) for k in (0, 1)]
  np.testing.assert_allclose(of_clusters[0], -of_clusters[1], atol=2 * toy.eps_1)
  assert toy.similarity[_planted(toy)].min() > 0.9 and toy.similarity[~_planted(toy)].max() < -0.9
  assert toy.accuracy <= 0.75
  # Equation 6, and behind it criterion 5.
  np.testing.assert_array_equal(_together(toy), _planted(toy))
  assert np.linalg.norm(toy.group_gradients, axis=1).max() < toy.eps_2
  assert (toy.client_accuracy == 1.0).all() and (toy.alone == 1.0).all()


@pytest.mark.parametrize('problem', toy_clients.PROBLEMS)
def test_no_line_fits_all_and_two_fit(toys, of_other_seeds, problem):
  for toy in (toys[problem], of_other_seeds[problem]):
    _check_incongruent(toy)


def test_no_line_at_all_gets_more_than_three_discs_of_xor(toys):
  points, labels = toys['xor'].points.reshape(-1, 2), toys['xor'].labels.ravel()
  for angle in np.linspace(0.0, 2 * np.pi, 90, endpoint=False):
    height = points @ [np.cos(angle), np.sin(angle)]
    ones = labels[np.argsort(height)]
    # Right where label 1 begins after the first k rows: the zeros among them and the ones behind them.
    right = np.concatenate([[0], np.cumsum(1 - ones)]) + np.concatenate([np.cumsum(ones[::-1])[::-1], [0]])
    assert right.max() <= 0.75 * len(labels)


def test_a_model_that_is_complex_enough_makes_xor_congruent(toys):
  toy = toys['xor_richer']
  assert np.linalg.norm(toy.gradients, axis=1).max() < toy.eps_2
  assert not toy.groups.any() and len(toy.group_weights) == 1
  np.testing.assert_array_equal(toy.group_weights[0], toy.weights)
  assert toy.accuracy == 1.0 and toy.ceiling == 1.0
  # The product decides: label 1 where both inputs have the same sign.
  assert toy.features[np.argmax(np.abs(toy.weights))] == 'x₁x₂' and toy.weights[2] > 0


def test_the_same_model_cannot_mend_diverging_conditionals(toys):
  toy = toys['conditionals_richer']
  assert toy.ceiling == 0.5
  _check_incongruent(toy)


def test_scores_are_those_of_the_models_on_the_grid(toys):
  toy = toys['xor_richer']
  x, y = toy.axis[30], toy.axis[100]
  assert toy.scores[0, 100, 30] == pytest.approx(toy.weights @ [x, y, x * y, 1.0])
  assert len(toys['xor'].scores) == 3


def test_two_clients_are_split_into_single_ones():
  toy = toy_clients.run_clients('conditionals', clients=2, rows=8)
  assert toy.groups.tolist() == [0, 1] and (toy.client_accuracy == 1.0).all()


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'problem': 'moons'}, "problem 'moons': allowed are xor, conditionals"),
    ({'clients': 3}, '3 clients'),
    ({'clients': 12}, '12 clients: allowed are even numbers from 2 to 10'),
    ({'clients': 0}, '0 clients'),
    ({'rows': 6}, '6 rows: allowed are multiples of 4'),
    ({'rows': 0}, '0 rows'),
    ({'eps_1': 0.1}, 'eps_1 0.1, eps_2 0.01'),
    ({'eps_2': math.nan}, 'eps_2 nan'),
  ],
)
def test_wrong_input_is_told(changes, message):
  with pytest.raises(InputError, match=message):
    toy_clients.run_clients(**({'problem': 'xor'} | changes))
