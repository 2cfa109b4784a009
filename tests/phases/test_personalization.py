"""Clients with models of their own beside FedAvg, against SGD written in NumPy; kept, gone on with, and apart from the server."""

import dataclasses

import numpy as np
import pytest

from tests.made_up.linear_model import flat
from tests.phases.conftest import CLIENTS, PLAIN
from tests.phases.whole_run import Stopped, WholeRun, accuracy, changed, estimated, opened, sgd
from tff_cluster.base.cost import Cost
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import EvaluationConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import own_training, personalization
from tff_cluster.storage import files, saved_rounds

pytestmark = pytest.mark.tensorflow

PHASE1, LAST, MOST, STRENGTH = 2, 5, 4, 0.7
ROUNDS = {'phase1_rounds': PHASE1, 'phase2_rounds': LAST - PHASE1}
# Half of the clients a round; on few rows each, so that more rounds are not always better.
CONFIG = changed(
  PLAIN,
  {'rows_per_client': 40, 'validation_fraction': 0.3},
  {**ROUNDS, 'cohort_fraction': 0.5, 'learning_rate': 0.3},
  clusterings=(),
  evaluation=EvaluationConfig(local_training=True, fine_tuning=MOST, ditto=STRENGTH),
)
SMALL = changed(
  CONFIG, {'num_clients': 4}, {'phase1_rounds': 1, 'phase2_rounds': 3},
  evaluation=EvaluationConfig(fine_tuning=4, ditto=STRENGTH),
)  # fmt: skip
# Everybody in every round.
WHOLE = changed(
  CONFIG,
  training={'cohort_fraction': 1.0},
  evaluation=EvaluationConfig(local_training=True, ditto=0.0),
)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('personalized') / 'run')


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  return WholeRun(WHOLE, tmp_path_factory.mktemp('whole') / 'run')


@pytest.fixture(scope='module')
def small(tmp_path_factory):
  return WholeRun(SMALL, tmp_path_factory.mktemp('small') / 'run')


def found(run, name):
  return next(each for each in run.results.personalized if each.name == name)


def model_of(run, saved, number):
  """Returns the weights after a round that a run keeps."""
  return saved_rounds.model(
    files.load_arrays(run.folder.store / saved.artifact / f'round_{number:05d}.npz'), 2
  )


def own_models(run, name, number):
  """Returns each client's weights after a round."""
  saved = run.folder.load_finished(run.folder.personalized(name), phase_files.OwnModels)
  return [model_of(run, each, number) for each in saved.trajectories]


def fedavg(run, number):
  """Returns FedAvg's weights after a round, from the round files that are left for Ditto."""
  if number == 0:
    with run.opened() as experiment:
      return experiment.trainer.computations.model.weights
  saved = run.folder.load_finished(run.folder.baseline, phase_files.Baseline)
  return model_of(run, saved.trajectory, number)


def assert_close(models, expected):
  for model, other in zip(models, expected, strict=True):
    np.testing.assert_allclose(flat(model), flat(other), atol=2e-5)


def test_fine_tuning_is_sgd_from_fedavgs_model_and_stops_where_validation_rows_are_best(finished):
  population, tuned = finished.population, found(finished, 'fine_tuning')
  models = [[fedavg(finished, LAST)] * CLIENTS]
  for number in range(LAST + 1, LAST + MOST + 1):
    models.append([sgd(finished, model, client, number) for client, model in enumerate(models[-1])])

  def accuracies(split):
    return np.array([[accuracy(model, split, k) for k, model in enumerate(own)] for own in models])

  validation, test = accuracies(population.validation), accuracies(population.test)
  np.testing.assert_allclose(tuned.history.validation_accuracy, validation.mean(axis=1))
  np.testing.assert_allclose(tuned.history.test_accuracy, test.mean(axis=1))
  assert tuned.history.rounds == list(range(LAST, LAST + MOST + 1))
  best = validation.mean(axis=1)
  chosen = next(e for e in range(MOST + 1) if best[e] >= best.max() - 1e-12)
  assert (
    0 < chosen < MOST and tuned.round == LAST + chosen
  )  # Neither end, where the choice would show nothing.
  assert f'{chosen} round' in tuned.model
  np.testing.assert_allclose(tuned.evaluation.client_accuracy, test[chosen])
  assert_close(own_models(finished, 'fine_tuning', tuned.round), models[chosen])


