"""Phase 3: every number again in plain Keras and NumPy, from the exported models."""

import dataclasses
import shutil

import numpy as np
import pytest
import scipy.special
from sklearn import metrics

from tests.phases import alternating_run
from tests.phases.conftest import CLIENTS, CONFIG, LABELS, PHASE1, PHASE2
from tests.phases.whole_run import WholeRun, accuracy
from tests.programs.children import no_report, run_here
from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import MixingRule
from tff_cluster.aggregation.rules import fedex
from tff_cluster.experiment import phase_files
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

MODELS = [(label, name) for label in LABELS for name in ('own', 'average', 'weighted', 'blended')]


def shares_of(run, label, name):
  """Returns float64[models, clients], from the papers' words (Rohith et al. 2020, sections 5.2.4 and 6.3)."""
  member = run.membership(label)
  models = len(member)
  if name == 'average':
    return np.full((models, CLIENTS), 1 / models)
  if name == 'weighted':
    best = np.array(run.clustering(label).best_validation)
    return np.repeat((best / best.sum())[:, None], CLIENTS, axis=1)
  blend = np.eye(models) if name == 'own' else (np.eye(models) + np.full((models, models), 1 / models)) / 2
  return blend @ (member / member.sum(axis=0))


def predict(run, label, shares, x):
  """Returns the logits of the mean of a clustering's models with these shares, float[models]."""
  mixed = [
    np.tensordot(shares, np.stack(arrays).astype(np.float64), 1).astype(np.float32)
    for arrays in zip(*run.models[label], strict=True)
  ]
  return run.predict(mixed, x).astype(np.float64)


def check_metrics(found, true, predicted):
  assert found.accuracy == pytest.approx(metrics.accuracy_score(true, predicted), abs=1e-12)
  for score, function in ((found.precision, metrics.precision_score), (found.recall, metrics.recall_score)):
    assert score == pytest.approx(function(true, predicted, average='macro', zero_division=0))


@pytest.mark.parametrize(('label', 'name'), MODELS)
def test_evaluations_are_what_keras_measures(label, name, planted):
  found, shares = planted.clustering(label).evaluations[name], shares_of(planted, label, name)
  np.testing.assert_allclose(np.broadcast_to(np.array(found.mixing), shares.shape), shares, atol=1e-12)
  rows = [planted.population.test.client(k) for k in range(CLIENTS)]
  predicted = [predict(planted, label, shares[:, k], x).argmax(axis=1) for k, (x, _) in enumerate(rows)]
  each = [float(np.mean(y == those)) for (_, y), those in zip(rows, predicted, strict=True)]
  assert found.client_accuracy == each
  assert found.clients.mean_client_accuracy == pytest.approx(np.mean(each))
  assert found.clients.highest_client_accuracy == max(each)
  assert found.clients.share_at_highest == each.count(max(each)) / CLIENTS
  check_metrics(found.clients, np.concatenate([y for _, y in rows]), np.concatenate(predicted))
  if (shares != shares[:, :1]).any():
    assert found.global_test is None  # There is no one model for everybody.
    return
  x, true = planted.population.global_test_x, planted.population.global_test_y
  logits = predict(planted, label, shares[:, 0], x)
  check_metrics(found.global_test, true, logits.argmax(axis=1))
  loss = -scipy.special.log_softmax(logits, axis=1)[np.arange(len(true)), true]
  assert found.global_test.loss == pytest.approx(loss.mean(), rel=1e-4)


def test_overlapping_clusters_are_chosen_by_the_models_that_clients_use(planted, with_new):
  for run, label in ((planted, 'dynamic_distance'), (with_new, 'wide')):
    assert list(run.results.validation) == [c.label for c in run.results.clusterings if c.overlapping]
    found, member = run.results.validation[label], run.membership(label)
    rounds, accuracies = (run.clustering(label).equal_cost.round, PHASE1 + PHASE2), []
    assert PHASE1 < rounds[0] < rounds[1]
    for number in rounds:
      arrays = [np.stack(each) for each in zip(*alternating_run.models(run, label, number), strict=True)]
      own = [[np.tensordot(shares / shares.sum(), each, 1) for each in arrays] for shares in member.T]
      right = [accuracy(model, run.population.validation, k) for k, model in enumerate(own)]
      accuracies.append(np.mean(right))
    assert [found.at_equal_cost, found.at_end] == pytest.approx(accuracies)
    assert accuracies[0] != accuracies[1]  # Else it would not be seen which round it is.


@pytest.mark.parametrize('label', LABELS)
def test_cluster_scores_are_of_each_clusters_model_on_its_members_and_on_the_global_test_set(label, planted):
  found, member = planted.clustering(label).cluster_scores, planted.membership(label)
  population, models = planted.population, len(member)
  for kind, blend in (('unblended', np.eye(models)), ('blended', (np.eye(models) + 1 / models) / 2)):
    for row in range(models):
      rows = [population.test.client(k) for k in np.flatnonzero(member[row])]
      x, y = (np.concatenate(column) for column in zip(*rows, strict=True))
      right = predict(planted, label, blend[:, row], x).argmax(axis=1) == y
      assert found[kind].members[row] == right.mean()
      right = predict(planted, label, blend[:, row], population.global_test_x).argmax(axis=1)
      assert found[kind].global_test[row] == np.mean(right == population.global_test_y)


