"""Phase 1, FedAvg without clusters and every client alone: trained once more by hand."""

import dataclasses

import numpy as np
import pytest

from tests.phases.conftest import CLIENTS, CONFIG, PHASE1, PHASE2
from tests.phases.whole_run import accuracy_of
from tff_cluster.base import digests
from tff_cluster.base.errors import InputError
from tff_cluster.data import populate
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.config import DataConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import live_experiment, run_experiment

pytestmark = pytest.mark.tensorflow
ROUNDS = PHASE1 + PHASE2


def test_devices_weights_average_to_the_global_model_of_phase_1(planted):
  with planted.opened() as experiment:
    initial = experiment.trainer.computations.model.weights
    outcome = experiment.train('again', experiment.everyone, initial, 0, PHASE1)
    flat = experiment.flatten(outcome.weights[PHASE1])
  vectors = planted.signatures()
  np.testing.assert_allclose(vectors.mean(axis=0, dtype=np.float64), flat, atol=2e-6)
  assert np.linalg.norm(vectors - flat, axis=1).min() > 0.01  # They are the devices' own.


def test_every_client_alone(planted):
  local = planted.results.local
  assert local.client_rounds == CLIENTS * ROUNDS and local.history.rounds == list(range(1, ROUNDS + 1))
  with planted.opened() as experiment:
    trainer, test = experiment.trainer, experiment.population.test
    for client in (0, CLIENTS - 1):
      state = trainer.start(trainer.computations.model.weights)
      for number in local.history.rounds:
        state, _ = trainer.round(state, np.array([client]), number)
      measured = trainer.measure(trainer.weights(state), test, np.array([client]))
      assert local.evaluation.client_accuracy[client] == measured.client_accuracy[0]
  accuracy = local.evaluation.client_accuracy
  assert local.history.test_accuracy[-1] == pytest.approx(np.mean(accuracy))
  assert accuracy_of(local.evaluation) == pytest.approx(np.mean(accuracy))
  assert len(set(accuracy)) > 1


def test_planted_groups_that_are_not_there_are_told_before_training(tmp_path):
  data = DataConfig(num_clients=CLIENTS, rows_per_client=80, validation_fraction=0.2, partition='iid')
  with pytest.raises(InputError, match='these clients have no planted groups'):
    run_experiment.run_experiment(dataclasses.replace(CONFIG, data=data), tmp_path)
  assert not RunFolder(tmp_path).phase1.exists()


def test_every_training_setting_but_the_rounds_names_other_artifacts():
  others = {
    'model': '2nn', 'cohort_fraction': 0.5, 'batch_size': 7, 'local_epochs': 2, 'learning_rate': 0.2, 'seed': 99,
    'phase1_rounds': 77, 'phase2_rounds': 78, 'sketch_dimension': 64, 'cluster_start': 'global_model',
    'initializer': 'fan_in_uniform', 'aggregator': 'robust',
  }  # fmt: skip
  # Start weights are part of a trajectory's name themselves.
  no_part_of_a_round = ('phase1_rounds', 'phase2_rounds', 'sketch_dimension', 'cluster_start', 'initializer')
  assert others.keys() == {f.name for f in dataclasses.fields(config_lib.TrainingConfig)}
  population = populate.build_population(CONFIG.data)

  def settings_with(**changes):
    config = dataclasses.replace(CONFIG, training=dataclasses.replace(CONFIG.training, **changes))
    experiment = live_experiment.Experiment(RunFolder('nowhere'), config, population, progress=None)
    return digests.of_json(experiment.settings)

  before = settings_with()
  for name, value in others.items():
    assert (settings_with(**{name: value}) == before) == (name in no_part_of_a_round), name
