"""Rules of Phase 3 that --aggregation names, in whole runs: NumPy on the exported models is the oracle."""

import dataclasses
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.conftest import make_population
from tests.made_up import linear_model
from tests.phases.conftest import PLAIN
from tests.phases.whole_run import WholeRun
from tests.programs.children import no_report, run_here
from tff_cluster.aggregation.rules import own as own_rule
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.config import EvaluationConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import failures, rule_evaluation
from tff_cluster.storage import files as files_lib
from tff_cluster.studies import single_run

pytestmark = pytest.mark.tensorflow

LABEL = 'dynamic_distance'
CODE = '''
import numpy as np

GIVEN = {}
FAILS_ON = ''

def of_a_user(membership):
  """by number of members"""
  if FAILS_ON == membership.shape[0]:
    raise ValueError('out of luck')
  sizes = membership.sum(axis=1, keepdims=True)
  return sizes / sizes.sum()

def best(validation_accuracy, validation_loss, validation_rows, train_rows):
  """the cluster model that is best on validation rows"""
  GIVEN.setdefault('mixing', []).append([validation_accuracy, validation_loss, validation_rows, train_rows])
  return np.eye(len(validation_accuracy))[validation_accuracy.argmax(axis=0)].T

def among_own(probabilities, own_clusters, validation_probabilities, validation_labels):
  """mean over own clusters"""
  GIVEN.setdefault('rows', []).append([probabilities, own_clusters, validation_probabilities, validation_labels])
  return probabilities[own_clusters].mean(axis=0).argmax(axis=1)
'''
ADDED = ('rules_of_a_user:of_a_user', 'rules_of_a_user:best', 'rules_of_a_user:among_own', 'mean')
CONFIG = dataclasses.replace(
  PLAIN, clusterings=PLAIN.clusterings[:2], evaluation=EvaluationConfig(aggregation=ADDED)
)
NONE = dataclasses.replace(CONFIG, evaluation=EvaluationConfig())


@pytest.fixture(scope='module')
def my_rules(tmp_path_factory):
  folder = tmp_path_factory.mktemp('code')
  (folder / 'rules_of_a_user.py').write_text(CODE)
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(folder)
    yield __import__('rules_of_a_user')
  del sys.modules['rules_of_a_user']


@pytest.fixture(scope='module')
def done(planted, my_rules, tmp_path_factory):
  folder = tmp_path_factory.mktemp('rules')
  store = shutil.copytree(planted.folder.store, folder / 'store')
  return WholeRun(CONFIG, folder / 'run', store_dir=str(store), export_models=True)


@pytest.fixture(scope='module')
def models(done):
  """float64[clusters, features] of the linear models of LABEL."""
  return np.array([linear_model.flat(weights) for weights in done.models[LABEL]])


def probabilities(models, x):
  """float64[models, rows, classes]."""
  return np.array([linear_model.probabilities(weights, x) for weights in models])


def test_a_mixing_rule_makes_the_model_of_its_matrix_and_a_built_in_rule_of_predictions_takes_their_mean(
  done, models
):
  member, population = done.membership(LABEL), done.population
  # Overlapping clusters, which tell rules apart.
  assert len(member) > 2 and len(set(member.sum(axis=1))) > 1 and (member.sum(axis=0) > 1).any()
  shares = member.sum(axis=1) / member.sum()
  evaluations = done.clustering(LABEL).evaluations
  np.testing.assert_allclose(np.array(evaluations['of_a_user'].mixing)[:, 0], shares)

  def right(output, x, y):
    """The accuracy, but for a row or two that may be ties in float32."""
    return pytest.approx((output(x).argmax(axis=1) == y).mean(), abs=1.01 / len(y))

  outputs = {
    'of_a_user': lambda x: linear_model.logits(shares @ models, x),
    'mean': lambda x: probabilities(models, x).mean(axis=0),
  }
  for name, output in outputs.items():
    for client, accuracy in enumerate(evaluations[name].client_accuracy):
      assert accuracy == right(output, *population.test.client(client))
    everybody = right(output, population.global_test_x, population.global_test_y)
    assert evaluations[name].global_test.accuracy == everybody


def test_a_mixing_rule_sees_validation_rows(done, models, my_rules):
  best, population = done.clustering(LABEL).evaluations['best'], done.population
  accuracy, loss, validation_rows, train_rows = next(
    given for given in my_rules.GIVEN['mixing'] if len(given[0]) == len(models)
  )
  np.testing.assert_array_equal(validation_rows, population.validation.counts)
  np.testing.assert_array_equal(train_rows, population.train.counts)
  for client in range(population.num_clients):
    x, y = population.validation.client(client)
    shares = probabilities(models, x)
    expected = (shares.argmax(axis=2) == y).mean(axis=1)
    np.testing.assert_allclose(accuracy[:, client], expected, atol=1.01 / len(y))
    expected = -np.log(shares[:, np.arange(len(y)), y]).mean(axis=1)
    np.testing.assert_allclose(loss[:, client], expected, rtol=1e-3)
  np.testing.assert_array_equal(best.mixing, np.eye(len(models))[accuracy.argmax(axis=0)].T)
  assert best.global_test is None


