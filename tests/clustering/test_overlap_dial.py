"""The overlap dial: its positions by hand, and what clusters they give."""

import numpy as np
import pytest

from tests.made_up.refusals import refused
from tff_cluster.clustering import methods, overlap_dial
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig


def test_positions_by_hand():
  given = (
    ClusteringConfig('kmeans', num_clusters=3),
    ClusteringConfig('dynamic_distance', variant='neighbourhoods', signature='updates', max_clusters=7),
    ClusteringConfig('dynamic_distance', name='other'),
  )
  found = overlap_dial.positions(given, 5)
  assert [position.label for position in found] == ['dial_00', 'dial_01', 'dial_02', 'dial_03', 'dial_04']
  # (i / 4)^2 for i = 1 .. 4.
  thresholds = ['0', 'quantile:0.0625', 'quantile:0.25', 'quantile:0.5625', 'quantile:1']
  assert [position.options.distance_threshold for position in found] == thresholds
  assert [overlap_dial.quantile(threshold) for threshold in thresholds] == [None, 0.0625, 0.25, 0.5625, 1.0]
  for position in found:
    assert overlap_dial.is_position(position.label)
    options = position.options
    assert (options.variant, position.signature, options.max_clusters) == ('neighbourhoods', 'updates', 7)
  assert overlap_dial.positions((), 0) == ()


@pytest.mark.parametrize('variant', ['cliques', 'neighbourhoods'])
def test_it_turns_from_every_client_alone_to_all_together(variant):
  signatures = Signatures.numbered(np.random.default_rng(3).normal(size=(12, 4)))
  positions = overlap_dial.positions([ClusteringConfig('dynamic_distance', variant=variant)], 9)
  found = [methods.cluster(position, signatures, 0) for position in positions]
  assert (found[0].assignment.num_clusters, found[-1].assignment.num_clusters) == (12, 1)
  limits = [outcome.threshold for outcome in found]
  assert limits == sorted(limits) and len(set(limits)) == 9
  memberships = [outcome.assignment.membership.sum() / 12 for outcome in found]
  assert memberships[0] == memberships[-1] == 1.0 and max(memberships) > 2.0


def test_wrong_counts_and_a_name_that_is_a_position_s():
  named = [ClusteringConfig('kmeans', name='Dial_03')]
  refused(
    overlap_dial.positions,
    *(((), count, f'^overlap_dial={count}: give 0, or from 3 to 100 positions') for count in (1, 2, 101)),
    *((named, count, r'name=Dial_03: .* choose another name') for count in (0, 5)),
  )
  assert not overlap_dial.is_position('dial') and not overlap_dial.is_position('dial_3b')
