"""Seeds as tasks of a Dask cluster: the same results as here, with a store that is shared or comes home."""

import contextlib
import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from tests.engine.dask_cluster import DaskCluster
from tests.phases import one_worker
from tff_cluster.base.errors import InputError
from tff_cluster.engine import cluster, cluster_connection
from tff_cluster.engine.machine import Machine
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import cost_estimates, session
from tff_cluster.phases.run_experiment import Silent
from tff_cluster.storage import travel
from tff_cluster.studies import runs
from tff_cluster.studies.comparison import runs as comparison

pytestmark = pytest.mark.tensorflow

CONFIG = ExperimentConfig(
  DataConfig(num_clients=6, rows_per_client=30, validation_fraction=0.2, num_groups=2),
  TrainingConfig(model='logistic', phase1_rounds=1, phase2_rounds=1, batch_size=10, learning_rate=0.1),
  (ClusteringConfig('kmeans', num_clusters=2),),
  EvaluationConfig(),
)


@pytest.fixture(scope='module')
def dask(tmp_path_factory):
  made = DaskCluster(tmp_path_factory.mktemp('dask'))
  made.start_worker(threads=2, preload=None)
  yield made
  made.end()


def run(seeds, root, *machine, config=CONFIG):
  """Runs the seeds of a comparison; returns what each has done."""
  with one_worker.kept():
    return runs.run_all(comparison.plan(config, seeds, root), root / 'store', Silent(), *machine)


def digests(found):
  return [done.results.digest for done in found]


def files(folder):
  return sorted(
    path.relative_to(folder)
    for path in folder.rglob('*')
    if path.is_file() and 'tensorboard' not in path.parts
  )


def test_seeds_have_the_results_of_this_machine_and_their_artifacts_come_home(dask, tmp_path, monkeypatch):
  def on_cluster(name, config=CONFIG, seeds=(0, 1)):
    return run(seeds, tmp_path / name, dask.machine(), config=config)

  here = run((0, 1), tmp_path / 'here')
  # One clustering fails; what the other is made of is in the folder, and in a store that the worker sees.
  exploding = ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.6', max_clusters=1)
  with pytest.raises(InputError, match=r'clustering dynamic_distance: .*max_clusters'):
    on_cluster('shared', dataclasses.replace(CONFIG, clusterings=(*CONFIG.clusterings, exploding)), (0,))
  rest = on_cluster('shared', seeds=(0,))
  assert digests(rest) == digests(here)[:1] and rest[0].trained == 0

  # A machine that does not see the store.
  monkeypatch.setattr(travel, 'marked', lambda store: contextlib.nullcontext(str(store / 'no such file')))
  apart = on_cluster('apart', seeds=(1,))
  assert digests(apart) == digests(here)[1:]
  assert [(d.asked, d.trained) for d in apart] == [(d.asked, d.trained) for d in here[1:]]
  assert files(tmp_path / 'apart' / 'seed_1') == files(tmp_path / 'here' / 'seed_1')
  assert [d.trained for d in on_cluster('apart', seeds=(1,))] == [0]


def test_folds_are_drawn_at_home_and_have_the_results_of_this_machine(dask, tmp_path, monkeypatch):
  rows = np.random.default_rng(0)
  path = tmp_path / 'rows.npz'
  np.savez(
    path, x=rows.normal(size=(240, 5)).astype(np.float32), y=np.arange(240) % 3, client_id=np.arange(240) % 6
  )
  data = DataConfig(
    dataset='file', data_file=str(path), partition='by_writer', num_clients=6, validation_fraction=0.2
  )
  config = dataclasses.replace(CONFIG, data=data, evaluation=EvaluationConfig(num_folds=2))

  def planned(name):
    return cost_estimates.Run('folded', config, RunFolder(tmp_path / name))

  with one_worker.kept():
    (here,) = runs.run_all([planned('here')], tmp_path / 'store', Silent())

  def sent(folder, contents=travel.contents):
    path.unlink()  # A worker never had the rows.
    return contents(folder)

  monkeypatch.setattr(travel, 'contents', sent)
  (ran,) = runs.run_all([planned('there')], tmp_path / 'other store', Silent(), dask.machine())
  assert ran.results.cross_validation.folds == 2 and ran.results.digest == here.results.digest


class DoneAlready:
  """A task that is done, and whether its result is wanted still."""

  status = 'finished'

  def __init__(self):
    self.is_wanted = True

  def result(self):
    return SimpleNamespace(answer=SimpleNamespace(fault=None), artifacts={}, files={})

  def release(self):
    self.is_wanted = False


def test_a_result_that_is_at_home_is_wanted_no_more_so_that_its_task_is_not_done_again(tmp_path, monkeypatch):
  tasks, wanted = [], []
  client = SimpleNamespace(
    nthreads=lambda: {'one': 2}, submit=lambda *_, **__: tasks.append(DoneAlready()) or tasks[-1]
  )
  monkeypatch.setattr(cluster_connection, 'client', lambda machine: contextlib.nullcontext(client))
  monkeypatch.setattr(
    cluster, 'as_completed', lambda client, tasks, machine: [(t, t.result()) for t in tasks]
  )
  monkeypatch.setattr(session, 'prepare', lambda claim: None)
  monkeypatch.setattr(runs, '_take_home', lambda *_: wanted.append([task.is_wanted for task in tasks]))
  claims = {k: SimpleNamespace(folder=SimpleNamespace(root=tmp_path / f'{k}')) for k in range(3)}
  found = runs._on_cluster(claims, tmp_path, Silent(), Machine())
  assert list(found) == [0, 1, 2]
  assert wanted == [[True, True, True], [False, True, True], [False, False, True]]
  assert not any(task.is_wanted for task in tasks)
