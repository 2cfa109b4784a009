"""Figures 1 and 2 of CFL against SciPy, scikit-learn, finite differences and closed forms."""

import dataclasses
import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import linear_model, metrics

from tests.made_up.refusals import refused
from tff_cluster.papers.sattler2019.toys import clients as toy_clients
from tff_cluster.papers.sattler2019.toys import risks as toy_problems
from tff_cluster.papers.sattler2019.toys.risks import Bowl


@pytest.fixture(scope='module')
def toys():
  return {toy.name: toy for toy in toy_clients.run_figure1()}


_VALUES = st.floats(-2.0, 2.0)


@hypothesis.settings(max_examples=50, deadline=None)
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


def test_points_fill_discs_that_do_not_touch_and_move_with_the_seed_only(toys):
  away = np.abs(toys['xor'].points) - 1.0
  assert 0.7 < np.linalg.norm(away, axis=-1).max() <= 0.75
  one, same, other = (toy_clients.run_clients('xor', clients=2, rows=4, seed=seed) for seed in (0, 0, 1))
  np.testing.assert_array_equal(one.points, same.points)
  np.testing.assert_array_equal(one.weights, same.weights)
  assert not (one.points == other.points).any()


def _check_incongruent(toy):
  # Equations 3 and 4 at the stationary point: the clusters' gradients cancel, and the cosines show the clusters.
  planted = toy.planted[:, None] == toy.planted
  assert np.linalg.norm(toy.gradients.mean(axis=0)) < toy.eps_1
  assert np.linalg.norm(toy.gradients, axis=1).min() > 10 * toy.eps_2
  of_clusters = [toy.gradients[toy.planted == k].mean(axis=0) for k in (0, 1)]
  np.testing.assert_allclose(of_clusters[0], -of_clusters[1], atol=2 * toy.eps_1)
  assert toy.similarity[planted].min() > 0.9 and toy.similarity[~planted].max() < -0.9
  assert toy.accuracy <= 0.75
  # Equation 6, and behind it criterion 5.
  np.testing.assert_array_equal(toy.groups[:, None] == toy.groups, planted)
  assert np.linalg.norm(toy.group_gradients, axis=1).max() < toy.eps_2
  assert (toy.client_accuracy == 1.0).all() and (toy.alone == 1.0).all()


@pytest.mark.parametrize('problem', toy_clients.PROBLEMS)
def test_no_line_fits_all_and_two_fit(toys, problem):
  for toy in (toys[problem], toy_clients.run_clients(problem, clients=4, seed=1)):
    _check_incongruent(toy)
  # A richer model cannot mend diverging conditionals.
  assert toys['conditionals_richer'].ceiling == 0.5
  _check_incongruent(toys['conditionals_richer'])
  points = np.array([[0.3, 0.4], [-1.0, 1.0], [2.0, -0.1]])
  assert [toy_clients.ceiling(name, points) for name in ('xor', 'conditionals')] == [1.0, 0.5]


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


def test_scores_and_gradients_are_those_of_the_models(toys):
  toy = toys['xor_richer']
  x, y = toy.axis[30], toy.axis[100]
  assert toy.scores[0, 100, 30] == pytest.approx(toy.weights @ [x, y, x * y, 1.0])
  assert len(toys['xor'].scores) == 3
  for toy in toys.values():
    phi = toy_clients.features(toy.points, toy.name.endswith('richer'))
    np.testing.assert_allclose(toy.gradients, toy_clients.gradients(toy.weights, phi, toy.labels))
    for k, group in enumerate(toy.groups):
      own = toy_clients.gradients(toy.group_weights[group], phi[[k]], toy.labels[[k]])
      np.testing.assert_allclose(toy.group_gradients[[k]], own)


def test_wrong_clients_are_told():
  refused(
    lambda changes: toy_clients.run_clients(**({'problem': 'xor'} | changes)),
    ({'problem': 'moons'}, "problem 'moons': allowed are xor, conditionals"),
    ({'clients': 12}, '12 clients: allowed are even numbers from 2 to 10'),
    ({'rows': 6}, '6 rows: allowed are multiples of 4'),
    ({'eps_1': 0.1}, 'eps_1 0.1, eps_2 0.01'),
    ({'eps_2': math.nan}, 'eps_2 nan'),
  )


