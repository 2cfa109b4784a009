"""What clusterings are measured against: clients alone, planted groups, and the client-rounds of FedAvg."""

import dataclasses

import numpy as np
import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.experiment.run_folder import RunFolder

pytestmark = pytest.mark.tensorflow

CLIENTS, PHASE1, PHASE2 = 6, 2, 6
# So wide a threshold that clients are in several cliques: training them all costs more than FedAvg does.
OVERLAPPING = ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.6')
CONFIG = ExperimentConfig(
  DataConfig(num_clients=CLIENTS, rows_per_client=60, validation_fraction=0.2, num_groups=2),
  TrainingConfig(
    model='logistic', phase1_rounds=PHASE1, phase2_rounds=PHASE2, batch_size=10, learning_rate=0.1, seed=3
  ),
  (
    OVERLAPPING,
    ClusteringConfig('planted'),
    ClusteringConfig('hierarchical', name='one', distance_threshold='1e9'),
  ),
  EvaluationConfig(local_training=True),
)


def run(config, path, store):
  from tff_cluster.phases import run_experiment

  return run_experiment.run_experiment(config, path, store, export_models=False)


@pytest.fixture(scope='module')
def done(tmp_path_factory):
  path = tmp_path_factory.mktemp('references')
  return path, run(CONFIG, path / 'run', str(path / 'store'))


def test_planted_clusters_are_the_planted_groups(done):
  results = done[1].results
  planted = next(c for c in results['clusterings'] if c['label'] == 'planted')
  groups = np.array(results['population']['truths']['group'])
  ids = np.array(results['population']['client_ids'])
  assert sorted(map(sorted, planted['clusters'])) == sorted(sorted(ids[row > 0].tolist()) for row in groups)
  assert planted['recovery']['group']['ari'] == 1.0 and planted['parameters']['truth'] is None


def test_a_clustering_that_costs_more_is_measured_where_fedavg_would_stop(done):
  path, first = done
  dear = next(c for c in first.results['clusterings'] if c['label'] == 'dynamic_distance')
  each = sum(len(members) for members in dear['clusters'])
  assert each > CLIENTS and dear['ledger']['client_rounds'] == each * PHASE2
  affordable = CLIENTS * PHASE2 // each
  assert 0 < affordable < PHASE2
  assert (dear['equal_cost']['round'], dear['equal_cost']['client_rounds']) == (
    PHASE1 + affordable,
    each * affordable,
  )
  # A run of so many rounds ends with the same models.
  shorter = dataclasses.replace(
    CONFIG,
    training=dataclasses.replace(CONFIG.training, phase2_rounds=affordable),
    clusterings=(OVERLAPPING,),
  )
  again = run(shorter, path / 'shorter', str(path / 'store'))
  own = again.results['clusterings'][0]['evaluations']['own']
  assert dear['equal_cost']['evaluation'] == {k: v for k, v in own.items() if k != 'mixing'}


def test_disjoint_clusters_cost_no_more_than_fedavg(done):
  for clustering in done[1].results['clusterings'][1:]:
    assert clustering['equal_cost'] is None
    assert clustering['ledger']['client_rounds'] == CLIENTS * PHASE2


def test_where_not_even_a_round_can_be_paid_the_start_is_measured(done, tmp_path):
  # The round in which updates are sent costs as much as the only round of Phase 2.
  one = dataclasses.replace(
    CONFIG,
    training=dataclasses.replace(CONFIG.training, phase2_rounds=1, cluster_start='global_model'),
    clusterings=(ClusteringConfig('kmeans', num_clusters=2, signature='updates'),),
    evaluation=EvaluationConfig(),
  )
  results = run(one, tmp_path / 'run', str(done[0] / 'store')).results
  found = results['clusterings'][0]['equal_cost']
  assert (found['round'], found['client_rounds']) == (PHASE1, CLIENTS)
  assert found['evaluation']['client_accuracy'] == results['phase1']['evaluation']['client_accuracy']
  assert results['local'] is None


def test_every_client_alone(done):
  from tff_cluster.phases import session
  from tff_cluster.phases.run_experiment import Silent

  local = done[1].results['local']
  assert local['client_rounds'] == CLIENTS * (PHASE1 + PHASE2)
  assert local['history']['rounds'] == list(range(1, PHASE1 + PHASE2 + 1))
  with session.opened(RunFolder(done[0] / 'run'), CONFIG, Silent()) as experiment:
    trainer, test = experiment.trainer, experiment.population.test
    for client in (0, CLIENTS - 1):
      state = trainer.start(trainer.computations.model.weights)
      for number in range(1, PHASE1 + PHASE2 + 1):
        state, _ = trainer.round(state, np.array([client]), number)
      measured = trainer.measure(trainer.weights(state), test, np.array([client]))
      assert local['evaluation']['client_accuracy'][client] == measured.client_accuracy[0]
  accuracy = np.array(local['evaluation']['client_accuracy'])
  assert local['history']['test_accuracy'][-1] == pytest.approx(accuracy.mean())
  assert local['evaluation']['clients']['mean_client_accuracy'] == pytest.approx(accuracy.mean())
  assert len(set(accuracy)) > 1


def test_a_second_call_trains_nothing(done):
  path, first = done
  again = run(CONFIG, path / 'run', str(path / 'store'))
  assert (again.asked, again.trained, again.results['digest']) == (0, 0, first.results['digest'])


def test_planted_groups_that_are_not_there_are_told_before_training(tmp_path):
  plain = dataclasses.replace(CONFIG, data=dataclasses.replace(CONFIG.data, partition='iid', num_groups=4))
  with pytest.raises(InputError, match='these clients have no planted groups'):
    run(plain, tmp_path / 'run', None)
  assert not RunFolder(tmp_path / 'run').phase1.exists()
