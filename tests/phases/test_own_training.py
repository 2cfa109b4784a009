"""Clients that train their own models on after Phase 2, against SGD in NumPy and against FedSoft's own round."""

import dataclasses

import numpy as np
import pytest

from tests.made_up.refusals import refused
from tests.phases.conftest import PLAIN
from tests.phases.whole_run import WholeRun, accuracy, changed, estimated, sgd
from tff_cluster.clustering import trained
from tff_cluster.clustering.alternating import Model
from tff_cluster.experiment.config import ClusteringConfig, EvaluationConfig
from tff_cluster.phases import federation, rule_evaluation

pytestmark = pytest.mark.tensorflow

MOST, LAMBDA = 5, 0.7
PERSONALIZED = f'fine_tuned,rounds=1,least_rounds=1,proximal_mu={LAMBDA},name=personalized'
# On few rows each, so that more rounds are not always better.
CONFIG = changed(
  PLAIN,
  {'rows_per_client': 24, 'validation_fraction': 0.3},
  {'phase1_rounds': 2, 'phase2_rounds': 3, 'learning_rate': 0.3},
  clusterings=(
    ClusteringConfig('dynamic_distance', distance_threshold='quantile:0.5'),
    ClusteringConfig('fedsoft', num_clusters=2, attraction=LAMBDA),
    ClusteringConfig('fedem', num_clusters=2),
  ),
  evaluation=EvaluationConfig(aggregation=(f'fine_tuned,rounds={MOST}', PERSONALIZED)),
)


@pytest.fixture(scope='module')
def done(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('trained on') / 'run', export_models=True)


def starts(run, label):
  """Returns each client's own model: the mean of those of its clusters."""
  clustering, member = run.clustering(label), run.membership(label)
  shares = np.array(clustering.shares) if clustering.shares else member / member.sum(axis=0)
  return [
    [np.tensordot(column, np.stack(a), 1) for a in zip(*run.models[label], strict=True)]
    for column in shares.T
  ]


def test_it_is_sgd_from_the_own_model_and_stops_where_validation_rows_are_best(done):
  label, population = 'dynamic_distance', done.population
  assert (done.membership(label).sum(axis=0) > 1).any()
  last, found = CONFIG.training.last_round, done.clustering(label).evaluations['fine_tuned']
  models = [starts(done, label)]
  for number in range(last + 1, last + MOST + 1):
    models.append([sgd(done, model, client, number) for client, model in enumerate(models[-1])])
  best = np.mean(
    [[accuracy(m, population.validation, k) for k, m in enumerate(own)] for own in models], axis=1
  )
  chosen = next(e for e in range(MOST + 1) if best[e] >= best.max() - 1e-12)
  # Neither end, where the choice would show nothing.
  assert 0 < chosen < MOST and found.own_rounds == chosen
  expected = [accuracy(model, population.test, k) for k, model in enumerate(models[chosen])]
  np.testing.assert_allclose(found.client_accuracy, expected)
  assert found.global_test is None and found.mixing is None
  assert found.clients.mean_client_accuracy == pytest.approx(np.mean(expected))


def test_fedsofts_personalized_models_are_what_its_clients_train_next(done):
  label, number = 'fedsoft', CONFIG.training.last_round + 1
  with done.opened() as experiment:
    models = rule_evaluation.of_phase2(experiment, label)
    clients, shares = federation.Clients(experiment, 0), models.assignment.own
    sent = trained.train(
      clients, number, [Model(w) for w in models.models], shares, experiment.everyone, models.models, LAMBDA
    )
    test, expected = experiment.population.test, []
    for client, update in enumerate(sent.updates):
      flat = sent.starts[sent.start_of[client]] + update
      weights = experiment.unflatten(flat)
      expected += experiment.trainer.measure(weights, test, [client]).client_accuracy.tolist()
  evaluations = done.clustering(label).evaluations
  assert evaluations['personalized'].client_accuracy == expected
  assert evaluations['personalized'].own_rounds == 1
  assert evaluations['personalized'].client_accuracy != evaluations['own'].client_accuracy


def test_clients_that_join_predictions_have_no_model_to_train_on(done):
  assert not {'fine_tuned', 'personalized'} & set(done.clustering('fedem').evaluations)
  alone = dataclasses.replace(CONFIG, clusterings=CONFIG.clusterings[2:])
  words = f'aggregation=fine_tuned,rounds={MOST} needs a clustering whose clients have a model of their own to go on training'
  refused(alone.validated, (words,))


def test_an_estimate_knows_it_before_and_after(done, tmp_path):
  clients = CONFIG.data.num_clients
  # Of two clusterings.
  trained_on = 2 * (MOST + 1) * clients
  without = dataclasses.replace(CONFIG, evaluation=EvaluationConfig())
  plain, _ = estimated(without, tmp_path / 'plain')
  assert estimated(CONFIG, tmp_path / 'new') == (plain + trained_on, 0)
  asked, stored = estimated(CONFIG, done.folder.root)
  assert asked == stored
  assert asked - estimated(without, done.folder.root)[0] == trained_on
