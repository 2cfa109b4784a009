"""Clients at work for a method that alternates: what they did is counted as they did it."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.conftest import make_population
from tests.federated.small_trainer import make_trainer
from tff_cluster.base.errors import InputError
from tff_cluster.clustering.alternating import Model
from tff_cluster.phases import federation

pytestmark = pytest.mark.tensorflow


def clients_of(trainer):
  return federation.Clients(
    SimpleNamespace(
      trainer=trainer,
      population=trainer.population,
      everyone=np.arange(trainer.population.num_clients),
      config=SimpleNamespace(training=SimpleNamespace(seed=0)),
      each=lambda work, items: {item: work(item) for item in items},
    ),
    0,
  )


@pytest.mark.parametrize('joins', [True, False])
def test_clients_that_diverge_have_no_part_in_the_loss_of_a_round(joins, tff_context, monkeypatch):
  population = make_population(clients=4)
  first, last = population.train.offsets[1:3]
  population.train.x[first:last] *= 1e30
  trainer = make_trainer(population)
  monkeypatch.setattr(trainer, 'joins_rounds', lambda users: joins)
  clients, weights = clients_of(trainer), trainer.computations.model.weights

  def mean_loss(*users):
    clients.begin()
    clients.fed_avg(1, [Model(weights)] * len(users), [np.array(some) for some in users])
    return clients.loss_sum / clients.visited

  alone = mean_loss([0], [2, 3])
  # The second client diverges: of one model nothing is left, of another the clients beside it.
  assert mean_loss([0], [1], [2, 3]) == pytest.approx(alone, rel=1e-6)
  assert mean_loss([0, 1], [2, 3]) == pytest.approx(alone, rel=1e-6)
  assert clients.dropped == 1
  rows = population.train.counts[[0, 2, 3]].sum()
  assert clients.visited == rows * trainer.local_epochs


def test_a_training_that_diverges_is_refused_after_five_clients_and_single_clients_are_not(tff_context):
  population = make_population(clients=7)
  population.train.x[: population.train.offsets[6]] = np.inf
  trainer = make_trainer(population)
  clients, model = clients_of(trainer), Model(trainer.computations.model.weights)

  def rounds(*users):
    for number, some in enumerate(users, 1):
      clients.begin()
      clients.fed_avg(number, [model], [np.array(some)])
      clients.refuse_divergence(number)

  # The seventh is well.
  rounds([0], [1], [0, 1], [2, 3], [6], [4], [5], [2], [3, 6])
  with pytest.raises(InputError, match=r'^round 4: training diverged on every client'):
    rounds([0], [1], [0, 1], [2, 3, 4])
