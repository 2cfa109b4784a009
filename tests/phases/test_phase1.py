"""Every client alone, trained once more by hand; and what names the artifacts of all phases."""

import dataclasses

import numpy as np
import pytest

from tests.phases.conftest import CLIENTS, CONFIG, PHASE1, PHASE2
from tests.phases.whole_run import WholeRun, accuracy_of, changed
from tff_cluster.base import digests
from tff_cluster.base.cost import Cost
from tff_cluster.base.errors import InputError
from tff_cluster.data import populate
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import live_experiment

pytestmark = pytest.mark.tensorflow
ROUNDS = PHASE1 + PHASE2


def test_every_client_alone(planted):
  (local,) = planted.results.personalized
  assert (local.name, local.title, local.round) == ('local', 'every client alone', ROUNDS)
  rows, sent = int(planted.population.train.counts.sum()), CLIENTS * PHASE1
  size = sent * planted.results.training.model_bytes
  # Of all rounds, less those of Phase 1, in which all clients take part and send.
  assert local.cost == Cost(CLIENTS * PHASE2, -sent, -sent, -size, -size, rows * PHASE2)
  assert local.history.rounds == list(range(1, ROUNDS + 1))
  accuracy = local.evaluation.client_accuracy
  with planted.opened() as experiment:
    trainer, last = experiment.trainer, np.array([CLIENTS - 1])
    state = trainer.start(trainer.computations.model.weights)
    for number in local.history.rounds:
      state, _ = trainer.round(state, last, number)
    measured = trainer.measure(trainer.weights(state), experiment.population.test, last)
  assert accuracy[-1] == measured.client_accuracy[0]
  assert local.history.test_accuracy[-1] == pytest.approx(np.mean(accuracy))
  assert accuracy_of(local.evaluation) == pytest.approx(np.mean(accuracy))
  assert len(set(accuracy)) > 1


def test_planted_groups_that_are_not_there_are_told_before_training(tmp_path):
  config = changed(CONFIG, data={'partition': 'iid', 'num_groups': 4})
  with pytest.raises(InputError, match='these clients have no planted groups'):
    WholeRun(config, tmp_path)
  assert not RunFolder(tmp_path).phase1.exists()


def test_every_training_setting_but_the_rounds_names_other_artifacts():
  others = {
    'model': '2nn', 'cohort_fraction': 0.5, 'batch_size': 7, 'local_epochs': 2, 'learning_rate': 0.2, 'seed': 99,
    'phase1_rounds': 77, 'phase2_rounds': 78, 'sketch_dimension': 64, 'cluster_start': 'global_model',
    'initializer': 'fan_in_uniform', 'loss': 'double_softmax', 'aggregator': 'robust', 'client_optimizer': 'adam', 'weight_decay': 0.1,
    'learning_rate_decay': 0.9, 'proximal_mu': 0.1, 'server_optimizer': 'yogi', 'server_learning_rate': 0.5,
    'momentum': {'client_optimizer': 'momentum', 'momentum': 0.5},
    'server_momentum': {'server_optimizer': 'momentum', 'server_momentum': 0.5},
  }  # fmt: skip
  # Start weights are part of a trajectory's name themselves.
  no_part_of_a_round = ('phase1_rounds', 'phase2_rounds', 'sketch_dimension', 'cluster_start', 'initializer')
  assert others.keys() == {f.name for f in dataclasses.fields(config_lib.TrainingConfig)}
  population = populate.build_population(CONFIG.data)

  def settings_with(**changes):
    config = changed(CONFIG, training=changes)
    experiment = live_experiment.Experiment(RunFolder('nowhere'), config, population, progress=None)
    return digests.of_json(experiment.settings)

  before = settings_with()
  for name, value in others.items():
    changes, besides = (value, {**value, name: 0.9}) if isinstance(value, dict) else ({name: value}, {})
    assert (settings_with(**changes) == before) == (name in no_part_of_a_round), name
    assert settings_with(**changes) != settings_with(**besides) or name in no_part_of_a_round, name


def test_the_initializer_reaches_all_models_that_an_experiment_makes():
  population = populate.build_population(CONFIG.data)
  for initializer in ('model', 'fan_in_uniform'):
    config = changed(CONFIG, training={'initializer': initializer})
    experiment = live_experiment.Experiment(RunFolder('nowhere'), config, population, progress=None)
    own = [variable.numpy() for variable in experiment.keras_model.trainable_weights]
    for kernel, bias in (own, experiment.initial_weights(1)):
      inputs, outputs = kernel.shape
      # Keras has Glorot's uniform kernels and no biases, PyTorch U(-1/sqrt(inputs), 1/sqrt(inputs)) for both.
      bounds = {'model': (6 / (inputs + outputs)) ** 0.5, 'fan_in_uniform': inputs**-0.5}
      assert np.abs(kernel).max() == pytest.approx(bounds[initializer], rel=0.05)
      assert bool(bias.any()) == (initializer == 'fan_in_uniform')


def test_every_option_of_optimizers_reaches_clients_and_server():
  from tff_cluster.federated import optimizers

  training = config_lib.TrainingConfig(
    learning_rate=0.2, batch_size=7, client_optimizer='momentum', momentum=0.5, weight_decay=0.1, learning_rate_decay=0.9,
    proximal_mu=0.3, server_optimizer='momentum', server_learning_rate=0.4, server_momentum=0.6,
  )  # fmt: skip
  found = live_experiment.optimizers_of(training)
  assert found == (
    optimizers.Local(0.2, 7, 'momentum', 0.5, weight_decay=0.1, proximal_mu=0.3, learning_rate_decay=0.9),
    optimizers.Server(0.4, 'momentum', 0.6),
  )
  assert live_experiment.optimizers_of(config_lib.TrainingConfig()) == (
    optimizers.Local(0.1, 20),
    optimizers.MEAN,
  )
