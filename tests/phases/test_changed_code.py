"""A user's method or model that was edited after a run used it: the folder is refused in one line, and nothing old passes for new."""

import dataclasses
import sys

import pytest

from tests.phases.whole_run import WholeRun
from tff_cluster.base.errors import InputError
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig

pytestmark = pytest.mark.tensorflow

METHOD = """
import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

class Halves(ClusterMixin, BaseEstimator):
  def fit_predict(self, X, y=None):
    return np.arange(len(X)) % 2
"""
MODEL = """
def net(shape, classes):
  from tensorflow import keras
  return keras.Sequential([keras.layers.Flatten(input_shape=shape), keras.layers.Dense(classes)])
"""
CONFIG = ExperimentConfig(
  DataConfig(num_clients=4, num_groups=2, rows_per_client=20),
  TrainingConfig(model='changed_model:net', phase1_rounds=1, phase2_rounds=1),
  (ClusteringConfig('changed_method:Halves'),),
)


def test_edited_methods_and_models_are_refused_and_another_name_or_folder_is_taken(tmp_path, monkeypatch):
  from tff_cluster.federated import model_check

  monkeypatch.setattr(model_check, 'check', lambda *_: None)
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setattr(sys, 'dont_write_bytecode', True)  # An edit within a second would go unseen.
  method, model = tmp_path / 'changed_method.py', tmp_path / 'changed_model.py'
  method.write_text(METHOD)
  model.write_text(MODEL)
  run = WholeRun(CONFIG, tmp_path / 'run')
  assert WholeRun(CONFIG, tmp_path / 'run').done.trained == 0 < run.done.trained

  # A program that has imported it goes on with what it imported.
  method.write_text(METHOD.replace('% 2', '% 3'))
  assert WholeRun(CONFIG, tmp_path / 'run').done.trained == 0
  monkeypatch.delitem(sys.modules, 'changed_method')
  with pytest.raises(
    InputError,
    match=r'^clustering=changed_method:Halves was changed since it made the clusters of Halves in ',
  ):
    WholeRun(CONFIG, tmp_path / 'run')
  renamed = dataclasses.replace(CONFIG, clusterings=(ClusteringConfig('changed_method:Halves', 'new'),))
  halves, new = WholeRun(renamed, tmp_path / 'run').results.clusterings
  assert [(c.label, len(c.clusters)) for c in (halves, new)] == [('Halves', 2), ('new', 3)]

  model.write_text(MODEL.replace('Flatten(', 'Rescaling(2.0, '))
  monkeypatch.delitem(sys.modules, 'changed_model')
  with pytest.raises(
    InputError, match=r'^model=changed_model:net was changed since the run in .* trained it; '
  ):
    WholeRun(renamed, tmp_path / 'run')
  model.write_text(MODEL)
  monkeypatch.delitem(sys.modules, 'changed_model', raising=False)
  assert WholeRun(renamed, tmp_path / 'run').done.trained == 0
