"""A replay gives what the methods give one by one, and computes distances and linkages once."""

import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.spatial import distance as scipy_distance

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import distances as distances_lib
from tff_cluster.clustering import embedding, methods, replay
from tff_cluster.clustering.replay import Grid
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import LINKAGES, METRICS

FAMILIES = [(m, link) for m in METRICS for link in LINKAGES if link != 'ward' or m == 'l2']


def vectors(seed=0, clients=23, features=40):
  rng = np.random.default_rng(seed)
  centres = rng.normal(size=(4, features))
  return (centres[np.arange(clients) % 4] + 0.4 * rng.normal(size=(clients, features))).astype(np.float32)


def asked(**options):
  return replay.Replay(Signatures.numbered(vectors()), seed=3, **options)


def same_as_one_by_one(answer):
  outcome = methods.cluster(answer.config, Signatures.numbered(vectors()), 3)
  np.testing.assert_array_equal(answer.assignment.membership, outcome.assignment.membership)
  assert answer.assignment.client_ids == outcome.assignment.client_ids
  assert answer.threshold == outcome.threshold
  assert answer.num_clusters == outcome.assignment.num_clusters
  sizes = outcome.assignment.membership.sum(axis=1)
  assert answer.largest_cluster == sizes.max()
  assert answer.memberships == sizes.sum() / 23


@pytest.mark.parametrize('family', FAMILIES, ids=' '.join)
def test_hierarchical_is_that_of_methods(family):
  answers = list(asked().answers(Grid(families=[family], thresholds=9)))
  assert len(answers) == 9
  for answer in answers:
    assert (answer.config.options.metric, answer.config.options.linkage) == family
    same_as_one_by_one(answer)
  counts = [answer.num_clusters for answer in answers]
  assert counts == sorted(counts, reverse=True) and counts[-1] == 1 and counts[0] < 23


def test_kmeans_and_dynamic_distance_are_those_of_methods():
  answers = [
    *asked().answers(Grid(counts=[1, 2, 4, 23])),
    *asked().answers(Grid(distance_thresholds=['mean', 'quantile:0.2', '3.5'])),
  ]
  assert [a.config.method for a in answers] == ['kmeans'] * 4 + ['dynamic_distance'] * 3
  for answer in answers:
    same_as_one_by_one(answer)


def test_spread_thresholds_span_the_merge_heights():
  pairs = scipy_distance.pdist(vectors().astype(np.float64), 'cityblock')
  heights = hierarchy.linkage(pairs, 'average')[:, 2]
  found = asked().thresholds('l1', 'average', 5)
  np.testing.assert_allclose(found, np.linspace(heights.min(), heights.max(), 5), rtol=1e-9)
  assert len(asked().thresholds('l1', 'average', 1)) == 1
  with pytest.raises(InputError, match='0 thresholds: at least 1'):
    asked().thresholds('l1', 'average', 0)


def test_given_thresholds_are_used_as_they_are():
  answers = list(
    asked().answers(Grid(families=[('l2', 'ward'), ('l1', 'single')], thresholds=[0.0, 2.5, 1e9]))
  )
  assert [answer.threshold for answer in answers] == [0.0, 2.5, 1e9] * 2
  assert [answer.num_clusters for answer in answers][::3] == [23, 23]
  for answer in answers:
    same_as_one_by_one(answer)


def test_each_matrix_and_each_linkage_is_computed_once(monkeypatch):
  calls = {'distances': [], 'linkage': []}
  distances, linkage = distances_lib.pairwise_distances, hierarchy.linkage

  def counted_distances(vectors, metric, block_bytes):
    calls['distances'].append(metric)
    return distances(vectors, metric, block_bytes)

  def counted_linkage(pairs, method):
    calls['linkage'].append(method)
    return linkage(pairs, method)

  monkeypatch.setattr(distances_lib, 'pairwise_distances', counted_distances)
  monkeypatch.setattr(hierarchy, 'linkage', counted_linkage)
  asking = asked(with_silhouettes=True)
  for _ in range(2):
    assert len(list(asking.answers(Grid(families=[*FAMILIES], thresholds=6)))) == 6 * len(FAMILIES)
    list(asking.answers(Grid(distance_thresholds=['mean', '3'])))
  assert sorted(calls['distances']) == sorted(METRICS)
  assert len(calls['linkage']) == len(FAMILIES)


