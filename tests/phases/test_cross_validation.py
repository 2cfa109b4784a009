"""Cross-validation as it is run: what the folds trained and measured on, and what their summary says."""

import collections
import dataclasses
import functools

import numpy as np
import pytest
from scipy import stats

from tests.phases.whole_run import WholeRun, accuracy_of
from tff_cluster.data import saved
from tff_cluster.experiment import results
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)
from tff_cluster.experiment.run_folder import RunFolder

pytestmark = pytest.mark.tensorflow

FOLDS, CLIENTS = 3, 4
SPLITS = ('train', 'validation', 'test')
CONFIG = ExperimentConfig(
  DataConfig(num_clients=CLIENTS, rows_per_client=30, partition='iid'),
  TrainingConfig(model='logistic', phase1_rounds=2, phase2_rounds=1, learning_rate=0.1),
  (ClusteringConfig('kmeans', num_clusters=2),),
  EvaluationConfig(num_folds=FOLDS, target_accuracy=0.9),
)


class Validated(WholeRun):
  """A run with its folds."""

  @property
  def folds(self):
    return [results.read(path) for path in sorted(self.folder.root.glob('folds/*/results.json'))]

  @functools.cached_property
  def populations(self):
    folders = map(RunFolder, sorted((self.folder.root / 'folds').iterdir()))
    return [saved.load_population(folder.population) for folder in folders]


@pytest.fixture(scope='module')
def validated(tmp_path_factory):
  return Validated(CONFIG, tmp_path_factory.mktemp('folds') / 'run')


def rows(x, y):
  """The 1,797 digits are all different, so that a row is known by its bytes."""
  return collections.Counter((image.tobytes(), int(label)) for image, label in zip(x, y, strict=True))


def client_rows(population, clients, *splits):
  pairs = [getattr(population, split).client(k) for split in splits for k in clients]
  return sum((rows(*pair) for pair in pairs), collections.Counter())


def test_every_row_of_a_client_is_tested_on_in_exactly_one_fold(validated):
  assert len(validated.populations) == FOLDS
  for k in range(CLIENTS):
    everything, *others = (client_rows(p, [k], *SPLITS) for p in validated.populations)
    assert others == [everything] * (FOLDS - 1)
    assert max(everything.values()) == 1
    tested = [client_rows(p, [k], 'test') for p in validated.populations]
    assert sum(tested, collections.Counter()) == everything
    sizes = [each.total() for each in tested]
    assert max(sizes) - min(sizes) <= 1


def test_no_fold_trains_or_validates_on_a_row_that_it_measures_on(validated):
  for population in validated.populations:
    used = client_rows(population, range(CLIENTS), 'train', 'validation')
    assert not used & client_rows(population, range(CLIENTS), 'test')
    assert not used & rows(population.global_test_x, population.global_test_y)
    assert max(used.values()) == 1  # Nor is a row of two clients, or trained and validated on.


def test_folds_differ_in_data_only(validated):
  evaluation = dataclasses.replace(CONFIG.evaluation, num_folds=0)
  assert [fold.config for fold in validated.folds] == FOLDS * [
    dataclasses.replace(CONFIG, evaluation=evaluation)
  ]
  assert len({fold.population.digest for fold in validated.folds}) == FOLDS
  assert len({fold.digest for fold in validated.folds}) == FOLDS


def test_the_summary_is_mean_students_interval_and_recall_over_the_folds(validated):
  found, folds = validated.results.cross_validation, validated.folds
  names = {f'kmeans/{name}' for name in ('own', 'average', 'weighted', 'blended')} | {'unclustered/baseline'}
  assert found.folds == FOLDS and found.evaluations.keys() == names
  for name, interval in found.evaluations.items():
    each = [fold.clusterings[0].evaluations.get(name.removeprefix('kmeans/')) for fold in folds]
    if name == 'unclustered/baseline':
      each = [fold.baseline.evaluation for fold in folds]
    values = [accuracy_of(evaluation) for evaluation in each]
    low, high = stats.t.interval(0.95, FOLDS - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (interval.mean, interval.low, interval.high) == pytest.approx((np.mean(values), low, high))
    assert interval.recall == pytest.approx(np.mean([evaluation.clients.recall for evaluation in each]))
  # Otherwise the intervals above would show nothing.
  assert len({accuracy_of(fold.baseline.evaluation) for fold in folds}) > 1


def test_the_results_on_disk_are_complete_and_the_digest_covers_the_folds(validated):
  assert results.read(validated.folder.results) == validated.results
  changed = validated.results.to_json()
  changed['cross_validation']['evaluations']['kmeans/own']['mean'] += 0.001
  assert results.digest_of(results.from_json(changed, 'changed')) != validated.results.digest


def test_all_client_rounds_are_counted_and_none_is_trained_twice(validated):
  # Phase 1 and its continuation, and the clusters, once for the experiment and once a fold.
  once = CLIENTS * (2 + 1) + CLIENTS * 1
  assert validated.done.trained == (FOLDS + 1) * once
  again = WholeRun(CONFIG, validated.folder.root)
  assert (again.done.trained, again.results.digest) == (0, validated.results.digest)


def test_folds_of_a_data_file(tmp_path):
  rng = np.random.default_rng(0)
  y = np.arange(120) % 3
  x = (np.eye(3)[y] * 3 + rng.normal(size=(120, 3))).astype(np.float32)
  np.savez(tmp_path / 'own.npz', x=x, y=y)
  data = DataConfig(dataset='file', data_file=str(tmp_path / 'own.npz'), num_clients=CLIENTS, partition='iid')
  config = dataclasses.replace(CONFIG, data=data, evaluation=EvaluationConfig(num_folds=2))
  assert WholeRun(config, tmp_path / 'run').results.cross_validation.folds == 2
  assert WholeRun(config, tmp_path / 'run').done.trained == 0
