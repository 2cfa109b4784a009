"""Trainers of a linear model on a small population, and their trajectories."""

import dataclasses
import functools

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.models import build
from tff_cluster.storage import artifacts

RATE, BATCH, EPOCHS, SEED = 0.3, 5, 2, 11
SETTINGS = {'learning_rate': 0.3, 'seed': 11}
EVERYBODY = np.arange(4)


class Stopped(Exception):
  pass


def visit_orders(population, client, round_number, epochs=EPOCHS, seed=SEED):
  rng = seeding.generator(seed, 'visit order', round_number, population.client_ids[client])
  return [rng.permutation(population.train.counts[client]) for _ in range(epochs)]


def model_of(population):
  return _model(population.input_shape, population.num_classes, population.train.x.dtype)


# To build and compile computations takes seconds, to run them milliseconds: those of equal settings are built once a session.
@functools.cache
def _model(input_shape, classes, dtype):
  from tff_cluster.federated import client_work

  return client_work.model_from_keras(build.build('logistic', input_shape, classes, SEED), dtype)


@functools.cache
def computations_of(model, local, server, aggregator):
  from tff_cluster.federated import aggregators, tff_computations

  return tff_computations.Computations(model, local, server, aggregators.build(aggregator))


def make_trainer(
  population,
  cohort_fraction=1.0,
  batch=BATCH,
  rate=RATE,
  epochs=EPOCHS,
  aggregator='mean',
  server=None,
  **local,
):
  from tff_cluster.federated import optimizers, trainer

  computations = computations_of(
    model_of(population),
    optimizers.Local(rate, batch, **local),
    optimizers.Server(**(server or {})),
    aggregator,
  )
  return trainer.Trainer(population, computations, epochs, cohort_fraction, SEED)


def with_aggregator(trainer, name):
  from tff_cluster.federated import optimizers

  local = optimizers.Local(RATE, BATCH)
  trainer.computations = computations_of(trainer.computations.model, local, optimizers.MEAN, name)
  return trainer


def go(
  trainer,
  folder,
  last,
  keep=(),
  members=EVERYBODY,
  settings=SETTINGS,
  start=None,
  start_round=0,
  stop_at=None,
  stop=None,
  leave=(),
):
  """Returns the outcome and the rounds that were told, in order."""
  from tff_cluster.federated import trajectory

  told = []

  def on_round(number, figures):
    told.append((number, figures))
    if number == stop_at:
      raise Stopped

  start = trainer.computations.model.weights if start is None else start
  asked = trajectory.Trajectory(
    trainer, artifacts.Store(folder), settings, np.asarray(members), start, start_round
  )
  outcome = trajectory.run(asked, last, keep, on_round, stop, leave)
  return outcome, told


def assert_same_models(models, others, rounds):
  for number in rounds:
    for one, two in zip(models[number], others[number], strict=True):
      np.testing.assert_array_equal(one, two, err_msg=f'round {number}')


def assert_same(outcome, other, rounds):
  """Asserts that the first `rounds` rounds of two outcomes are the same bits."""
  for field in dataclasses.fields(outcome.history):
    one, two = (getattr(o.history, field.name)[:rounds] for o in (outcome, other))
    assert len(one) == rounds, field.name
    np.testing.assert_array_equal(one, two, err_msg=field.name)
  assert_same_models(outcome.weights, other.weights, outcome.weights.keys() & other.weights.keys())
