"""Disturbed signatures against a loop that clusters what NumPy made of them. No TensorFlow."""

import numpy as np
import pytest
from sklearn import metrics

from tests.made_up import in_json
from tff_cluster.base import seeding
from tff_cluster.clustering import methods
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.phases import run_experiment
from tff_cluster.studies.disturbance import disturbed_clients
from tff_cluster.studies.disturbance.document import Row
from tff_cluster.studies.disturbance.questions import Questions

GROUPS = np.repeat(np.arange(3), 4)
TRUTH = np.eye(3)[:, GROUPS]
IDS = tuple(f'c{k:02d}' for k in range(12))
KMEANS = ClusteringConfig(method='kmeans', num_clusters=3, name='k')
WARD = ClusteringConfig(method='hierarchical', linkage='ward', distance_threshold='6.0', signature='updates')


class Numpy:
  """Channels as the aggregators are meant to be, in NumPy; they remember what they were given."""

  def __init__(self):
    self.seeds = []

  def noisy(self, vector, seed, clip_norm, noise_multiplier):
    self.seeds.append((noise_multiplier, *seed.tolist()))
    norm = max(float(np.linalg.norm(vector)), 1e-30)
    noise = np.random.default_rng(seed).normal(size=len(vector)) * noise_multiplier * clip_norm
    return (vector * min(1.0, clip_norm / norm) + noise).astype(np.float32)

  def quantized(self, vector, seed, bits, rounding):
    low, high, steps = vector.min(), vector.max(), 2**bits - 1
    place = (vector - low) / (high - low) * steps
    if rounding == 'random':
      place = np.floor(place + np.random.default_rng(seed).random(len(vector)))
    else:
      place = place.round()
    return (low + place / steps * (high - low)).astype(np.float32)

  def num_bytes(self, features, bits):
    return features * bits + 8


def vectors(seed=0):
  rng = np.random.default_rng(seed)
  return (np.eye(3, 20)[GROUPS] * 4 + rng.normal(size=(12, 20)) * 0.3).astype(np.float32)


ORIGIN = np.linspace(-5, 5, 20).astype(np.float32)
WEIGHTS, UPDATES = (vectors() + ORIGIN, ORIGIN), (vectors(1), np.zeros(20, np.float32))


def disturb(questions, clusterings=(KMEANS, WARD), channels=None, order=None, **sent):
  order = np.arange(12) if order is None else order
  ids = tuple(IDS[k] for k in order)
  given = sent or {'weights': WEIGHTS, 'updates': UPDATES}
  signatures = {kind: (Signatures(rows[order], ids), origin) for kind, (rows, origin) in given.items()}
  channels = channels or Numpy()
  return disturbed_clients.disturb(
    signatures, list(clusterings), TRUTH[:, order], questions, 7, channels, run_experiment.Silent()
  )


def test_scores_are_those_of_a_loop_in_numpy():
  questions = Questions((0.0, 0.5), (4, 1), 2, 2.0)
  document = disturb(questions)
  assert len(document.rows) == 2 * (2 + 2 + 2)
  for clustering, kind, (given, origin) in ((KMEANS, 'weights', WEIGHTS), (WARD, 'updates', UPDATES)):
    for name, value in [('noise', 0.5), ('random', 4), ('random', 1), ('nearest', 1)]:
      expected = []
      for repeat in range(1 if name == 'nearest' else 2):
        received = []
        for client_id, vector in zip(IDS, given, strict=True):
          rng = seeding.generator(7, 'disturbance', kind, repeat, client_id)
          seed = rng.integers(2**31, size=2, dtype=np.int32)
          update = vector - origin
          if name == 'noise':
            received.append(origin + Numpy().noisy(update, seed, 2.0, value))
          else:
            received.append(origin + Numpy().quantized(update, seed, value, name))
        found = methods.cluster(clustering, Signatures(np.float32(received), IDS), 7).assignment
        expected.append(metrics.adjusted_rand_score(GROUPS, found.labels))
      wanted = clustering.label, name, value
      (row,) = (r for r in document.rows if (r.label, r.disturbance, r.value) == wanted)
      assert row.scores == pytest.approx(expected)
      assert (row.mean, row.low, row.high) == pytest.approx((np.mean(expected), min(expected), max(expected)))
      assert row.undisturbed == 1.0
  # Else the comparison is of ones with ones.
  assert min(row.low for row in document.rows) < 0.5


