"""The overlap dial: its positions by hand, and what clusters they give."""

import numpy as np
import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.clustering import overlap_dial
from tff_cluster.clustering.methods import dynamic_distance
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig


def test_positions_by_hand():
  found = overlap_dial.positions((), 5)
  assert [position.label for position in found] == ['dial_00', 'dial_01', 'dial_02', 'dial_03', 'dial_04']
  # (i / 4)^2 for i = 1 .. 4.
  thresholds = ['0', 'quantile:0.0625', 'quantile:0.25', 'quantile:0.5625', 'quantile:1']
  assert [position.options.distance_threshold for position in found] == thresholds
  quantiles = [overlap_dial.quantile(threshold) for threshold in thresholds]
  assert quantiles == [None, 0.0625, 0.25, 0.5625, 1.0]
  assert all(overlap_dial.is_position(position.label) for position in found)
  assert overlap_dial.positions((), 0) == ()


def test_the_first_dynamic_distance_clustering_says_what_is_swept():
  given = (
    ClusteringConfig('kmeans', num_clusters=3),
    ClusteringConfig('dynamic_distance', variant='neighbourhoods', signature='updates', max_clusters=7),
    ClusteringConfig('dynamic_distance', name='other'),
  )
  for position in overlap_dial.positions(given, 3):
    options = position.options
    assert (options.variant, position.signature, options.max_clusters) == ('neighbourhoods', 'updates', 7)


@pytest.mark.parametrize('variant', ['cliques', 'neighbourhoods'])
def test_it_turns_from_every_client_alone_to_all_together(variant):
  vectors = np.random.default_rng(3).normal(size=(12, 4))
  base = ClusteringConfig('dynamic_distance', variant=variant)
  found = [
    dynamic_distance.dynamic_distance(
      Signatures.numbered(vectors), position.options.distance_threshold, variant
    )
    for position in overlap_dial.positions([base], 9)
  ]
  assert np.array_equal(found[0][0].membership.sum(axis=1), np.ones(12))
  assert found[-1][0].num_clusters == 1
  limits = [limit for _, limit in found]
  assert limits == sorted(limits) and len(set(limits)) == 9
  memberships = [assignment.membership.sum() / 12 for assignment, _ in found]
  assert memberships[0] == memberships[-1] == 1.0 and max(memberships) > 2.0


@pytest.mark.parametrize('count', [1, 2, 101])
def test_too_few_or_too_many_positions(count):
  with pytest.raises(InputError, match=f'^overlap_dial={count}: give 0, or from 3 to 100 positions'):
    overlap_dial.positions((), count)


@pytest.mark.parametrize('count', [0, 5])
def test_a_clustering_may_not_have_a_position_s_name(count):
  with pytest.raises(InputError, match=r'name=Dial_03: .* choose another name'):
    overlap_dial.positions([ClusteringConfig('kmeans', name='Dial_03')], count)
  assert not overlap_dial.is_position('dial') and not overlap_dial.is_position('dial_3b')
