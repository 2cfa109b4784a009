"""A round of the methods that go by distance of weights, against a step of scikit-learn's k-means."""

import numpy as np
from scipy import spatial
from sklearn import cluster as sklearn_cluster

from tests.clustering.methods.fake_federation import FEATURES, Fake, models_of, state_of, vector_of
from tff_cluster.clustering.methods import fesem

CLIENTS = 20


def options(count):
  return fesem.METHOD.read({'num_clusters': count})


def lloyd(federation, centers, labels, number, weights=None):
  """Returns the labels and centers of a step of scikit-learn's k-means on what clients train to from their centers."""
  models = models_of(centers)
  vectors = np.stack(
    [
      vector_of(models[k].weights) + federation.update(number, models[k].weights, client)
      for client, k in enumerate(labels)
    ]
  )
  starts = np.stack([vector_of(model.weights) for model in models])
  model = sklearn_cluster.KMeans(len(starts), init=starts, n_init=1, max_iter=1, algorithm='lloyd')
  return spatial.cKDTree(starts).query(vectors)[1], model.fit(vectors, sample_weight=weights).cluster_centers_


def check_a_round(method, seed, weighted):
  """Checks labels and centers after a round; where `weighted`, clients weigh by their rows."""
  rng = np.random.default_rng(seed)
  # Centers so near to each other that clients move from one to another.
  centers, labels = 0.3 * rng.normal(size=(3, FEATURES)), rng.integers(3, size=CLIENTS)
  federation = Fake(rng.normal(size=(CLIENTS, FEATURES)), rows=rng.integers(5, 50, CLIENTS))
  expected, means = lloyd(federation, centers, labels, 7, federation.rows if weighted else None)
  assert set(expected) == {0, 1, 2} and (expected != labels).any()
  after = method.step(options(3), federation, state_of(centers, labels), 7)
  np.testing.assert_array_equal(after.membership.argmax(axis=0), expected)
  np.testing.assert_array_equal(after.membership.sum(axis=0), 1.0)
  np.testing.assert_allclose([vector_of(model.weights) for model in after.models], means, atol=1e-6)
  assert (after.since == 7).all()
