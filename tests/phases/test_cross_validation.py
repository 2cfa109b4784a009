"""Cross-validation as it is run: what the folds trained and measured on, and what their summary says."""

import dataclasses
import gc
import weakref

import numpy as np
import pytest
from scipy import stats

from tests.phases.conftest import TINY
from tests.phases.whole_run import WholeRun, accuracy_of
from tff_cluster.base.errors import InputError
from tff_cluster.data import populate, saved
from tff_cluster.experiment import results
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, EvaluationConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import cross_validation, fold_summary, main_job, run_experiment
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

FOLDS, CLIENTS = 3, 4


@pytest.fixture(scope='module')
def validated(tmp_path_factory):
  """A run with its folds, on a data file whose rows are all different."""
  folder, rng = tmp_path_factory.mktemp('folds'), np.random.default_rng(0)
  y = np.arange(120) % 3
  np.savez(folder / 'own.npz', x=(np.eye(3)[y] + rng.normal(size=(120, 3))).astype(np.float32), y=y)
  data = DataConfig(dataset='file', data_file=str(folder / 'own.npz'), num_clients=CLIENTS, partition='iid')
  evaluation = EvaluationConfig(num_folds=FOLDS, target_accuracy=0.9)
  config = dataclasses.replace(TINY, data=data, evaluation=evaluation)
  return WholeRun(config, folder / 'run')


@pytest.fixture(scope='module')
def folds(validated):
  """The folds' results and populations, by fold."""
  folders = [RunFolder(path) for path in sorted((validated.folder.root / 'folds').iterdir())]
  return [(results.read(each.results), saved.load_population(each.population)) for each in folders]


def test_folds_are_those_of_the_clients_and_differ_in_data_only(validated, folds):
  config = validated.config
  made = [populate.build_population(config.data, (number, FOLDS)).digest for number in range(FOLDS)]
  assert [population.digest for _, population in folds] == made and len(set(made)) == FOLDS
  without = dataclasses.replace(config, evaluation=dataclasses.replace(config.evaluation, num_folds=0))
  found = [fold for fold, _ in folds]
  assert [fold.population.digest for fold in found] == made
  assert [fold.config for fold in found] == FOLDS * [without]
  assert len({fold.digest for fold in found}) == FOLDS


def test_the_summary_is_mean_students_interval_precision_and_recall_over_the_folds(validated, folds):
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
    for metric in ('precision', 'recall'):
      expected = np.mean([getattr(evaluation.clients, metric) for evaluation in each])
      assert getattr(interval, metric) == pytest.approx(expected)
  # Otherwise the intervals above would show nothing.
  assert len({accuracy_of(fold.baseline.evaluation) for fold, _ in folds}) > 1


def test_results_are_complete_their_digest_covers_the_folds_and_no_client_round_is_trained_twice(validated):
  assert results.read(validated.folder.results) == validated.results
  changed = validated.results.to_json()
  changed['cross_validation']['evaluations']['kmeans/own']['mean'] += 0.001
  assert results.digest_of(results.from_json(changed, 'changed')) != validated.results.digest
  # Phase 1 and its continuation, and the clusters, once for the experiment and once a fold.
  once = CLIENTS * (1 + 1) + CLIENTS * 1
  assert validated.done.trained == (FOLDS + 1) * once
  timing = validated.results.timing
  assert [row.name for row in timing[-FOLDS:]] == [f'fold {number + 1}' for number in range(FOLDS)]
  assert [row.client_rounds_trained for row in timing[-FOLDS:]] == FOLDS * [once]
  assert sum(row.client_rounds_trained for row in timing) == validated.done.trained
  again = WholeRun(validated.config, validated.folder.root)
  assert (again.done.trained, again.results.digest) == (0, validated.results.digest)


def test_the_models_of_a_fold_are_out_of_memory_when_the_next_one_begins(validated):
  gc.disable()  # Python's own collection may come in time, or not for many folds.
  try:
    with validated.opened() as experiment:
      models = weakref.ref(experiment.exports)
    del experiment
    assert models() is not None
    with validated.opened():
      assert models() is None
  finally:
    gc.enable()


def test_folds_that_lack_a_clustering_of_the_run_are_not_done(validated):
  config, folder = validated.config, validated.folder
  more = dataclasses.replace(
    config, clusterings=(ClusteringConfig('kmeans', name='new'), *config.clusterings)
  )
  assert len(fold_summary.finished(folder, config)) == FOLDS and main_job.has_folds(folder, config)
  assert fold_summary.finished(folder, more) == [] and not main_job.has_folds(folder, more)


def test_what_the_folds_did_anew_without_a_failed_clustering_counts(tmp_path, monkeypatch):
  labels = ('first', 'second', 'third')
  config = dataclasses.replace(
    TINY,
    clusterings=tuple(ClusteringConfig('kmeans', name=label) for label in labels),
    evaluation=EvaluationConfig(num_folds=2),
  )
  # What each of the two folds asks for and trains, and what fails in it, in three passes.
  first, second = InputError('first'), InputError('second')
  script = [
    (10, 8, {}), (20, 16, {'first': first}), (1, 1, {'second': second}), (2, 1, {}), (0, 0, {}), (4, 3, {}),
  ]  # fmt: skip
  left = iter(script)
  seen = []

  def run(folder, config, *arguments, **named):
    seen.append([clustering.label for clustering in config.clusterings])
    return main_job.Done(None, *next(left))

  monkeypatch.setattr(main_job, 'run', run)
  folder = RunFolder(tmp_path)
  files.save_json(folder.environment, {})
  found = cross_validation.run(folder, config, run_experiment.Silent())
  assert found == (37, 29, {'first': first, 'second': second})
  assert seen == [[*labels], [*labels], [*labels[1:]], ['third'], ['third'], ['third']]
