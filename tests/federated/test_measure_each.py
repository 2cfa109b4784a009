"""Many models measured in one call give the bits of one call each."""

import numpy as np
import pytest

from tests.conftest import make_population
from tests.federated.test_training import make_trainer

pytestmark = pytest.mark.tensorflow


def test_models_that_travel_with_their_users_score_as_those_that_are_sent_once(tff_context, monkeypatch):
  from tff_cluster.federated import trainer as trainer_lib

  population = make_population()
  trainer = make_trainer(population)
  rng = np.random.default_rng(0)
  models = [
    tuple(rng.normal(size=w.shape).astype(np.float32) for w in trainer.computations.model.weights)
    for _ in range(4)
  ]
  users = [np.array([0, 2]), np.array([1]), np.array([4, 0, 3]), np.array([2])]
  calls = []
  each = trainer.computations.evaluate_each
  monkeypatch.setattr(
    trainer.computations, 'evaluate_each', lambda sent: calls.append(len(sent)) or each(sent)
  )
  together = trainer.measure_each(models, population.test, users)
  assert calls == [7]
  monkeypatch.setattr(trainer_lib, '_MODELS_AT_ONCE', 0)
  apart = trainer.measure_each(models, population.test, users)
  assert calls == [7]
  np.testing.assert_array_equal(together.counts, apart.counts)
  np.testing.assert_array_equal(together.loss_sum, apart.loss_sum)
  assert len({tuple(row.ravel()) for row in together.counts}) > 1
