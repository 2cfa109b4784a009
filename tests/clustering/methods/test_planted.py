import numpy as np

from tests.made_up.refusals import refused
from tff_cluster.clustering import methods
from tff_cluster.clustering.method import Evidence, Newcomers
from tff_cluster.clustering.methods import planted
from tff_cluster.clustering.signatures import Signatures
from tff_cluster.experiment.config import ClusteringConfig

IDS = ('a', 'b', 'c')
DISJOINT = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
OVERLAPPING = np.array([[0.7, 0.0, 0.5], [0.3, 1.0, 0.5], [0.0, 0.0, 0.0]])


def join(truths, new, name, clusters):
  config = ClusteringConfig('planted', truth=name)
  known = Evidence(Signatures.numbered(np.eye(3)), truths=truths, ids=IDS)
  return config.rule.join(config.options, Newcomers(clusters, known, truths=new))


def test_a_client_is_in_every_group_of_which_it_has_a_share():
  assert planted.groups({'group': DISJOINT}, None, IDS).clusters == [['a', 'c'], ['b']]
  found = planted.groups({'group': DISJOINT, 'mixture': OVERLAPPING}, 'mixture', IDS)
  # The third group has nobody, and a clustering has no empty clusters.
  assert found.clusters == [['a', 'b', 'c'], ['a', 'c']]
  assert found.is_overlapping and found.client_ids == IDS


def test_where_everybody_is_in_every_group_each_is_where_it_has_most():
  mixed = np.array([[0.1, 0.9, 0.5], [0.9, 0.1, 0.5]])
  found = planted.groups({'mixture': mixed}, None, IDS)
  assert found.clusters == [['a', 'c'], ['b', 'c']]
  # A newcomer as well, though it has no share in one of the groups.
  new = {'mixture': np.array([[0.2, 0.0], [0.8, 1.0]])}
  joined = join({'mixture': mixed}, new, None, found)
  assert joined.membership.T.tolist() == [[True, False], [True, False]] and not joined.fallback.any()
  evidence = Evidence(Signatures.numbered(np.eye(3)), truths={'mixture': mixed}, ids=IDS)
  outcome = planted.METHOD.cluster(planted.METHOD.read({}), evidence)
  assert outcome.sent_bytes == 0  # Its signatures are for pictures: nobody sends them for an oracle.
  told = outcome.notes
  assert told == (planted.NOTE, planted.NOTE_OF_MIXTURES)


def test_truths_that_are_not_there():
  several = {'digit': DISJOINT, 'label set': DISJOINT}
  wrong = (
    ({}, None, 'these clients have no planted groups'),
    (several, None, 'give one as truth=X: digit, label set'),
    ({'digit': DISJOINT}, 'group', 'truth=group: there are digit'),
  )
  clusters = planted.groups({'digit': DISJOINT}, None, IDS)
  refused(lambda truths, name: planted.groups(truths, name, IDS), *wrong)
  refused(lambda truths, name: join(truths, truths, name, clusters), *wrong)
  # Vectors alone have none.
  alone = (ClusteringConfig('planted'), Signatures.numbered(np.eye(3)), 0)
  refused(methods.cluster, (*alone, 'planted groups are those of a run'))


def test_newcomers_are_in_the_clusters_of_their_own_groups():
  truths = {'mixture': OVERLAPPING}
  new = {'mixture': np.array([[0.0, 1.0, 0.0], [0.4, 0.0, 0.0], [0.6, 0.0, 1.0]])}
  joined = join(truths, new, None, planted.groups(truths, None, IDS))
  # Clusters: group 1 has everybody, group 0 has a and c. Group 2 has nobody: who is of it alone is told of.
  assert joined.membership.T.tolist() == [[True, False], [False, True], [True, True]]
  assert joined.fallback.tolist() == [False, False, True]
