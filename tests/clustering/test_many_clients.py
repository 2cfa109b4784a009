"""What only many clients go through, tried on few: tiles, threads, components, Lanczos iterations."""

import os

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph
from scipy.spatial import distance as scipy_distance

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import connected_components, embedding
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering.methods import dynamic_distance

SCIPY_NAMES = {'l1': 'cityblock', 'l2': 'euclidean', 'cosine': 'cosine'}


@pytest.fixture
def tiles(monkeypatch):
  monkeypatch.setattr(distances_lib, '_PDIST_WORK', -1)
  monkeypatch.setattr(distances_lib, '_TILE_ROWS', 7)
  monkeypatch.setattr(distances_lib, '_L1_ROWS', 5)
  monkeypatch.setattr(distances_lib, '_PRODUCT_COLUMNS', 37)
  monkeypatch.setattr(distances_lib, '_L1_COLUMNS', 11)


def grouped(seed, clients, features, spread):
  rng = np.random.default_rng(seed)
  centres = rng.normal(size=(4, features))
  return (centres[np.arange(clients) % 4] + spread * rng.normal(size=(clients, features))).astype(np.float32)


@pytest.mark.parametrize('metric', list(SCIPY_NAMES))
@pytest.mark.parametrize('spread', [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize('clients', [6, 7, 8, 20, 43])
def test_tiles_equal_scipy(tiles, metric, spread, clients):
  vectors = grouped(0, clients, 90, spread)
  expected = scipy_distance.squareform(scipy_distance.pdist(vectors.astype(np.float64), SCIPY_NAMES[metric]))
  found = distances_lib.pairwise_distances(vectors, metric)
  # SciPy's own 1 - cos has lost digits where two vectors are nearly parallel.
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-14 if metric == 'cosine' else 0)
  np.testing.assert_array_equal(found, found.T)
  np.testing.assert_array_equal(np.diag(found), 0.0)


@pytest.mark.parametrize('metric', list(SCIPY_NAMES))
def test_duplicates_in_different_tiles_are_exactly_zero_apart(tiles, metric):
  vectors = grouped(1, 30, 60, 0.5)
  vectors[[4, 11, 29]] = vectors[2]
  found = distances_lib.pairwise_distances(vectors, metric)
  same = (vectors[:, None] == vectors[None]).all(axis=2)
  np.testing.assert_array_equal(found == 0.0, same)


@pytest.mark.parametrize('metric', list(SCIPY_NAMES))
@pytest.mark.parametrize('few', [True, False])
def test_the_number_of_cores_does_not_matter(monkeypatch, metric, few):
  monkeypatch.setattr(distances_lib, '_PDIST_WORK', -1)
  monkeypatch.setattr(distances_lib, '_TILE_ROWS', 1024 if few else 8)
  monkeypatch.setattr(distances_lib, '_PRODUCT_COLUMNS', 64)
  vectors = grouped(2, 20, 700, 0.3)
  results = []
  for cores in (1, 2, 5):
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid, cores=cores: set(range(cores)))
    results.append(distances_lib.pairwise_distances(vectors, metric))
  for result in results[1:]:
    np.testing.assert_array_equal(result, results[0])


def test_memory_decides_how_many_blocks_are_worked_on_at_once(monkeypatch):
  monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: set(range(8)))
  assert distances_lib._threads(100, 16 * 100 * 16384, 16384) == 1
  assert distances_lib._threads(100, 3 * 16 * 100 * 16384, 16384) == 3
  assert distances_lib._threads(100, 2**40, 16384) == 8
  assert distances_lib._threads(10**6, 1, 16384) == 1


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0, 0.5))
def test_components_equal_scipys(size, seed, density):
  links = np.random.default_rng(seed).random((size, size)) < density
  links |= links.T
  found = connected_components.components(links)
  _, expected = csgraph.connected_components(links, directed=False)
  np.testing.assert_array_equal(found[:, None] == found[None], expected[:, None] == expected[None])
  _, first = np.unique(found, return_index=True)
  assert (np.diff(first) > 0).all() and found[0] == 0


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 11), st.integers(0, 2**32 - 1), st.floats(0, 1), st.booleans())
def test_cliques_equal_networkx(size, seed, density, diagonal):
  links = np.random.default_rng(seed).random((size, size)) < density
  links |= links.T
  np.fill_diagonal(links, diagonal)
  graph = nx.Graph(np.triu(links, 1))
  found = dynamic_distance.clusters_of_links(links, 'cliques', 10_000)
  expected = {frozenset(clique) for clique in nx.find_cliques(graph)}
  assert {frozenset(np.flatnonzero(row).tolist()) for row in found} == expected
  assert len(found) == len(expected)


def test_large_groups_need_no_search(monkeypatch):
  monkeypatch.setattr(dynamic_distance, '_MOST_SEARCHED_LINKS', 0)
  groups = np.arange(300) % 3
  links = groups[:, None] == groups[None]
  found = dynamic_distance.clusters_of_links(links, 'cliques', 3)
  assert {frozenset(np.flatnonzero(row)) for row in found} == {frozenset(range(g, 300, 3)) for g in range(3)}
  links[0, 3] = links[3, 0] = False
  with pytest.raises(InputError, match=r'4,949 links would have to be searched for cliques, at most 0'):
    dynamic_distance.clusters_of_links(links, 'cliques', 10)


def test_too_many_groups_are_told_before_the_search():
  with pytest.raises(InputError, match='5 maximal cliques so far, more than max_clusters=4'):
    dynamic_distance.clusters_of_links(np.zeros((5, 5), bool), 'cliques', 4)


def test_scaling_by_lanczos_iterations_equals_that_by_all_axes(monkeypatch):
  points = np.random.default_rng(3).normal(size=(40, 6)) * [9, 7, 1, 1, 1, 1]
  distances = scipy_distance.cdist(points, points)
  expected = embedding.classical_scaling(distances)
  monkeypatch.setattr(embedding, '_MOST_AXES', 10)
  np.testing.assert_allclose(embedding.classical_scaling(distances), expected, atol=1e-8)
  np.testing.assert_array_equal(
    embedding.classical_scaling(distances), embedding.classical_scaling(distances)
  )
  np.testing.assert_array_equal(embedding.classical_scaling(np.zeros((20, 20))), np.zeros((20, 2)))


def test_condensed_keeps_no_index_of_its_own():
  distances = scipy_distance.cdist(*[np.random.default_rng(4).normal(size=(9, 2))] * 2)
  np.testing.assert_array_equal(distances_lib.condensed(distances), distances[np.triu_indices(9, 1)])
  assert distances_lib.condensed(np.zeros((1, 1))).shape == (0,)
