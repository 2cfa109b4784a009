"""Models of many clusters are measured a portion at a time; what a stopped Phase 3 measured is not measured again."""

import types

import numpy as np
import pytest

from tff_cluster.aggregation.rules import own as own_rule
from tff_cluster.aggregation.rules.blended import blended_clusters
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.data import class_counts
from tff_cluster.phases import client_scores, evaluation
from tff_cluster.storage import artifacts

CLIENTS = 9


def _counts(right, wrong):
  """Returns Scores.counts of rows of one class, of which some were taken for another."""
  return [[right + wrong, 0], [right, wrong], [right, 0]]


class Trainer:
  """Predicts right as many rows as a model's only weight says, and notes what it measured."""

  stop_after = None

  def __init__(self):
    self.measured = []

  def measure_each(self, models, split, users):
    del split
    tables = []
    for model, clients in zip(models, users, strict=True):
      if len(self.measured) == self.stop_after:
        raise KeyboardInterrupt
      self.measured.append(float(model[0][0]))
      tables += [_counts(round(float(model[0][0])) + int(k), 1) for k in clients]
    return class_counts.Scores(np.array(tables, np.int64), np.ones(len(tables)))

  def measure_global(self, weights):
    self.measured.append(float(weights[0][0]))
    return class_counts.Scores(np.array([_counts(round(float(weights[0][0])), 5)]), np.ones(1))


@pytest.fixture
def experiment(tmp_path):
  population = types.SimpleNamespace(
    num_clients=CLIENTS,
    test=None,
    client_digests=[f'd{k}' for k in range(CLIENTS)],
    global_test_digest='g',
  )
  settings = {'engine': 1, 'packages': {}, 'architecture': ''}
  return types.SimpleNamespace(
    population=population,
    settings=settings,
    trainer=Trainer(),
    store=artifacts.Store(tmp_path / 'store'),
    digest_of=lambda weights: f'{float(weights[0][0]):.6f}'.replace('.', ''),
  )


@pytest.fixture
def assignment():
  ids = tuple(f'c{k}' for k in range(CLIENTS))
  pairs = [[ids[k], ids[(k + 1) % CLIENTS]] for k in range(CLIENTS)]
  return ClusterAssignment.from_clusters(pairs, ids)


def models(assignment):
  return [np.arange(10.0, 10.0 + assignment.num_clusters, dtype=np.float32)[:, None]]


def test_portions_change_no_number(experiment, assignment, monkeypatch):
  own, blended = own_rule.own(assignment.membership), blended_clusters(assignment.num_clusters)

  def found():
    return (
      evaluation.evaluation(experiment, models(assignment), own),
      evaluation.cluster_scores(experiment, assignment, models(assignment), blended),
    )

  whole = found()
  assert not list(experiment.store.root.glob('client_scores-*')), 'nothing is kept of what is one portion'
  monkeypatch.setattr(client_scores, 'PORTION', 4)
  monkeypatch.setattr(client_scores, '_BYTES', 9)
  assert found() == whole
  kept = [a.content for a in experiment.store.artifacts() if a.kind == 'client_scores']
  assert kept == ['models scored: 9'] * 3


def test_a_stopped_measurement_goes_on_with_the_portion_that_it_was_in(experiment, assignment, monkeypatch):
  monkeypatch.setattr(client_scores, 'PORTION', 4)
  own = own_rule.own(assignment.membership)
  whole = evaluation.evaluation(experiment, models(assignment), own)
  everything = experiment.trainer.measured
  for folder in experiment.store.root.glob('client_scores-*'):
    for path in folder.glob('*.npz'):
      path.unlink()
  experiment.trainer = Trainer()
  experiment.trainer.stop_after = 6
  with pytest.raises(KeyboardInterrupt):
    evaluation.evaluation(experiment, models(assignment), own)
  experiment.trainer = Trainer()
  assert evaluation.evaluation(experiment, models(assignment), own) == whole
  assert experiment.trainer.measured == everything[4:]


def test_other_models_or_users_are_measured_anew(experiment, assignment, monkeypatch):
  monkeypatch.setattr(client_scores, 'PORTION', 4)
  own = own_rule.own(assignment.membership)
  first = evaluation.evaluation(experiment, models(assignment), own)
  second = evaluation.evaluation(experiment, [models(assignment)[0] + 1], own)
  assert first.client_accuracy != second.client_accuracy
  assert len(experiment.trainer.measured) == 2 * CLIENTS
