"""Runs on one store: what one of them has trained or measured, the other finds."""

import contextlib
import dataclasses
import fcntl
import json
import os

import pytest

from tests.phases.test_three_phase import TINY, run
from tff_cluster.data import populate, saved
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases.run_experiment import Silent
from tff_cluster.storage import artifacts

pytestmark = pytest.mark.tensorflow


class Recorder(Silent):
  """Notes the stages, and lets go of a lock once a stage has begun."""

  def __init__(self, descriptor, until):
    self.names, self._descriptor, self._until = [], descriptor, until

  @contextlib.contextmanager
  def stage(self, name, total):
    self.names.append(name)
    if name == self._until:
      os.close(self._descriptor)
    yield self


class Stopped(BaseException):
  """Stands for a kill."""


@pytest.fixture
def measured(monkeypatch):
  """The models that are measured on the global test set, in their order; .stop_after stops a run before the next one."""
  from tff_cluster.federated import trainer

  class Models(list):
    stop_after = None

  models, measure = Models(), trainer.Trainer.measure_global

  def noted(self, weights):
    if len(models) == models.stop_after:
      raise Stopped
    models.append(weights[0].tobytes())
    return measure(self, weights)

  monkeypatch.setattr(trainer.Trainer, 'measure_global', noted)
  return models


def test_a_run_beside_another_on_one_store_trains_first_what_the_other_leaves(tmp_path):
  alone = run(TINY, tmp_path / 'alone')
  population = saved.load_population(RunFolder(tmp_path / 'alone').population)
  digests_of = dict(zip(population.client_ids, population.client_digests, strict=True))
  members = [digests_of[client_id] for client_id in alone.results['clusterings'][0]['clusters'][0]]
  made = (tmp_path / 'alone' / 'store').glob('fedavg-*')
  (taken,) = [f for f in made if json.loads((f / 'determinants.json').read_text())['clients'] == members]
  other = tmp_path / 'store' / taken.name
  other.mkdir(parents=True)
  descriptor = os.open(other, os.O_RDONLY)
  fcntl.flock(descriptor, fcntl.LOCK_EX)
  progress = Recorder(descriptor, until='kmeans/cluster_001')
  # In its order it would wait for cluster_000 for ever.
  beside = run(TINY, tmp_path / 'beside', store_dir=str(tmp_path / 'store'), progress=progress)
  clusters = [name for name in progress.names if name.startswith('kmeans/')]
  assert clusters == ['kmeans/cluster_001', 'kmeans/cluster_000']
  assert beside.results['digest'] == alone.results['digest']


def test_no_model_is_measured_twice_on_the_global_test_set(measured, tmp_path):
  store = str(tmp_path / 'store')
  one = run(TINY, tmp_path / 'one', store_dir=store)
  # Phase 1, the unclustered baseline, the plain and the weighted average, and two clusters, themselves and blended.
  assert len(measured) == len(set(measured)) == 8
  two = run(TINY, tmp_path / 'two', store_dir=store)
  assert len(measured) == 8
  (artifact,) = [a for a in artifacts.Store(tmp_path / 'store').artifacts() if a.kind == 'global_scores']
  assert artifact.content == 'models scored: 8'
  assert two.results['digest'] == one.results['digest']


def test_a_stopped_phase_3_measures_only_what_is_left(measured, tmp_path):
  whole = run(TINY, tmp_path / 'whole').results
  expected = list(measured)
  measured.clear()
  measured.stop_after = 6
  with pytest.raises(Stopped):
    run(TINY, tmp_path / 'stopped')
  measured.stop_after = None
  assert run(TINY, tmp_path / 'stopped').results['digest'] == whole['digest']
  assert measured == expected


def test_a_damaged_measurement_is_kept_aside_and_made_again(measured, tmp_path):
  store = tmp_path / 'store'
  one = run(TINY, tmp_path / 'one', store_dir=str(store)).results
  (artifact,) = store.glob('global_scores-*')
  damaged = sorted(artifact.glob('*.npz'))[0]
  whole = damaged.read_bytes()
  damaged.write_bytes(whole[:-100])
  two = run(TINY, tmp_path / 'two', store_dir=str(store)).results
  assert two['digest'] == one['digest']
  assert len(measured) == 9
  assert damaged.read_bytes() == whole
  assert damaged.with_name(damaged.name + '.damaged').exists()


def test_another_global_test_set_is_measured_by_itself(measured, tmp_path, monkeypatch):
  store = str(tmp_path / 'store')
  run(TINY, tmp_path / 'one', store_dir=store)
  population = saved.load_population(RunFolder(tmp_path / 'one').population)
  fewer = dataclasses.replace(
    population, global_test_x=population.global_test_x[:50], global_test_y=population.global_test_y[:50]
  )
  monkeypatch.setattr(populate, 'build_population', lambda *arguments: fewer)
  found = run(TINY, tmp_path / 'two', store_dir=store).results
  # The same models: what is trained does not depend on it.
  assert measured[8:] == measured[:8]
  accuracy = found['baseline']['evaluation']['global']['accuracy']
  assert accuracy * 50 == pytest.approx(round(accuracy * 50))
