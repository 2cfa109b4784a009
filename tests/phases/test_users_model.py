"""A model of somebody's own in an experiment: compared with Keras once a store, and never taken for another."""

import dataclasses
import sys
import types

import pytest

from tests.conftest import make_population
from tff_cluster.base.errors import InputError
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.experiment.run_folder import RunFolder

pytestmark = pytest.mark.tensorflow


def experiment_with(root, model='somebodys:model', **data):
  from tff_cluster.phases import live_experiment

  clusterings = (ClusteringConfig('kmeans', num_clusters=2),)
  config = ExperimentConfig(DataConfig(**data), TrainingConfig(model=model), clusterings)
  return live_experiment.Experiment(RunFolder(root), config, make_population(), progress=None)


@pytest.fixture(autouse=True)
def seen(monkeypatch):
  """What this process has compared: nothing yet."""
  from tff_cluster.phases import live_experiment

  monkeypatch.setattr(live_experiment, '_checked', set())
  return live_experiment._checked


@pytest.fixture
def module(monkeypatch):
  """A module of somebody's, whose layer's call is `layer_call`."""
  made = types.ModuleType('somebodys')
  made.layer_call = lambda x: x

  def model(shape, classes):
    from tensorflow import keras

    class Own(keras.layers.Layer):
      def call(self, x):
        return made.layer_call(x)

    layers = keras.layers
    return keras.Sequential([layers.InputLayer(shape), layers.Dense(4), Own(), layers.Dense(classes)])

  made.model = model
  monkeypatch.setitem(sys.modules, 'somebodys', made)
  return made


@pytest.fixture
def checks(monkeypatch):
  from tff_cluster.federated import model_check

  asked = []
  monkeypatch.setattr(model_check, 'check', lambda make, model, *rest: asked.append((make(), model, *rest)))
  return asked


def test_only_models_that_are_not_built_in_are_compared_and_each_once_a_store(
  tmp_path, module, checks, seen, tff_context
):
  _ = experiment_with(tmp_path / 'a', 'logistic').trainer
  assert checks == []
  for _ in range(2):
    _ = experiment_with(tmp_path / 'a').trainer
    seen.clear()  # As in another process.
  assert len(checks) == 1
  # Folds have stores of their own, and are compared once.
  for fold in range(3):
    _ = experiment_with(tmp_path / f'fold {fold}').trainer
  assert len(checks) == 2
  assert len(list(tmp_path.glob('fold */store/model-*/verdict.json'))) == 3
  _ = experiment_with(tmp_path / 'other data', num_clients=7).trainer
  before = experiment_with(tmp_path / 'a').settings
  assert len(checks) == 3 and experiment_with(tmp_path / 'a').settings == before
  module.layer_call = lambda x: x * 2.0
  changed = experiment_with(tmp_path / 'a').settings
  assert len(checks) == 4
  assert changed['architecture'] == before['architecture'] and changed != before


def test_a_dry_run_compares_a_model_and_writes_nothing_into_the_store(tmp_path, module, checks, tff_context):
  (tmp_path / 'there').mkdir()
  for name in ('to come', 'there'):
    (tmp_path / f'dry {name}').mkdir()
    (tmp_path / f'dry {name}/store').symlink_to(tmp_path / name)
    for _ in range(2):
      _ = dataclasses.replace(experiment_with(tmp_path / f'dry {name}'), is_estimate=True).trainer
  assert len(checks) == 1 and not (tmp_path / 'to come').exists() and not list((tmp_path / 'there').iterdir())


def test_a_refusal_is_not_kept_as_a_pass(tmp_path, module, monkeypatch, tff_context):
  from tff_cluster.federated import model_check

  def refuse(*_):
    raise InputError('differs')

  monkeypatch.setattr(model_check, 'check', refuse)
  for _ in range(2):
    with pytest.raises(InputError, match='differs'):
      _ = experiment_with(tmp_path).trainer


def test_a_changed_models_scores_are_not_those_of_its_code_before(tmp_path, module, checks, tff_context):
  from tff_cluster.phases import global_scores

  weights = experiment_with(tmp_path / 'a').trainer.computations.model.weights
  before = global_scores.metrics(experiment_with(tmp_path / 'a'), weights)
  module.layer_call = lambda x: 1.0 - x
  after, elsewhere = (
    global_scores.metrics(experiment_with(tmp_path / name), weights) for name in ('a', 'elsewhere')
  )
  assert after == elsewhere != before
