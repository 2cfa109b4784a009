"""Runs on one store: what one of them has trained or measured, the other finds."""

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import sys
import types

import pytest

from tests.phases.conftest import TINY
from tests.phases.whole_run import Stopped, WholeRun, changed
from tff_cluster.data import populate
from tff_cluster.engine.machine import Machine
from tff_cluster.phases.run_experiment import Silent
from tff_cluster.storage import artifacts

pytestmark = pytest.mark.tensorflow

# Phase 1, the unclustered baseline, the plain and the weighted average, and two clusters, themselves and blended.
MODELS = 8


class Recorder(Silent):
  """Notes the stages, and lets go of a lock once a stage has begun."""

  def __init__(self, descriptor, until):
    self.names, self._descriptor, self._until = [], descriptor, until

  @contextlib.contextmanager
  def stage(self, name, total):
    self.names.append(name)
    if name == self._until and self._descriptor is not None:
      os.close(self._descriptor)
      self._descriptor = None
    yield self


@contextlib.contextmanager
def noted(stop_after=None):
  """Yields the models that are measured on the global test set, in their order; a run is stopped after so many."""
  from tff_cluster.federated import trainer

  models, measure = [], trainer.Trainer.measure_global

  def note(self, weights):
    if len(models) == stop_after:
      raise Stopped
    models.append(weights[0].tobytes())
    return measure(self, weights)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(trainer.Trainer, 'measure_global', note)
    yield models


@pytest.fixture(scope='module')
def alone(tmp_path_factory):
  """A run with a store of its own, and the models that it measured."""
  with noted() as models:
    return WholeRun(TINY, tmp_path_factory.mktemp('alone') / 'run'), models


@pytest.fixture
def store(alone, tmp_path):
  return shutil.copytree(alone[0].folder.store, tmp_path / 'store')


def test_a_run_beside_another_on_one_store_trains_first_what_the_other_leaves(alone, tmp_path):
  whole, _ = alone
  members = [whole.population.client_digests[k] for k in whole.membership('kmeans')[0].nonzero()[0]]
  made = whole.folder.store.glob('fedavg-*')
  (taken,) = [f for f in made if json.loads((f / 'determinants.json').read_text())['clients'] == members]
  other = tmp_path / 'store' / taken.name
  other.mkdir(parents=True)
  descriptor = os.open(other, os.O_RDONLY)
  fcntl.flock(descriptor, fcntl.LOCK_EX)
  progress = Recorder(descriptor, until='kmeans/cluster_001')
  # One cluster at a time: in its order it would wait for cluster_000 for ever.
  one = Machine(clients_in_parallel=1)
  beside = WholeRun(
    TINY, tmp_path / 'beside', store_dir=str(tmp_path / 'store'), progress=progress, machine=one
  )
  clusters = [name for name in progress.names if name.startswith('kmeans/')]
  assert clusters[:2] == ['kmeans/cluster_001', 'kmeans/cluster_000']
  assert beside.results.digest == whole.results.digest


def test_a_model_of_users_is_kept_in_the_shared_store_and_the_same_call_goes_on(tmp_path, monkeypatch):
  somebodys = types.ModuleType('somebodys')

  def model(shape, classes):
    from tensorflow import keras

    layers = keras.layers
    return keras.Sequential([layers.InputLayer(shape), layers.Flatten(), layers.Dense(classes)])

  somebodys.model = model
  monkeypatch.setitem(sys.modules, 'somebodys', somebodys)
  config, store = changed(TINY, training={'model': 'somebodys:model'}), tmp_path / 'store'
  first = WholeRun(config, tmp_path / 'run', store_dir=str(store))
  assert first.folder.store.is_symlink() and list(store.glob('model-*'))
  again = WholeRun(config, tmp_path / 'run', store_dir=str(store))
  assert again.done.trained == 0 and again.results.digest == first.results.digest


def test_a_stopped_phase_3_measures_only_what_is_left_and_a_damaged_measurement_alone_is_made_again(
  alone, store, tmp_path
):
  whole, models = alone
  assert len(models) == len(set(models)) == MODELS
  for path in store.glob('global_scores-*/*.npz'):
    path.unlink()

  def run():
    assert WholeRun(TINY, tmp_path / 'run', store_dir=str(store)).results.digest == whole.results.digest

  with noted(stop_after=6) as before, pytest.raises(Stopped):
    run()
  with noted() as after:
    run()
  assert before + after == models
  (artifact,) = [a for a in artifacts.Store(store).artifacts() if a.kind == 'global_scores']
  assert artifact.content == f'models scored: {MODELS}'
  damaged = min(store.glob('global_scores-*/*.npz'))
  bytes_before = damaged.read_bytes()
  damaged.write_bytes(bytes_before[:-100])
  shutil.rmtree(tmp_path / 'run')
  with noted() as measured:
    run()
  assert len(measured) == 1 and damaged.read_bytes() == bytes_before
  assert damaged.with_name(damaged.name + '.damaged').exists()


def test_another_global_test_set_is_measured_by_itself(alone, store, tmp_path, monkeypatch):
  whole, models = alone
  x, y = whole.population.global_test_x[:50], whole.population.global_test_y[:50]
  fewer = dataclasses.replace(whole.population, global_test_x=x, global_test_y=y)
  monkeypatch.setattr(populate, 'build_population', lambda *arguments: fewer)
  with noted() as measured:
    found = WholeRun(TINY, tmp_path / 'run', store_dir=str(store)).results
  # The same models: what is trained does not depend on it.
  assert measured == models
  accuracy = found.baseline.evaluation.global_test.accuracy
  assert accuracy * 50 == pytest.approx(round(accuracy * 50))


def test_what_a_model_scores_in_another_loss_is_measured_anew(tmp_path):
  # Both start from the same model, which Phase 1 leaves as it is.
  config = changed(TINY, training={'phase1_rounds': 0})
  double = changed(config, training={'loss': 'double_softmax'})
  store = str(tmp_path / 'store')
  WholeRun(config, tmp_path / 'cross entropy', store_dir=store)
  shared = WholeRun(double, tmp_path / 'shared', store_dir=store)
  assert shared.results.digest == WholeRun(double, tmp_path / 'alone').results.digest