def test_nothing_is_drawn_where_there_is_no_noise_and_draws_are_the_same_for_every_multiplier():
  channels = Numpy()
  disturb(Questions((0.0, 0.1, 0.2), (), 2, None), (WARD,), channels, updates=UPDATES)
  by_multiplier = {z: [seed[1:] for seed in channels.seeds if seed[0] == z] for z in (0.0, 0.1, 0.2)}
  assert [len(seeds) for seeds in by_multiplier.values()] == [12, 24, 24]
  assert by_multiplier[0.1] == by_multiplier[0.2]
  assert len(set(by_multiplier[0.1])) == 24


def test_scores_do_not_depend_on_the_order_of_the_clients():
  questions = Questions((0.3,), (2,), 1, None)
  permuted = disturb(questions, order=np.random.default_rng(3).permutation(12))
  for one, other in zip(disturb(questions).rows, permuted.rows, strict=True):
    assert one.scores == pytest.approx(other.scores)


def test_the_clip_norm_is_the_median_norm_unless_it_is_given():
  norms = np.linalg.norm(vectors(1).astype(float), axis=1)
  (found,) = disturb(Questions((0.0,), (), 1, None), (WARD,), updates=UPDATES).signatures
  assert found.clip_norm == pytest.approx(np.median(norms)) and found.clipped == 6
  told = {'min': norms.min(), 'median': np.median(norms), 'max': norms.max()}
  assert found.norms.to_json() == pytest.approx(told)
  assert (found.features, found.bytes, found.clip_norm_given) == (20, 80, False)
  (given,) = disturb(Questions((0.0,), (), 1, 1e3), (WARD,), updates=UPDATES).signatures
  assert (given.clip_norm, given.clipped, given.clip_norm_given) == (1e3, 0, True)


def test_where_a_method_gives_up_nothing_is_found():
  tight = ClusteringConfig(distance_threshold='0.5', max_clusters=3, signature='updates')
  small = (vectors(1) * 0.1, UPDATES[1])
  (row,) = disturb(Questions((3.0,), (), 2, None), (tight,), updates=small).rows
  assert row.undisturbed == 1.0
  assert row.scores == [0.0, 0.0] and row.clusters == [None, None]


def line(value, mean, undisturbed=0.9, name='noise'):
  given = {'label': 'k', 'disturbance': name, 'value': value, 'mean': mean, 'undisturbed': undisturbed}
  return in_json.record(Row, given | {'signature': 'weights'})


@pytest.mark.parametrize(
  ('lines', 'kept', 'lost'),
  [
    ([line(0.0, 0.9), line(0.1, 0.5), line(0.2, 0.45), line(0.3, 0.9)], 0.1, 0.2),
    ([line(0.3, 0.1), line(0.0, 0.9), line(0.1, 0.46)], 0.1, 0.3),
    ([line(0.0, 0.4), line(0.1, 0.8)], None, 0.0),
    ([line(0.0, 0.9), line(0.1, 0.8)], 0.1, None),
    ([line(0.0, 0.0, 0.0), line(0.1, -0.1, 0.0)], None, None),
    ([line(1, 0.0, 0.9, 'random'), line(8, 0.9, 0.9, 'random'), line(2, 0.5, 0.9, 'random')], 2, 1),
  ],
)
def test_where_half_is_lost(lines, kept, lost):
  (found,) = disturbed_clients.half_lost(lines)
  assert (found.kept, found.lost) == (kept, lost)