_NUMBERS = st.floats(-3.0, 3.0)
_PAIRS = st.tuples(_NUMBERS, _NUMBERS)
_HALF_AXES = st.floats(0.5, 3.0)
_FLAT = st.just(0.0) | st.floats(0.0, 2.0)
_BOWLS = st.builds(Bowl, _PAIRS, st.tuples(_HALF_AXES, _HALF_AXES), st.floats(-180.0, 180.0), _FLAT)
# A round costs a tenth of a millisecond, and the nearer a share is to 0, the more rounds it takes.
_FEW = hypothesis.settings(max_examples=15, deadline=None)


def _rim(bowl, angle, size):
  """The point in direction `angle` of the ellipse that is `size` times the one of the half axes."""
  turn = math.radians(bowl.turn)
  along, across = size * np.array(bowl.half_axes) * [math.cos(angle), math.sin(angle)]
  cos, sin = math.cos(turn), math.sin(turn)
  return np.add(bowl.centre, [along * cos - across * sin, along * sin + across * cos])


@hypothesis.settings(max_examples=50, deadline=None)
@hypothesis.given(_BOWLS, st.floats(0.0, 6.3), st.floats(0.0, 4.0))
def test_a_risk_is_half_the_squared_distance_from_its_bottom(bowl, angle, size):
  expected = 0.5 * max(0.0, size - bowl.flat) ** 2
  assert bowl.risk(_rim(bowl, angle, size)) == pytest.approx(expected, abs=1e-9)


@hypothesis.settings(max_examples=50, deadline=None)
@hypothesis.given(_BOWLS, _PAIRS)
def test_gradients_of_risks_are_those_of_finite_differences(bowl, theta):
  theta, step = np.array(theta), 1e-6
  numeric = [
    (bowl.risk(theta + step * unit) - bowl.risk(theta - step * unit)) / (2 * step) for unit in np.eye(2)
  ]
  # Where the bottom ends the gradient has a kink: there the quotient is off by the curvature times the step.
  np.testing.assert_allclose(bowl.gradient(theta), numeric, atol=2e-5)
  np.testing.assert_array_equal(bowl.gradient(np.array(bowl.centre)), [0.0, 0.0])


def test_rounds_by_hand():
  # Gradients (x ± 1, y); their mean is (x, y), so that with rate ¼ each round leaves ¾ of both.
  toy = toy_problems.run_risks(
    'by hand', (Bowl((-1.0, 0.0), (1.0, 1.0)), Bowl((1.0, 0.0), (1.0, 1.0))), 0.5, (0.0, 2.0), 0.25, 0.9
  , 0.95)  # fmt: skip
  np.testing.assert_allclose(toy.path, [[0.0, 2.0], [0.0, 1.5], [0.0, 1.125], [0.0, 0.84375]])
  np.testing.assert_allclose(toy.gradients[1], [[1.0, 1.5], [-1.0, 1.5]])
  np.testing.assert_allclose(toy.norms[0], [5**0.5, 5**0.5, 2.0])


@_FEW
@hypothesis.given(st.floats(0.02, 0.98), _PAIRS)
def test_incongruent_clients_end_in_the_closed_form_with_opposite_gradients(share, start):
  toy = toy_problems.run_risks('incongruent', toy_problems.INCONGRUENT, share, start)
  weighted = [a * bowl.matrix for a, bowl in zip((share, 1 - share), toy_problems.INCONGRUENT, strict=True)]
  pull = sum(matrix @ bowl.centre for matrix, bowl in zip(weighted, toy_problems.INCONGRUENT, strict=True))
  np.testing.assert_allclose(toy.path[-1], np.linalg.solve(sum(weighted), pull), atol=1e-5)
  first, second = toy.gradients[-1]
  np.testing.assert_allclose(first, -(1 - share) / share * second, atol=toy.eps_1 / share)
  norms = np.linalg.norm([first, second], axis=1)
  assert norms.min() > 0 and norms.max() >= toy.eps_2
  assert first @ second / norms.prod() < -0.999
  assert np.linalg.norm(share * first + (1 - share) * second) < toy.eps_1