def test_a_rule_of_predictions_sees_rows_of_each_client_and_no_test_labels(done, models, my_rules):
  found, population = done.clustering(LABEL).evaluations['among_own'], done.population
  calls = [given for given in my_rules.GIVEN['rows'] if len(given[0]) == len(models)]
  assert len(calls) == population.num_clients
  for client, (shares, own, seen, labels) in enumerate(calls):
    x, y = population.validation.client(client)
    np.testing.assert_array_equal(own, done.membership(LABEL)[:, client] > 0)
    np.testing.assert_allclose(shares, probabilities(models, population.test.client(client)[0]), atol=1e-5)
    np.testing.assert_allclose(seen, probabilities(models, x), atol=1e-5)
    np.testing.assert_array_equal(labels, y)
    predictions = shares[own].mean(axis=0).argmax(axis=1)
    assert found.client_accuracy[client] == (predictions == population.test.client(client)[1]).mean()
  assert found.global_test is None and found.clients.loss is None and found.mixing is None
  assert found.clients.mean_client_accuracy == pytest.approx(np.mean(found.client_accuracy))


def test_they_stand_beside_the_built_in_ones_and_join_a_finished_run_whose_models_have_been_pruned(
  my_rules, done, tmp_path
):
  assert [(r.name, r.kind) for r in done.results.rules] == [
    ('of_a_user', 'mixing'), ('best', 'mixing'), ('among_own', 'prediction'), ('mean', 'prediction'),
  ]  # fmt: skip
  store = shutil.copytree(done.folder.store, tmp_path / 'store')

  def run(config):
    return WholeRun(config, tmp_path / 'run', store_dir=str(store), export_models=True)

  plain = run(NONE).results
  for clustering in plain.clusterings:
    other = done.clustering(clustering.label)
    names = [*clustering.evaluations, 'of_a_user', 'best', 'among_own', 'mean']
    assert list(other.evaluations) == names
    shared = {name: other.evaluations[name] for name in clustering.evaluations}
    assert clustering == dataclasses.replace(other, evaluations=shared)
  for trajectory in store.glob('fedavg-*'):
    shutil.rmtree(trajectory)
  joined = run(CONFIG)
  assert joined.done.trained > 0 and joined.results.digest == done.results.digest != plain.digest
  calls = len(my_rules.GIVEN['mixing'])
  # As with clusterings: those there stay.
  assert run(NONE).results.digest == joined.results.digest and len(my_rules.GIVEN['mixing']) == calls


def test_phases_alone_measure_them_too(my_rules, done, tmp_path, capsys):
  some = dataclasses.replace(CONFIG, evaluation=EvaluationConfig(aggregation=ADDED[:1]))
  folder = WholeRun(some, tmp_path / 'run', store_dir=done.store).folder
  files_lib.save_json(folder.config, CONFIG.to_json())

  def run(phase):
    with no_report():
      return run_here(f'phases.{phase}', f'--output_dir={folder.root}')

  assert run('report') == 2
  words = 'has not measured --aggregation=rules_of_a_user:best on kmeans yet: run python -m phases.phase3'
  assert words in capsys.readouterr().err
  assert run('phase3') == run('report') == 0
  assert results_lib.read(folder.results).digest == done.results.digest


def test_a_rule_that_fails_leaves_the_run_and_all_else_is_finished(my_rules, done, tmp_path, monkeypatch):
  folder = RunFolder(tmp_path / 'run')
  # The second clustering.
  monkeypatch.setattr(my_rules, 'FAILS_ON', done.clustering(LABEL).num_clusters)
  words = r'^aggregation=rules_of_a_user:of_a_user failed: ValueError: out of luck\. What failed is not in the run any more'
  with no_report(), pytest.raises(failures.ClusteringsFailed, match=words) as caught:
    single_run.run_experiment(CONFIG, folder.root, store_dir=done.store, report=True)
  assert caught.value.report is not None
  results = results_lib.read(folder.results)
  assert [rule.name for rule in results.rules] == ['best', 'among_own', 'mean']
  assert folder.load_config().evaluation.aggregation == ADDED[1:]
  assert all('of_a_user' not in c.evaluations and 'best' in c.evaluations for c in results.clusterings)
  monkeypatch.setattr(my_rules, 'FAILS_ON', '')
  mended = WholeRun(CONFIG, folder.root, store_dir=done.store)
  assert mended.done.trained == 0
  assert all(mended.clustering(c.label) == c for c in done.results.clusterings)


def test_a_rule_whose_code_was_changed_is_measured_anew(my_rules, done, tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setattr(sys, 'dont_write_bytecode', True)
  config = dataclasses.replace(CONFIG, evaluation=EvaluationConfig(aggregation=('changing:same',)))
  for code, built_in in (
    ('membership / membership.sum(axis=0)', 'own'),
    ('0 * membership + 1 / len(membership)', 'average'),
  ):
    (tmp_path / 'changing.py').write_text(f'def same(membership):\n  return {code}\n')
    found = WholeRun(config, tmp_path / 'run', store_dir=done.store).clustering(LABEL).evaluations
    assert found['same'].client_accuracy == found[built_in].client_accuracy
    del sys.modules['changing']
  assert found['own'].client_accuracy != found['average'].client_accuracy


def test_soft_members_are_members_and_their_shares_stand_beside():
  shares = np.array([[0.9, 0.5, 0.0], [0.1, 0.5, 1.0]])
  soft = ClusterAssignment((shares > 0).astype(float), ('a', 'b', 'c'), shares)
  experiment = SimpleNamespace(population=make_population(clients=3))
  found = rule_evaluation.ClusterModels(experiment, soft, [(np.zeros(2),)] * 2, [0.5, 0.5]).evidence
  np.testing.assert_array_equal(found.membership, [[1, 1, 0], [1, 1, 1]])
  np.testing.assert_array_equal(own_rule.RULE.mixing(found), shares)
