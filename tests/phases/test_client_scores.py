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
IDS = tuple(f'c{k}' for k in range(CLIENTS))
PAIRS = ClusterAssignment.from_clusters([[IDS[k], IDS[(k + 1) % CLIENTS]] for k in range(CLIENTS)], IDS)
OWN, BLENDED = own_rule.own(PAIRS.membership), blended_clusters(CLIENTS)
MODELS = [np.arange(10.0, 10.0 + CLIENTS, dtype=np.float32)[:, None]]


def scores(rights, wrong):
  """Returns the scores of rows of one class, of which some were taken for another."""
  counts = [[[right + wrong, 0], [right, wrong], [right, 0]] for right in rights]
  return class_counts.Scores(np.array(counts, np.int64), np.ones(len(counts)))


class Trainer:
  """Predicts right as many rows as a model's only weight says, and notes what it measured."""

  def __init__(self, stop_after=None):
    self.measured, self._stop_after = [], stop_after

  def measure_each(self, models, split, users):
    rights = []
    for ((weight,),), clients in zip(models, users, strict=True):
      if len(self.measured) == self._stop_after:
        raise KeyboardInterrupt
      self.measured.append(float(weight))
      rights += [round(float(weight)) + int(k) for k in clients]
    return scores(rights, 1)

  def measure_global(self, weights):
    self.measured.append(float(weights[0][0]))
    return scores([round(float(weights[0][0]))], 5)


@pytest.fixture
def experiment(tmp_path):
  digests = [f'd{k}' for k in range(CLIENTS)]
  return types.SimpleNamespace(
    population=types.SimpleNamespace(
      num_clients=CLIENTS, test=None, client_digests=digests, global_test_digest='g'
    ),
    model_settings={'engine': 1, 'packages': {}, 'architecture': ''},
    trainer=Trainer(),
    store=artifacts.Store(tmp_path / 'store'),
    digest_of=lambda weights: f'{float(weights[0][0]):.6f}'.replace('.', ''),
  )


def test_portions_change_no_number(experiment, monkeypatch):
  def found():
    return (
      evaluation.evaluation(experiment, MODELS, OWN),
      evaluation.cluster_scores(experiment, PAIRS, MODELS, BLENDED),
    )

  whole = found()
  assert not list(experiment.store.root.glob('client_scores-*')), 'nothing is kept of what is one portion'
  monkeypatch.setattr(client_scores, 'PORTION', 4)
  monkeypatch.setattr(client_scores, '_BYTES', 9)
  assert found() == whole
  kept = [a.content for a in experiment.store.artifacts() if a.kind == 'client_scores']
  assert kept == ['models scored: 9'] * 3


def test_a_stopped_measurement_goes_on_with_its_portion_and_other_models_are_measured_anew(
  experiment, monkeypatch
):
  monkeypatch.setattr(client_scores, 'PORTION', 4)
  whole = evaluation.evaluation(experiment, MODELS, OWN)
  everything = experiment.trainer.measured
  other = evaluation.evaluation(experiment, [MODELS[0] + 1], OWN)
  assert other.client_accuracy != whole.client_accuracy and len(everything) == 2 * CLIENTS
  for path in experiment.store.root.glob('client_scores-*/*.npz'):
    path.unlink()
  experiment.trainer = Trainer(stop_after=6)
  with pytest.raises(KeyboardInterrupt):
    evaluation.evaluation(experiment, MODELS, OWN)
  experiment.trainer = Trainer()
  assert evaluation.evaluation(experiment, MODELS, OWN) == whole
  assert experiment.trainer.measured == everything[4:CLIENTS]