def test_fine_tuning_takes_no_round_where_none_is_better(finished, tmp_path):
  # A learning rate at which a round does harm: everybody's model is FedAvg's.
  config = changed(CONFIG, training={'learning_rate_decay': 0.01, 'learning_rate': 0.1})
  config = dataclasses.replace(config, evaluation=EvaluationConfig(fine_tuning=1))
  run = WholeRun(config, tmp_path / 'run')
  tuned = found(run, 'fine_tuning')
  # The rates of later rounds are next to nothing, so both rounds are as good; of equal ones the least.
  assert tuned.history.validation_accuracy[0] == tuned.history.validation_accuracy[1]
  assert tuned.round == LAST
  assert tuned.evaluation.client_accuracy == run.results.baseline.evaluation.client_accuracy


def test_ditto_is_algorithm_1_of_the_paper(finished):
  population, ditto = finished.population, found(finished, 'ditto')
  received = [fedavg(finished, number) for number in range(LAST)]
  own, test = [received[0]] * CLIENTS, []
  with finished.opened() as experiment:
    cohorts = [experiment.trainer.cohort(np.arange(CLIENTS), number + 1) for number in range(LAST)]
  for number, cohort in enumerate(cohorts):
    for client in cohort:
      own[client] = sgd(
        finished, own[client], client, number + 1, proximal_mu=STRENGTH, anchor=received[number]
      )
    test.append(np.mean([accuracy(model, population.test, k) for k, model in enumerate(own)]))
  assert_close(own_models(finished, 'ditto', LAST), own)
  np.testing.assert_allclose(ditto.history.test_accuracy, test)
  assert ditto.history.rounds == list(range(1, LAST + 1)) and ditto.round == LAST
  expected = [accuracy(model, population.test, k) for k, model in enumerate(own)]
  np.testing.assert_allclose(ditto.evaluation.client_accuracy, expected)
  trained = np.bincount(np.concatenate(cohorts), minlength=CLIENTS)
  # Who is not drawn keeps its model for a round, and who never is the initial one.
  assert len(set(trained)) > 2 and np.sum(trained == 0) == 1
  assert ditto.model.endswith('(the initial one of 1 client that was never drawn)')


def test_ditto_that_is_pulled_by_nothing_is_every_client_alone(whole):
  alone, ditto = (own_models(whole, name, LAST) for name in ('local', 'ditto'))
  for one, other in zip(alone, ditto, strict=True):
    assert all(map(np.array_equal, one, other))
  assert found(whole, 'ditto').evaluation == found(whole, 'local').evaluation
  assert found(whole, 'ditto').history == found(whole, 'local').history
  stores = [
    {each.artifact for each in saved}
    for saved in (whole.results.artifacts.personalized[name] for name in ('local', 'ditto'))
  ]
  assert stores[0].isdisjoint(stores[1])


def test_ditto_that_is_pulled_hard_is_one_step_away_from_what_it_received(whole):
  from tff_cluster.federated import trajectory

  rate = WHOLE.training.learning_rate
  with whole.opened() as experiment:
    pull = personalization.pull(experiment, 1 / rate)
    client = own_training.of_client(experiment, 3, pull=pull)
    (model,) = [trajectory.run(client, LAST).weights[LAST]]
    alone = own_models(whole, 'local', LAST)[3]
    received = pull.model(LAST - 1)
  x = whole.population.train.client(3)[0] / 255.0
  # v - rate * (g + (v - w) / rate) = w - rate * g, and a row's error has a norm of at most the root of 2.
  longest = np.sqrt(1 + np.square(x.reshape(len(x), -1)).sum(axis=1).max())

  def distance(one):
    return np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(one, received, strict=True)))

  assert 0 < distance(model) <= rate * np.sqrt(2) * longest
  assert distance(model) < distance(alone)


def test_costs_are_fedavgs_and_what_clients_train_for_themselves(finished):
  size, population = finished.results.training.model_bytes, finished.population
  rows, measured = population.train.counts, population.validation.counts.sum()
  with finished.opened() as experiment:
    cohorts = [experiment.trainer.cohort(np.arange(CLIENTS), number + 1) for number in range(LAST)]
  before, shared, everyone = sum(map(len, cohorts[:PHASE1])), sum(map(len, cohorts[PHASE1:])), rows.sum()

  def visited(some):
    return sum(rows[cohort].sum() for cohort in some) * CONFIG.training.local_epochs

  # Of all rounds, less what FedAvg costs in Phase 1.
  expected = {
    'local': (LAST * CLIENTS - before, -before, LAST * everyone - visited(cohorts[:PHASE1]), 0),
    'fine_tuning': (
      shared + MOST * CLIENTS,
      shared,
      visited(cohorts[PHASE1:]) + MOST * everyone,
      (MOST + 1) * measured,
    ),
    'ditto': (shared + before + shared, shared, visited(cohorts[PHASE1:]) + visited(cohorts), 0),
  }
  costs = {each.name: each.cost for each in finished.results.personalized}
  assert costs == {
    name: Cost(trained, sent, sent, sent * size, sent * size, int(visits), int(forward))
    for name, (trained, sent, visits, forward) in expected.items()
  }


