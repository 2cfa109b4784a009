"""Principal angles against SciPy's, and what they must not depend on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from tff_cluster.clustering import principal_angles

MEASURES = ('sum', 'smallest', 'trace')


def client(rng, labels, features=20, rows=30):
  """Returns rows around one centre a label, and their labels."""
  y = np.concatenate([labels, rng.choice(labels, rows - len(labels))])
  return rng.normal(size=(10, features))[y] + rng.normal(size=(rows, features)), y


def proximity(clients, measure, count=3, others=None):
  ours, theirs = (principal_angles.subspaces(each, count) for each in (clients, others or clients))
  return principal_angles.proximity(ours, theirs, measure)


def by_scipy(one, other, measure, count=3):
  """The definitions, pair by pair, with SciPy's singular vectors and angles."""
  spans = []
  for x, y in (one, other):
    columns = {label: x[y == label].T for label in np.unique(y)}
    spans.append({k: linalg.svd(each, full_matrices=False)[0][:, :count] for k, each in columns.items()})
  if measure == 'smallest':
    return np.degrees(linalg.subspace_angles(*(np.hstack(list(each.values())) for each in spans)).min())
  total = 0.0
  for label in spans[0].keys() | spans[1].keys():
    both = [each[label] for each in spans if label in each]
    widths = [basis.shape[1] for basis in both]
    if len(both) == 1:
      total += 90.0 * widths[0]
    elif measure == 'sum':
      total += np.degrees(linalg.subspace_angles(*both)).sum() + 90.0 * abs(widths[0] - widths[1])
    else:
      dots = [abs(a @ b) for a, b in zip(both[0].T, both[1].T, strict=False)]
      total += np.degrees(np.arccos(np.minimum(dots, 1.0))).sum() + 90.0 * abs(widths[0] - widths[1])
  return total


@pytest.mark.parametrize('measure', MEASURES)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 4))
def test_equals_scipy(measure, seed, count):
  rng = np.random.default_rng(seed)
  clients = [client(rng, rng.choice(10, rng.integers(1, 5), replace=False)) for _ in range(5)]
  found = proximity(clients[:3], measure, count, clients[3:])
  expected = [[by_scipy(one, other, measure, count) for other in clients[3:]] for one in clients[:3]]
  np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-5)


@pytest.mark.parametrize('measure', MEASURES)
def test_neither_scale_order_of_rows_dtype_nor_a_rotation_of_all_pixels_matter(measure):
  rng = np.random.default_rng(0)
  clients = [client(rng, [1, 4, 7]) for _ in range(3)]
  plain = proximity(clients, measure)
  turn, order = linalg.qr(rng.normal(size=(20, 20)))[0], rng.permutation(30)
  for change in (lambda x: 7.0 * x, lambda x: -x, lambda x: x @ turn, lambda x: x.reshape(-1, 4, 5)):
    changed = [(change(x[order]), y[order]) for x, y in clients]
    np.testing.assert_allclose(proximity(changed, measure), plain, rtol=1e-8, atol=1e-4)
  images = [(np.round(np.abs(x) * 50).astype(np.uint8), y) for x, y in clients]
  in_floats = [(x / np.float32(255), y) for x, y in images]
  np.testing.assert_allclose(proximity(images, measure), proximity(in_floats, measure), rtol=1e-4, atol=0.01)


def test_labels_by_hand():
  # On axes of a space of four: 0 and 1 share the plane of label 0 and turn label 1 by 30 degrees; 2 has label 5 alone.
  e, turned = np.eye(4), np.array([0.0, 0.0, np.sqrt(3) / 2, 0.5])
  zero, one, five = (np.array([label] * 2) for label in (0, 1, 5))
  clients = [
    (np.stack([e[0] * 2, e[1], e[2] * 2, e[2]]), np.concatenate([zero, one])),
    (np.stack([e[1] * 2, e[0], turned * 2, turned]), np.concatenate([zero, one])),
    (np.stack([e[3], np.zeros(4)]), five),
  ]
  expected = {
    'sum': [[0, 30, 270 + 90], [30, 0, 360], [360, 360, 0]],
    # Of the plane's two vectors the larger one is another.
    'trace': [[0, 180 + 30, 360], [210, 0, 360], [360, 360, 0]],
    'smallest': [[0, 0, 90], [0, 0, 60], [90, 60, 0]],
  }
  for measure, degrees in expected.items():
    np.testing.assert_allclose(proximity(clients, measure), degrees, atol=1e-5)


def test_rows_that_span_little_or_nothing():
  nothing, line = (np.zeros((3, 5)), np.array([0, 0, 1])), (np.ones((3, 5)), np.array([0, 0, 1]))
  sent = principal_angles.subspaces([nothing, line], 3)
  assert sent[0] == {} and {label: basis.shape for label, basis in sent[1].items()} == {0: (5, 1), 1: (5, 1)}
  for measure, apart in (('sum', 180.0), ('trace', 180.0), ('smallest', 90.0)):
    found = proximity([nothing, line], measure)
    assert found[0, 1] == found[1, 0] == apart and found[1, 1] == pytest.approx(0.0, abs=1e-4)
    assert proximity([nothing, nothing], measure).tolist() == [[0.0, 0.0], [0.0, 0.0]]
