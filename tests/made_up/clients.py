"""Clients' vectors, and what tests of clusterings compare their results by."""

import numpy as np
from hypothesis import strategies as st
from scipy.spatial import distance as scipy_distance

from tff_cluster.clustering.method import Evidence, Newcomers

SCIPY_NAMES = {'l1': 'cityblock', 'l2': 'euclidean', 'cosine': 'cosine'}


def noise(seed, *shape, dtype=np.float32):
  return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def grouped(seed, groups, members, features, spread=0.3, dtype=np.float32):
  """Vectors around as many random centres, in random order: dtype[groups * members, features], and the truth."""
  rng = np.random.default_rng(seed)
  truth = rng.permutation(np.repeat(np.arange(groups), members))
  centres = rng.normal(size=(groups, features))
  return (centres[truth] + spread * rng.normal(size=(len(truth), features))).astype(dtype), truth


def scipy_distances(vectors, metric):
  """SciPy's distances of all pairs of rows, in float64."""
  return scipy_distance.squareform(scipy_distance.pdist(np.asarray(vectors, np.float64), SCIPY_NAMES[metric]))


def together(labels):
  """bool[clients, clients], who shares a cluster, whatever the clusters' numbers."""
  labels = np.asarray(labels)
  return labels[:, None] == labels[None, :]


def as_sets(membership):
  """The members of each cluster, whatever the clusters' order."""
  return {frozenset(np.flatnonzero(row).tolist()) for row in membership}


def join(config, signatures, assignment, new, threshold=None):
  """What newcomers join under the configuration's rule."""
  return config.rule.join(config.options, Newcomers(assignment, Evidence(signatures), new, threshold))


def memberships(clients, clusters=4):
  """A strategy of float[clusters, clients], from one cluster on; clients may be in none."""
  row = st.lists(st.booleans(), min_size=clients, max_size=clients)
  return st.lists(row, min_size=1, max_size=clusters).map(lambda rows: np.array(rows, float))
