"""Cross-validation as it is run: what the folds trained and measured on, and what their summary says."""

import collections
import dataclasses

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


@pytest.fixture(scope='module')
def validated(tmp_path_factory):
  """A run with its folds, on a data file whose rows are all different."""
  folder, rng = tmp_path_factory.mktemp('folds'), np.random.default_rng(0)
  y = np.arange(120) % 3
  np.savez(folder / 'own.npz', x=(np.eye(3)[y] + rng.normal(size=(120, 3))).astype(np.float32), y=y)
  config = ExperimentConfig(
    DataConfig(
      dataset='file',
      data_file=str(folder / 'own.npz'),
      num_clients=CLIENTS,
      rows_per_client=20,
      partition='iid',
    ),
    TrainingConfig(model='logistic', phase1_rounds=2, phase2_rounds=1, learning_rate=0.1),
    (ClusteringConfig('kmeans', num_clusters=2),),
    EvaluationConfig(num_folds=FOLDS, target_accuracy=0.9),
  )
  return WholeRun(config, folder / 'run', export_models=False)


@pytest.fixture(scope='module')
def folds(validated):
  """The folds' results and populations, by fold."""
  folders = [RunFolder(path) for path in sorted((validated.folder.root / 'folds').iterdir())]
  return [(results.read(each.results), saved.load_population(each.population)) for each in folders]


def rows(x, y):
  """A row is known by its bytes."""
  return collections.Counter((row.tobytes(), int(label)) for row, label in zip(x, y, strict=True))


def client_rows(population, clients, *splits):
  pairs = [getattr(population, split).client(k) for split in splits for k in clients]
  return sum((rows(*pair) for pair in pairs), collections.Counter())


def test_every_row_of_a_client_is_tested_on_in_exactly_one_fold(folds):
  for k in range(CLIENTS):
    everything, *others = (client_rows(population, [k], *SPLITS) for _, population in folds)
    assert others == [everything] * (FOLDS - 1)
    assert max(everything.values()) == 1
    tested = [client_rows(population, [k], 'test') for _, population in folds]
    assert sum(tested, collections.Counter()) == everything
    sizes = [each.total() for each in tested]
    assert max(sizes) - min(sizes) <= 1
  for _, population in folds:
    used = client_rows(population, range(CLIENTS), 'train', 'validation')
    assert not used & client_rows(population, range(CLIENTS), 'test')
    assert not used & rows(population.global_test_x, population.global_test_y)
    assert max(used.values()) == 1  # Nor is a row of two clients, or trained and validated on.


def test_folds_differ_in_data_only(validated, folds):
  config = validated.config
  without = dataclasses.replace(config, evaluation=dataclasses.replace(config.evaluation, num_folds=0))
  found = [fold for fold, _ in folds]
  assert [fold.config for fold in found] == FOLDS * [without]
  assert len({fold.population.digest for fold in found}) == len({fold.digest for fold in found}) == FOLDS


def test_the_summary_is_mean_students_interval_and_recall_over_the_folds(validated, folds):
  found = validated.results.cross_validation
  names = {f'kmeans/{name}' for name in ('own', 'average', 'weighted', 'blended')} | {'unclustered/baseline'}
  assert found.folds == FOLDS and found.evaluations.keys() == names
  for name, interval in found.evaluations.items():
    each = [fold.clusterings[0].evaluations.get(name.removeprefix('kmeans/')) for fold, _ in folds]
    if name == 'unclustered/baseline':
      each = [fold.baseline.evaluation for fold, _ in folds]
    values = [accuracy_of(evaluation) for evaluation in each]
    low, high = stats.t.interval(0.95, FOLDS - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (interval.mean, interval.low, interval.high) == pytest.approx((np.mean(values), low, high))
    assert interval.recall == pytest.approx(np.mean([evaluation.clients.recall for evaluation in each]))
  # Otherwise the intervals above would show nothing.
  assert len({accuracy_of(fold.baseline.evaluation) for fold, _ in folds}) > 1


def test_results_are_complete_their_digest_covers_the_folds_and_no_client_round_is_trained_twice(validated):
  assert results.read(validated.folder.results) == validated.results
  changed = validated.results.to_json()
  changed['cross_validation']['evaluations']['kmeans/own']['mean'] += 0.001
  assert results.digest_of(results.from_json(changed, 'changed')) != validated.results.digest
  # Phase 1 and its continuation, and the clusters, once for the experiment and once a fold.
  once = CLIENTS * (2 + 1) + CLIENTS * 1
  assert validated.done.trained == (FOLDS + 1) * once
  again = WholeRun(validated.config, validated.folder.root, export_models=False)
  assert (again.done.trained, again.results.digest) == (0, validated.results.digest)
