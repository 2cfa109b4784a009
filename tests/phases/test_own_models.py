"""Clients that join the predictions of several models: their losses are of the kind that clients minimise."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special

from tests.conftest import make_population
from tff_cluster.phases import own_models

CLIENTS, CLASSES = 3, 4


@pytest.mark.parametrize('loss', ['cross_entropy', 'double_softmax'])
def test_the_loss_of_joined_predictions_is_the_one_that_was_asked_for(loss):
  population, rng = make_population(clients=CLIENTS, classes=CLASSES), np.random.default_rng(0)
  split, shares = population.test, rng.dirichlet(np.ones(2), CLIENTS).T
  of_models = special.softmax(3 * rng.normal(size=(2, len(split.y), CLASSES)), axis=2).astype(np.float32)
  experiment = SimpleNamespace(
    population=population,
    trainer=SimpleNamespace(predict=lambda model, x: of_models[model]),
    each=lambda work, items: {item: work(item) for item in items},
    config=SimpleNamespace(training=SimpleNamespace(loss=loss)),
  )
  found = own_models.joined(experiment, [0, 1], shares, split)
  expected, row = np.zeros(CLIENTS), 0
  for client, count in enumerate(split.counts):
    for _ in range(count):
      joined = sum(shares[k, client] * of_models[k, row].astype(np.float64) for k in range(2))
      outputs = special.softmax(joined) if loss == 'double_softmax' else joined
      expected[client] -= np.log(outputs[split.y[row]])
      row += 1
  np.testing.assert_allclose(found.loss_sum, expected, rtol=1e-9)
