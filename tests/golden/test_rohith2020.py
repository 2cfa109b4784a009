"""Worked examples of Rohith et al. 2020, sections 5.2.2 and 5.2.4, and what follows from them by hand."""

import numpy as np

from tests.made_up.clients import as_sets
from tff_cluster.aggregation import mixing
from tff_cluster.aggregation.rules.average import average
from tff_cluster.aggregation.rules.blended import blended, blended_clusters
from tff_cluster.aggregation.rules.own import own
from tff_cluster.aggregation.rules.weighted import weighted
from tff_cluster.clustering import methods
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.methods.dynamic_distance import clusters_of_links
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig

NEIGHBOURS = {0: [], 1: [9, 10], 2: [9], 3: [], 4: [], 5: [9], 6: [], 7: [], 8: [], 9: [1, 2, 5], 10: [1]}
CLUSTERS = [[5, 9], [9, 1], [10, 1], [2, 9], [0], [3], [4], [6], [7], [8]]
DEVICES = tuple(str(device) for device in range(11))


def links():
  matrix = np.zeros((11, 11), bool)
  for device, near in NEIGHBOURS.items():
    matrix[device, near] = True
  return matrix


def paper_assignment():
  return ClusterAssignment.from_clusters([[str(d) for d in members] for members in CLUSTERS], DEVICES)


def test_example_5_2_2():
  cliques = clusters_of_links(links(), 'cliques', 1000)
  assert len(cliques) == len(CLUSTERS) and as_sets(cliques) == set(map(frozenset, CLUSTERS))
  # By hand: {2, 9} and {5, 9} are part of the neighbourhood of 9, and {10, 1} of that of 1.
  expected = [[1, 9, 10], [1, 2, 5, 9], [0], [3], [4], [6], [7], [8]]
  assert as_sets(clusters_of_links(links(), 'neighbourhoods', 1000)) == set(map(frozenset, expected))
  # From vectors, at distance 1 where linked, sqrt(2) where not: a Gram matrix with 1/2 on links is positive definite here
  # (its smallest eigenvalue is 1 - 1.90 / 2), so there are such vectors.
  vectors = np.linalg.cholesky(np.eye(11) + 0.5 * links())
  config = ClusteringConfig('dynamic_distance', distance_threshold='1.2')
  found = methods.cluster(config, Signatures(vectors, DEVICES), seed=0)
  np.testing.assert_array_equal(found.assignment.membership, paper_assignment().membership)


def test_example_5_2_4_device_9_is_the_mean_of_the_means():
  # Device d has the weights (d, d**2). Avg([5, 9]) = (7, 53), Avg([9, 1]) = (5, 41), Avg([2, 9]) = (5.5, 42.5);
  # their mean is (35/6, 45.5). Device 10 is in {10, 1} alone: (5.5, 50.5). Device 1: mean of (5, 41) and that.
  weights = [np.array([[d, d**2] for d in range(11)], np.float32)]
  assignment = paper_assignment()
  cluster_weights = mixing.apply_mixing(weights, mixing.start_weights(assignment).T)
  (devices,) = mixing.apply_mixing(cluster_weights, own(assignment.membership))
  np.testing.assert_allclose(devices[9], [35 / 6, 45.5], rtol=1e-6)
  np.testing.assert_allclose(devices[10], [5.5, 50.5], rtol=1e-6)
  np.testing.assert_allclose(devices[1], [5.25, 45.75], rtol=1e-6)
  np.testing.assert_array_equal(devices[[0, 3, 4, 6, 7, 8]], weights[0][[0, 3, 4, 6, 7, 8]])


def test_section_6_3_by_hand():
  # Two clusters with weights 2 and 6. Average 4. Weighted with accuracies 0.9 and 0.3: (3 * 2 + 6) / 4 = 3.
  # Blended: (2 + 4) / 2 = 3 and (6 + 4) / 2 = 5; a device in both uses their mean, 4.
  weights = [np.array([2.0, 6.0], np.float32)]
  assignment = ClusterAssignment.from_clusters([['a', 'b'], ['b', 'c']], ('a', 'b', 'c'))
  (of_average,) = mixing.apply_mixing(weights, average(np.ones((2, 1))))
  (of_weighted,) = mixing.apply_mixing(weights, weighted(np.array([0.9, 0.3])))
  (clusters,) = mixing.apply_mixing(weights, blended_clusters(2))
  (clients,) = mixing.apply_mixing(weights, blended(assignment.membership))
  np.testing.assert_allclose(of_average, [4.0])
  np.testing.assert_allclose(of_weighted, [3.0], rtol=1e-6)
  np.testing.assert_allclose(clusters, [3.0, 5.0])
  np.testing.assert_allclose(clients, [3.0, 4.0, 5.0])