@_FEW
@hypothesis.given(
  st.floats(0.1, 0.9), st.floats(0.2, 2.0), st.floats(0.2, 2.0), st.floats(0.3, 2.0), st.floats(0.0, 360.0)
)
def test_discs_apart_leave_each_client_the_gap_times_the_others_share(share, first, second, gap, angle):
  # Between the discs both gradients lie on the line of the centres. They add up to the gap, and a₁ |g₁| = a₂ |g₂|.
  distance, direction = first + second + gap, np.array([math.cos(angle), math.sin(angle)])
  bowls = (
    Bowl((0.0, 0.0), (1.0, 1.0), flat=first), Bowl(tuple(distance * direction), (1.0, 1.0), flat=second),
  )  # fmt: skip
  toy = toy_problems.run_risks('apart', bowls, share, (0.5, -0.5), 0.5)
  np.testing.assert_allclose(toy.norms[-1, :2], [(1 - share) * gap, share * gap], atol=1e-4)


@_FEW
@hypothesis.given(st.floats(0.2, 0.8), st.floats(0.5, 2.0), st.floats(0.3, 1.0), _PAIRS)
def test_risks_that_meet_leave_no_gradient(share, radius, overlap, start):
  discs = tuple(Bowl((x, 0.0), (1.0, 1.0), flat=radius) for x in (0.0, 2 * radius - overlap * radius))
  for bowls in (discs, toy_problems.CONGRUENT):
    toy = toy_problems.run_risks('meet', bowls, share, start, 0.5)
    assert toy.norms[-1, :2].max() < toy.eps_2
    assert max(bowl.risk(toy.path[-1]) for bowl in bowls) < toy.eps_2**2


def test_figure_2_is_one_start_two_problems_and_an_area():
  incongruent, congruent = toy_problems.run_figure2(0.3)
  np.testing.assert_array_equal(incongruent.path[0], congruent.path[0])
  assert not (incongruent.risks.max(axis=0) == 0).any() and (congruent.risks.max(axis=0) == 0).any()
  for toy, bowls in ((incongruent, toy_problems.INCONGRUENT), (congruent, toy_problems.CONGRUENT)):
    assert np.abs(toy.path).max() < toy.axis[-1]
    # A path ends at its first stationary point, and falls all the way.
    assert (toy.norms[:-1, 2] >= toy.eps_1).all() and toy.norms[-1, 2] < toy.eps_1
    objective = 0.3 * bowls[0].risk(toy.path) + 0.7 * bowls[1].risk(toy.path)
    assert (np.diff(objective) <= 0).all()
  # risks[k, row, column] is at first parameter axis[column], second axis[row].
  bowl = toy_problems.INCONGRUENT[1]
  point = np.array([incongruent.axis[200], incongruent.axis[10]])
  assert incongruent.risks[1, 10, 200] == pytest.approx(float(bowl.risk(point)))


@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_wrong_risks_are_told():
  given = {'name': 'x', 'bowls': toy_problems.INCONGRUENT}
  refused(
    lambda changes: toy_problems.run_risks(**(given | changes)),
    ({'share': 0.0}, 'share 0.0'),
    ({'start': (0.0,)}, 'start'),
    ({'rate': 0.0}, 'rate 0.0'),
    ({'rate': 50.0}, 'mean gradient has norm'),
    ({'eps_1': 0.1, 'eps_2': 0.1}, '0 < eps_1 < eps_2'),
    ({'bowls': toy_problems.CONGRUENT[:1]}, '1 risks'),
  )
  bowls = ({'flat': -1.0}, {'half_axes': (0.0, 1.0)}, {'centre': (math.nan, 0.0)}, {'turn': math.inf})
  refused(
    lambda changes: dataclasses.replace(toy_problems.INCONGRUENT[0], **changes),
    *((changes, 'allowed are finite numbers') for changes in bowls),
  )
