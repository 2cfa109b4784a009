"""Figure 2 of CFL: gradients against finite differences, stationary points against closed forms, and the two cases."""

import dataclasses
import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tff_cluster.base.errors import InputError
from tff_cluster.papers.sattler2019.toys import risks as toy_problems
from tff_cluster.papers.sattler2019.toys.risks import Bowl

_NUMBERS = st.floats(-3.0, 3.0)
_PAIRS = st.tuples(_NUMBERS, _NUMBERS)
_HALF_AXES = st.floats(0.5, 3.0)
_FLAT = st.just(0.0) | st.floats(0.0, 2.0)
_BOWLS = st.builds(Bowl, _PAIRS, st.tuples(_HALF_AXES, _HALF_AXES), st.floats(-180.0, 180.0), _FLAT)
# A round costs a tenth of a millisecond, and the nearer a share is to 0, the more rounds it takes.
_FEW = hypothesis.settings(max_examples=25, deadline=None)


def _rim(bowl, angle, size):
  """The point in direction `angle` of the ellipse that is `size` times the one of the half axes."""
  turn = math.radians(bowl.turn)
  along, across = size * np.array(bowl.half_axes) * [math.cos(angle), math.sin(angle)]
  cos, sin = math.cos(turn), math.sin(turn)
  return np.add(bowl.centre, [along * cos - across * sin, along * sin + across * cos])


@hypothesis.given(_BOWLS, st.floats(0.0, 6.3), st.floats(0.0, 4.0))
def test_a_risk_is_half_the_squared_distance_from_its_bottom(bowl, angle, size):
  expected = 0.5 * max(0.0, size - bowl.flat) ** 2
  assert bowl.risk(_rim(bowl, angle, size)) == pytest.approx(expected, abs=1e-9)


@hypothesis.given(_BOWLS, _PAIRS)
def test_gradients_are_those_of_finite_differences(bowl, theta):
  theta, step = np.array(theta), 1e-6
  numeric = [
    (bowl.risk(theta + step * unit) - bowl.risk(theta - step * unit)) / (2 * step) for unit in np.eye(2)
  ]
  # Where the bottom ends the gradient has a kink: there the quotient is off by the curvature times the step.
  np.testing.assert_allclose(bowl.gradient(theta), numeric, atol=2e-5)


@hypothesis.given(_BOWLS)
def test_there_is_no_gradient_in_the_centre(bowl):
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
@hypothesis.given(st.floats(0.1, 0.9), _PAIRS)
def test_congruent_clients_end_where_both_risks_are_smallest(share, start):
  toy = toy_problems.run_risks('congruent', toy_problems.CONGRUENT, share, start)
  assert toy.norms[-1, :2].max() < toy.eps_2
  assert max(bowl.risk(toy.path[-1]) for bowl in toy_problems.CONGRUENT) < 1e-8


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
def test_discs_that_meet_leave_no_gradient(share, radius, overlap, start):
  bowls = tuple(Bowl((x, 0.0), (1.0, 1.0), flat=radius) for x in (0.0, 2 * radius - overlap * radius))
  toy = toy_problems.run_risks('meet', bowls, share, start, 0.5)
  assert toy.norms[-1, :2].max() < toy.eps_2


def test_a_path_ends_at_its_first_stationary_point_and_falls_all_the_way():
  for toy in toy_problems.run_figure2(0.3):
    assert (toy.norms[:-1, 2] >= toy.eps_1).all() and toy.norms[-1, 2] < toy.eps_1
    bowls = toy_problems.INCONGRUENT if toy.name == 'incongruent' else toy_problems.CONGRUENT
    objective = 0.3 * bowls[0].risk(toy.path) + 0.7 * bowls[1].risk(toy.path)
    assert (np.diff(objective) <= 0).all()


def test_a_client_that_is_satisfied_already_adds_nothing():
  # The start lies on the second client's bottom: its gradient stays 0 all along, and nobody is harmed.
  bowls = (Bowl((-1.0, 0.0), (1.0, 1.0), flat=1.0), Bowl((1.0, 0.0), (1.0, 1.0), flat=3.0))
  toy = toy_problems.run_risks('one', bowls, 0.5, (2.0, 0.0), 0.5)
  np.testing.assert_array_equal(toy.gradients[:, 1], 0.0)
  np.testing.assert_allclose(toy.path[-1], [0.0, 0.0], atol=1e-4)


def test_figure_2_is_one_start_two_problems_and_an_area():
  incongruent, congruent = toy_problems.run_figure2()
  np.testing.assert_array_equal(incongruent.path[0], congruent.path[0])
  assert not (incongruent.risks.max(axis=0) == 0).any() and (congruent.risks.max(axis=0) == 0).any()
  for toy in (incongruent, congruent):
    assert np.abs(toy.path).max() < toy.axis[-1]
  # risks[k, row, column] is at first parameter axis[column], second axis[row].
  bowl = toy_problems.INCONGRUENT[1]
  point = np.array([incongruent.axis[200], incongruent.axis[10]])
  assert incongruent.risks[1, 10, 200] == pytest.approx(float(bowl.risk(point)))


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'share': 0.0}, 'share 0.0'),
    ({'share': math.nan}, 'share nan'),
    ({'start': (0.0,)}, 'start'),
    ({'start': (0.0, math.inf)}, 'start'),
    ({'rate': 0.0}, 'rate 0.0'),
    ({'rate': 50.0}, 'mean gradient has norm'),
    ({'eps_1': 0.0}, 'eps_1 0.0'),
    ({'eps_1': 0.1, 'eps_2': 0.1}, '0 < eps_1 < eps_2'),
    ({'bowls': toy_problems.CONGRUENT[:1]}, '1 risks'),
  ],
)
def test_wrong_input_is_told(changes, message):
  given = {'name': 'x', 'bowls': toy_problems.INCONGRUENT} | changes
  with np.errstate(all='ignore'), pytest.raises(InputError, match=message):
    toy_problems.run_risks(**given)


@pytest.mark.parametrize(
  'changes', [{'flat': -1.0}, {'half_axes': (0.0, 1.0)}, {'centre': (math.nan, 0.0)}, {'turn': math.inf}]
)
def test_a_bowl_that_is_none_is_told(changes):
  with pytest.raises(InputError, match='allowed are finite numbers'):
    dataclasses.replace(toy_problems.INCONGRUENT[0], **changes)
