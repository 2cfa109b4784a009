"""Cross-validation as it is run: what the folds trained and measured on, and what their summary says."""

import collections
import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from tff_cluster.data import saved
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

FOLDS, CLIENTS = 3, 4
CONFIG = ExperimentConfig(
  DataConfig(num_clients=CLIENTS, rows_per_client=30, partition='iid'),
  TrainingConfig(model='logistic', phase1_rounds=2, phase2_rounds=1, learning_rate=0.1),
  (ClusteringConfig('kmeans', num_clusters=2),),
  EvaluationConfig(num_folds=FOLDS, target_accuracy=0.9),
)


def run(config, path):
  from tff_cluster.phases import run_experiment

  return run_experiment.run_experiment(config, path)


@dataclasses.dataclass
class Validated:
  path: object
  done: object
  folds: list
  populations: list


def finished(config, path):
  done = run(config, path)
  folders = sorted((path / 'folds').iterdir())
  return Validated(
    path,
    done,
    [json.loads((folder / 'results.json').read_text()) for folder in folders],
    [saved.load_population(RunFolder(folder).population) for folder in folders],
  )


@pytest.fixture(scope='module')
def validated(tmp_path_factory):
  return finished(CONFIG, tmp_path_factory.mktemp('folds') / 'run')


def rows(x, y):
  """The 1,797 digits are all different, so that a row is known by its bytes."""
  return collections.Counter((image.tobytes(), int(label)) for image, label in zip(x, y, strict=True))


def client_rows(population, client, *splits):
  return sum((rows(*getattr(population, split).client(client)) for split in splits), collections.Counter())


def test_every_row_of_a_client_is_tested_on_in_exactly_one_fold(validated):
  assert len(validated.populations) == FOLDS
  for k in range(CLIENTS):
    everything = [client_rows(p, k, 'train', 'validation', 'test') for p in validated.populations]
    assert everything[0] == everything[1] == everything[2]
    assert max(everything[0].values()) == 1
    assert (
      sum((client_rows(p, k, 'test') for p in validated.populations), collections.Counter()) == everything[0]
    )
    sizes = [p.test.counts[k] for p in validated.populations]
    assert max(sizes) - min(sizes) <= 1


def test_no_fold_trains_or_validates_on_a_row_that_it_measures_on(validated):
  for population in validated.populations:
    used = sum(
      (client_rows(population, k, 'train', 'validation') for k in range(CLIENTS)), collections.Counter()
    )
    own = sum((client_rows(population, k, 'test') for k in range(CLIENTS)), collections.Counter())
    everybodys = rows(population.global_test_x, population.global_test_y)
    assert not used & own
    assert not used & everybodys
    for k in range(CLIENTS):
      assert not client_rows(population, k, 'train') & client_rows(population, k, 'validation')


def test_folds_differ_in_data_only(validated):
  configs = [fold.config for fold in validated.folds]
  assert configs[0] == configs[1] == configs[2]
  assert configs[0] == dataclasses.replace(CONFIG, evaluation=EvaluationConfig(target_accuracy=0.9)).to_json()
  assert len({fold.population.digest for fold in validated.folds}) == FOLDS
  assert len({fold.digest for fold in validated.folds}) == FOLDS


def test_the_summary_is_mean_students_interval_and_recall_over_the_folds(validated):
  found = validated.done.results.cross_validation
  assert found.keys() == {'folds', 'evaluations'} and found.folds == FOLDS
  names = {f'kmeans/{name}' for name in ('own', 'average', 'weighted', 'blended')} | {'unclustered/baseline'}
  assert found.evaluations.keys() == names
  for name, interval in found.evaluations.items():
    clustering, _, evaluation = name.partition('/')
    each = [
      fold.baseline.evaluation.clients
      if clustering == 'unclustered'
      else fold.clusterings[0].evaluations[evaluation].clients
      for fold in validated.folds
    ]
    values = [e.mean_client_accuracy for e in each]
    low, high = stats.t.interval(0.95, FOLDS - 1, loc=np.mean(values), scale=stats.sem(values))
    assert interval.mean == pytest.approx(np.mean(values))
    assert (interval.low, interval.high) == pytest.approx((low, high))
    assert interval.recall == pytest.approx(np.mean([e.recall for e in each]))
  spread = [fold.baseline.evaluation.clients.mean_client_accuracy for fold in validated.folds]
  assert len(set(spread)) > 1  # Otherwise the intervals above would show nothing.


def test_the_results_on_disk_are_complete_and_the_digest_covers_the_folds(validated, tmp_path):
  on_disk = files.load_json(validated.path / 'results.json')
  assert on_disk == validated.done.results
  from tff_cluster.experiment import results

  changed = json.loads(json.dumps(on_disk))
  assert results.with_digest(changed).digest == on_disk.digest
  changed.cross_validation.evaluations['kmeans/own'].mean += 0.001
  assert results.with_digest(changed).digest != on_disk.digest


def test_all_client_rounds_are_counted_and_none_is_trained_twice(validated):
  # Phase 1 and its continuation, and the clusters, once for the experiment and once a fold.
  once = CLIENTS * (2 + 1) + CLIENTS * 1
  assert validated.done.trained == (FOLDS + 1) * once
  again = run(CONFIG, validated.path)
  assert again.trained == 0
  assert again.results.digest == validated.done.results.digest


def test_folds_of_a_data_file(tmp_path):
  rng = np.random.default_rng(0)
  y = np.arange(120) % 3
  x = (np.eye(3)[y] * 3 + rng.normal(size=(120, 3))).astype(np.float32)
  np.savez(tmp_path / 'own.npz', x=x, y=y)
  data = DataConfig(dataset='file', data_file=str(tmp_path / 'own.npz'), num_clients=CLIENTS, partition='iid')
  config = dataclasses.replace(CONFIG, data=data, evaluation=EvaluationConfig(num_folds=2))
  found = finished(config, tmp_path / 'run')
  assert found.done.results.cross_validation.folds == 2
  again = run(config, tmp_path / 'run')
  assert again.trained == 0