def test_an_estimate_knows_them_before_and_after(finished, tmp_path):
  own = LAST * CLIENTS + MOST * CLIENTS + LAST * CLIENTS // 2
  expected = LAST * CLIENTS // 2 + own
  assert estimated(CONFIG, tmp_path / 'new') == (expected, 0)
  assert estimated(CONFIG, finished.folder.root) == (expected, expected)


@pytest.mark.parametrize(('name', 'after'), [('ditto', 4), ('fine_tuning', 5), ('fine_tuning', 20)])
def test_a_killed_run_goes_on_to_the_same_bits(small, tmp_path, monkeypatch, name, after):
  from tff_cluster.federated import trajectory

  train, calls = trajectory.Trajectory.round, []

  def stopping(asked, state, cohort, number):
    is_its = (asked.pull is not None) if name == 'ditto' else asked.start_round > 0
    calls.extend([number] * is_its)
    if is_its and len(calls) == after:
      raise Stopped
    return train(asked, state, cohort, number)

  # Four clients try four rounds each, and then train again up to the best one, which is neither the start nor the last one.
  own_rounds = found(small, 'fine_tuning').round - SMALL.training.last_round
  assert 0 < own_rounds < SMALL.evaluation.fine_tuning
  monkeypatch.setattr(trajectory.Trajectory, 'round', stopping)
  with pytest.raises(Stopped):
    WholeRun(SMALL, tmp_path / 'run')
  assert len(calls) >= after and not (tmp_path / 'run' / 'phase2' / f'{name}.json').exists()
  monkeypatch.undo()
  again = WholeRun(SMALL, tmp_path / 'run')
  assert again.results.digest == small.results.digest
  assert again.done.trained < small.done.trained
  assert WholeRun(SMALL, tmp_path / 'run').done.trained == 0


def test_models_of_fedavg_are_left_for_ditto_alone_and_made_again_for_it(small, tmp_path):
  run = WholeRun(dataclasses.replace(SMALL, evaluation=EvaluationConfig()), tmp_path / 'without')
  (kept,) = run.folder.store.glob('fedavg-*')
  assert sorted(path.name for path in kept.glob('*.npz')) == ['round_00001.npz', 'round_00004.npz']
  # On the same store FedAvg is trained again, because Ditto needs each of its models.
  later = WholeRun(SMALL, tmp_path / 'run', store_dir=run.store)
  assert later.results.digest == small.results.digest
  assert sorted(path.name for path in kept.glob('*.npz')) == [f'round_{n:05d}.npz' for n in (1, 2, 3, 4)]
  (kept / 'round_00002.npz').unlink()
  assert WholeRun(SMALL, tmp_path / 'run').done.trained == 0  # Ditto is done.
  later.folder.personalized('ditto').unlink()
  again = WholeRun(SMALL, tmp_path / 'run')
  assert again.results.digest == small.results.digest and again.done.trained > 0


def test_neither_server_nor_attack_has_a_part_in_what_clients_train_for_themselves(whole, tmp_path):
  from tff_cluster.federated import trajectory

  config = changed(
    WHOLE,
    {'malicious_clients': 0.3, 'attack': 'sign_flip', 'attack_scale': 2.0},
    {'server_optimizer': 'adam', 'server_learning_rate': 0.01, 'aggregator': 'robust'},
  )
  saved = whole.results.artifacts.personalized['local']
  with opened(RunFolder(tmp_path), config) as experiment:
    altered = [k for k in range(CLIENTS) if experiment.population.update_scale(k) != 1.0]
    honest = next(k for k in range(CLIENTS) if k not in altered)
    for client in (altered[0], honest):
      alone = own_training.of_client(experiment, client)
      model = trajectory.run(alone, LAST).weights[LAST]
      assert all(map(np.array_equal, model, own_models(whole, 'local', LAST)[client]))
      # Who is found in the store as itself must not be a client that alters what it sends.
      assert (alone.place.name == saved[client].artifact) == (client == honest)
