"""A model of somebody's own in an experiment: compared with Keras once a store, and never taken for another."""

import sys
import types

import pytest

from tests.conftest import make_population
from tff_cluster.base.errors import InputError
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.experiment.run_folder import RunFolder

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
  from tff_cluster.phases import live_experiment

  monkeypatch.setattr(live_experiment, '_checked', set())


def experiment_with(root, model, **data):
  from tff_cluster.phases import live_experiment

  config = ExperimentConfig(
    DataConfig(**data), TrainingConfig(model=model), (ClusteringConfig('kmeans', num_clusters=2),)
  )
  return live_experiment.Experiment(RunFolder(root), config, make_population(), progress=None)


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
  monkeypatch.setattr(model_check, 'check', lambda make, model, x, y: asked.append((make(), model, x, y)))
  return asked


def test_only_models_that_are_not_built_in_are_compared_and_each_once_a_store(
  tmp_path, module, checks, tff_context, monkeypatch
):
  from tff_cluster.phases import live_experiment

  _ = experiment_with(tmp_path / 'a', 'logistic').trainer
  assert checks == []
  for _ in range(2):
    _ = experiment_with(tmp_path / 'a', 'somebodys:model').trainer
    live_experiment._checked.clear()  # As in another process.
  assert len(checks) == 1
  _ = experiment_with(tmp_path / 'b', 'somebodys:model').trainer
  module.layer_call = lambda x: x * 2.0
  _ = experiment_with(tmp_path / 'a', 'somebodys:model').trainer
  assert len(checks) == 3


def test_folds_have_stores_of_their_own_and_are_compared_once(tmp_path, module, checks, tff_context):
  for fold in range(3):
    _ = experiment_with(tmp_path / str(fold), 'somebodys:model').trainer
  assert len(checks) == 1
  assert len(list(tmp_path.glob('*/store/model-*/verdict.json'))) == 3
  _ = experiment_with(tmp_path / 'other', 'somebodys:model', num_clients=7).trainer
  module.layer_call = lambda x: x * 2.0
  _ = experiment_with(tmp_path / 'changed', 'somebodys:model').trainer
  assert len(checks) == 3


def test_a_refusal_is_not_kept_as_a_pass(tmp_path, module, monkeypatch, tff_context):
  from tff_cluster.federated import model_check

  def refuse(*_):
    raise InputError('differs')

  monkeypatch.setattr(model_check, 'check', refuse)
  for _ in range(2):
    with pytest.raises(InputError, match='differs'):
      _ = experiment_with(tmp_path, 'somebodys:model').trainer


def test_a_layer_that_changed_names_other_artifacts(tmp_path, module, checks, tff_context):
  before = experiment_with(tmp_path, 'somebodys:model').settings
  again = experiment_with(tmp_path, 'somebodys:model').settings
  module.layer_call = lambda x: x * 2.0
  changed = experiment_with(tmp_path, 'somebodys:model').settings
  assert before == again
  assert changed['architecture'] == before['architecture']
  assert changed != before
