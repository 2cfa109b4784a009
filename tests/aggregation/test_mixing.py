"""Mixing matrices: their properties, and their application against plain NumPy."""

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_up.refusals import refused
from tff_cluster.aggregation import mixing
from tff_cluster.aggregation.rules.average import average
from tff_cluster.aggregation.rules.blended import blended, blended_clusters
from tff_cluster.aggregation.rules.own import own
from tff_cluster.aggregation.rules.weighted import weighted
from tff_cluster.clustering.assignment import ClusterAssignment


@st.composite
def assignments(draw, overlapping=True):
  clients = draw(st.integers(1, 8))
  ids = tuple(f'c{k}' for k in range(clients))
  labels = draw(st.lists(st.integers(0, 3), min_size=clients, max_size=clients))
  rows = [[ids[k] for k in range(clients) if labels[k] == c] for c in sorted(set(labels))]
  for members in draw(st.lists(st.sets(st.sampled_from(ids), min_size=1), max_size=4)) if overlapping else ():
    if sorted(members) not in rows:
      rows.append(sorted(members))
  return ClusterAssignment.from_clusters(rows, ids)


@settings(max_examples=40)
@given(assignments(overlapping=False), st.integers(0, 2**31))
def test_disjoint_own_model_is_the_clusters_model(assignment, seed):
  model = np.random.default_rng(seed).normal(size=(assignment.num_clusters, 5)).astype(np.float32)
  (found,) = mixing.apply_mixing([model], own(assignment.membership))
  np.testing.assert_array_equal(found, model[assignment.labels])
  # One cluster gives everybody that model, to the bit, by every rule.
  everybody = np.ones((1, assignment.num_clients))
  for matrix in (average(everybody), weighted(np.array([0.4])), own(everybody), blended_clusters(1)):
    (found,) = mixing.apply_mixing([model[:1]], matrix)
    np.testing.assert_array_equal(found, np.repeat(model[:1], matrix.shape[1], axis=0))


@settings(max_examples=40)
@given(assignments(), st.integers(0, 2**31))
def test_blended_is_half_own_half_average(assignment, seed):
  model = np.random.default_rng(seed).normal(size=(assignment.num_clusters, 5))
  (of_clients,) = mixing.apply_mixing([model], own(assignment.membership))
  (found,) = mixing.apply_mixing([model], blended(assignment.membership))
  np.testing.assert_allclose(found, 0.5 * of_clients + 0.5 * model.mean(axis=0), rtol=1e-5, atol=1e-6)


def test_blended_has_the_same_bits_with_any_number_of_threads_and_for_clients_of_the_same_clusters():
  rng = np.random.default_rng(0)
  shares = (rng.uniform(size=(314, 100)) < 0.3).astype(float)
  shares[:, 50:] = shares[:, :50]
  found = []
  for threads in (1, 2):
    with threadpoolctl.threadpool_limits(threads):
      found.append(blended(shares))
  np.testing.assert_array_equal(*found)
  assert np.unique(found[0], axis=1).shape == np.unique(shares, axis=1).shape


def test_weighted():
  np.testing.assert_allclose(weighted(np.array([0.2, 0.6])), [[0.25], [0.75]])
  np.testing.assert_array_equal(weighted(np.zeros(4)), np.full((4, 1), 0.25))
  np.testing.assert_allclose(weighted(np.array([1e-320, 0.0])), [[1.0], [0.0]])
  scores = ([0.5, -0.1], [np.nan, 1.0], [np.inf, 1.0], [], [[0.5]])
  refused(weighted, *((np.array(wrong), 'scores must be') for wrong in scores))


@pytest.mark.parametrize(('chunk_bytes', 'dtype'), [(1, np.float32), (100, np.float64), (2**25, np.int32)])
def test_apply_equals_plain_numpy(tmp_path, chunk_bytes, dtype):
  rng = np.random.default_rng(0)
  weights = [(10 * rng.normal(size=(4, *shape))).astype(dtype) for shape in ((3, 5), (), (7,), (0,))]
  np.save(tmp_path / 'w.npy', weights[0])
  weights[0] = np.load(tmp_path / 'w.npy', mmap_mode='r')
  matrix = rng.dirichlet(np.ones(4), size=6).T
  for array, mixed in zip(weights, mixing.apply_mixing(weights, matrix, chunk_bytes), strict=True):
    assert mixed.dtype == np.float32
    expected = np.einsum('mc,m...->c...', matrix, array.astype(np.float64))
    np.testing.assert_allclose(mixed, expected, rtol=1e-6, atol=1e-6)
    assert mixed.shape == (6, *array.shape[1:])
  # 1e8 + 1 - 1e8 is 0 in float32 sums.
  (found,) = mixing.apply_mixing([np.array([1e8, 3.0, -1e8], np.float32)], average(np.ones((3, 1))))
  np.testing.assert_array_equal(found, np.float32([1.0]))


def test_a_diverged_model_stays_with_those_who_use_it():
  weights = [np.array([[1.0, 2.0], [np.nan, np.inf], [3.0, 4.0]], np.float32)]
  assignment = ClusterAssignment.from_clusters([['a', 'd'], ['b', 'd'], ['c']], tuple('abcd'))
  (found,) = mixing.apply_mixing(weights, own(assignment.membership))
  np.testing.assert_array_equal(found[[0, 2]], [[1.0, 2.0], [3.0, 4.0]])
  assert not np.isfinite(found[[1, 3]]).any()


def test_wrong_matrices():
  for matrix, message in (
    (np.ones(2), r'must be \[models, columns\], found shape \(2,\)'),
    (np.zeros((2, 0)), r'found shape \(2, 0\)'),
    (np.array([[0.5, 0.5], [0.5, 0.4]]), 'column 1 sums to 0.9'),
    (np.full((3, 1), 1 / 3), r'array 0 has shape \(2, 4\), expected a leading axis of 3 models'),
  ):
    with pytest.raises(ValueError, match=message):
      mixing.apply_mixing([np.ones((2, 4))], matrix)


@pytest.mark.parametrize('diverged', [False, True])
def test_many_models_mixed_through_what_columns_share_have_the_bits_of_plain_sums(diverged, monkeypatch):
  rng = np.random.default_rng(3)
  clusters, clients = 60, 50
  member = rng.random((clusters, clients)) < 0.04
  member[np.arange(clusters) % clusters, np.arange(clusters) % clients] = True
  assignment = ClusterAssignment(member.astype(float), tuple(f'c{k:02d}' for k in range(clients)))
  models = (rng.normal(size=400) + 1e-3 * rng.normal(size=(clusters, 400))).astype(np.float32)
  models[:, :5] = 2.0**-24 * np.arange(clusters)[:, None] + 1.0  # Halves between neighbouring float32.
  models[:, 5:10] = np.where(np.arange(clusters)[:, None] % 2, 1e8, -1e8) + models[:, 5:10]
  if diverged:
    models[7, 20], models[8, 21], models[9, 21] = np.nan, np.inf, -np.inf
  shared = []
  plainly = mixing._mix_plainly
  monkeypatch.setattr(mixing, '_mix_plainly', lambda *given: shared.append(0) or plainly(*given))
  for matrix in (blended(assignment.membership), blended_clusters(clusters)):
    (found,) = mixing.apply_mixing([models], matrix, chunk_bytes=50_000)
    assert not shared, 'no column goes through all models'
    wide = models.astype(np.float64)
    with np.errstate(invalid='ignore'):
      expected = [np.cumsum(column[:, None] * wide, axis=0)[-1].astype(np.float32) for column in matrix.T]
    np.testing.assert_array_equal(found, np.stack(expected))