def test_silhouettes_are_of_the_metrics_own_distances():
  for answer in asked(with_silhouettes=True).answers(Grid(families=[('cosine', 'average')], thresholds=6)):
    distances = distances_lib.pairwise_distances(vectors(), 'cosine')
    assert answer.silhouette == embedding.silhouette(distances, answer.assignment)
  found = [answer.silhouette for answer in asked().answers(Grid(counts=[2, 3]))]
  assert found == [None, None]
  (kmeans,) = asked(with_silhouettes=True).answers(Grid(counts=[4]))
  assert kmeans.silhouette == pytest.approx(
    embedding.silhouette(distances_lib.pairwise_distances(vectors(), 'l2'), kmeans.assignment)
  )


def test_memberships_are_made_when_asked_for():
  (answer,) = asked().answers(Grid(families=[('l2', 'ward')], thresholds=[3.0]))
  assert isinstance(answer.clusters, np.ndarray)
  assert answer.assignment is answer.assignment


def test_too_many_cliques_are_a_note_and_wrong_thresholds_an_error():
  # Twelve antipodal pairs: the mean threshold cuts the long diagonals only, which leaves 2**12 cliques.
  many = Signatures.numbered(np.concatenate([np.eye(12), -np.eye(12)]))
  (gave_up,) = replay.Replay(many, 3).answers(Grid(distance_thresholds=['mean']))
  assert (gave_up.num_clusters, gave_up.assignment, gave_up.silhouette) == (None, None, None)
  assert 'more than max_clusters=1000' in gave_up.notes[0]
  with pytest.raises(InputError, match='distance_threshold=median'):
    list(asked().answers(Grid(distance_thresholds=['median'])))
  assert list(asked().answers(Grid(counts=[24]))) == []  # More clusters than clients.
  with pytest.raises(InputError, match="'ward' needs metric 'l2'"):
    list(asked().answers(Grid(families=[('l1', 'ward')], thresholds=3)))
  with pytest.raises(InputError, match='distance threshold -1'):
    list(asked().answers(Grid(families=[('l1', 'single')], thresholds=[-1.0])))


def test_one_client():
  alone = replay.Replay(Signatures.numbered(np.ones((1, 3))), 0)
  assert list(alone.answers(Grid(families=[('l2', 'ward')], thresholds=5))) == []
  (answer,) = alone.answers(Grid(families=[('l2', 'ward')], thresholds=[1.0]))
  assert answer.assignment.clusters == [['0']]


def test_memory_mapped_and_in_small_blocks(tmp_path, monkeypatch):
  monkeypatch.setattr(distances_lib, '_PDIST_WORK', -1)
  np.save(tmp_path / 'v.npy', vectors())
  mapped = Signatures.numbered(np.load(tmp_path / 'v.npy', mmap_mode='r'), block_bytes=16 * 23 * 4)
  answers = list(replay.Replay(mapped, 3).answers(Grid(families=[*FAMILIES], thresholds=5)))
  whole = list(asked().answers(Grid(families=[*FAMILIES], thresholds=5)))
  for found, expected in zip(answers, whole, strict=True):
    assert found.num_clusters == expected.num_clusters
    assert found.threshold == pytest.approx(expected.threshold, rel=1e-5)


def test_block_bytes_reach_the_distances(monkeypatch):
  seen = []
  original = distances_lib.pairwise_distances

  def watched(*args):
    seen.append(args[2])
    return original(*args)

  monkeypatch.setattr(distances_lib, 'pairwise_distances', watched)
  list(
    replay.Replay(Signatures.numbered(vectors(), block_bytes=12345), 0).answers(
      Grid(families=[('l1', 'single')], thresholds=2)
    )
  )
  assert seen == [12345]