def test_experts_are_the_cluster_models_and_rules_are_the_rules(planted):
  clustering, labels = planted.clustering('dynamic_distance'), planted.population.global_test_y
  found, each = clustering.experts, np.eye(clustering.num_clusters)
  logits = [predict(planted, clustering.label, shares, planted.population.global_test_x) for shares in each]
  outputs = scipy.special.softmax(np.stack(logits), axis=2)
  assert found.num_experts == clustering.num_clusters > 2 and found.num_samples == len(labels)
  np.testing.assert_allclose(
    found.expert_accuracy, (outputs.argmax(axis=2) == labels).mean(axis=1), atol=1e-9
  )
  np.testing.assert_allclose(found.expert_accuracy, clustering.cluster_scores['unblended'].global_test)
  true = outputs[:, np.arange(len(labels)), labels]
  np.testing.assert_allclose(found.expert_loss, -np.log(np.maximum(true, 1e-7)).mean(axis=1), rtol=1e-4)
  twice = -scipy.special.log_softmax(outputs, axis=2)[:, np.arange(len(labels)), labels].mean(axis=1)
  np.testing.assert_allclose(found.expert_loss_twice, twice, rtol=1e-4)
  predictions, weights = fedex.fedex(outputs)
  # A sample or two may be a tie within float32.
  assert found.accuracy['fedex'] == pytest.approx(np.mean(predictions == labels), abs=3 / len(labels))
  np.testing.assert_allclose(found.weights, weights, atol=5e-3)
  rules = {'fedex', 'mean', 'vote', 'confidence', 'oracle', 'gate'}
  assert found.accuracy.keys() == found.agreement.keys() == rules
  assert found.accuracy['oracle'] >= max(found.expert_accuracy)


def test_an_expert_alone_is_every_rule(planted):
  everybody = planted.clustering('everybody')
  found, alone = everybody.experts, everybody.cluster_scores['unblended'].global_test[0]
  for rule in ('fedex', 'mean', 'vote', 'confidence', 'oracle'):
    assert found.accuracy[rule] == pytest.approx(found.expert_accuracy[0]) == pytest.approx(alone)
  assert found.order_sensitivity.changed == 0.0


def test_what_a_rule_makes_of_disjoint_clusters_is_measured_once(planted, monkeypatch):
  from tff_cluster.federated import trainer
  from tff_cluster.phases import phase3

  measured, measure_each = [], trainer.Trainer.measure_each

  def counting(self, models, split, users):
    measured.extend((tuple(map(bytes, map(np.ascontiguousarray, model))), tuple(some)) for model, some in zip(models, users, strict=True))  # fmt: skip
    return measure_each(self, models, split, users)

  monkeypatch.setattr(trainer.Trainer, 'measure_each', counting)
  with planted.opened() as experiment:
    path = experiment.folder.phase3('kmeans')
    before = path.read_bytes()
    path.unlink()
    phase3.run_phase3(experiment, 'kmeans')
    again = phase_files.Phase3.from_json(files.load_json(path))
    path.write_bytes(before)
  assert again.evaluations == phase_files.Phase3.from_json(files.load_json(path)).evaluations
  assert measured and len(measured) == len(set(measured))


def test_a_rule_that_comes_to_a_finished_run_is_measured_without_training(planted, tmp_path, monkeypatch):
  def with_size(membership):
    return membership.sum(axis=1, keepdims=True) / membership.sum()

  blend = rules.RULES['blended'].of_clusters
  rule = MixingRule(name='with_size', words='by size', function=with_size, position=1, of_clusters=blend)
  before = next(iter(rules.RULES))
  found = {before: rules.RULES[before], rule.name: rule} | rules.RULES
  folder = RunFolder(shutil.copytree(planted.folder.root, tmp_path / 'run'))
  monkeypatch.setattr(rules, '_found', lambda: found)

  def results(phase):
    with no_report():
      assert run_here(f'phases.{phase}', f'--output_dir={folder.root}') == 0
    return results_lib.read(folder.results)

  assert results('report').digest == planted.results.digest
  assert results('phase3').digest == planted.results.digest != results('report').digest
  again = WholeRun(CONFIG, folder.root, export_models=True)
  assert again.done.asked == again.done.trained == 0
  for known in planted.results.clusterings:
    clustering = again.clustering(known.label)
    assert list(clustering.evaluations)[:2] == [before, rule.name]
    sizes = np.array([len(members) for members in clustering.clusters])
    mixing = np.array(clustering.evaluations[rule.name].mixing)
    np.testing.assert_allclose(mixing[:, 0], sizes / sizes.sum())
    assert clustering.cluster_scores[rule.name] == clustering.cluster_scores['blended']
    for name in ('evaluations', 'cluster_scores'):
      others = {key: value for key, value in getattr(clustering, name).items() if key != rule.name}
      assert others == getattr(known, name)
    assert (
      dataclasses.replace(clustering, evaluations=known.evaluations, cluster_scores=known.cluster_scores)
      == known
    )
  # What came has gone again: its numbers stay, under its name.
  monkeypatch.undo()
  assert results_lib.rule_words(again.results)[rule.name] == rule.name
  found = WholeRun(CONFIG, folder.root, export_models=True)
  assert found.results.digest == again.results.digest


def test_a_rule_that_comes_makes_models_again_that_are_gone(planted, tmp_path, monkeypatch):
  folder = RunFolder(shutil.copytree(planted.folder.root, tmp_path / 'run'))
  for trajectory in folder.store.glob('fedavg-*'):
    shutil.rmtree(trajectory)
  average = dataclasses.replace(rules.RULES['average'], name='another', roles=frozenset())
  found = {**rules.RULES, average.name: average}
  monkeypatch.setattr(rules, '_found', lambda: found)
  again = WholeRun(CONFIG, folder.root, export_models=True)
  assert again.done.trained > 0
  for clustering in again.results.clusterings:
    assert clustering.evaluations['another'] == clustering.evaluations['average']
