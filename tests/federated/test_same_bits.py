"""A round has the same bits with any number of clients side by side, again, and in whatever order clients have their turn."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.conftest import make_population
from tff_cluster.data.population import Population, Split
from tff_cluster.models import build, builtin

pytestmark = pytest.mark.tensorflow

# The smallest images that each model takes and that leave its last layers more than one number.
SHAPES = {
  'logistic': (6,), '1nn': (4, 4, 1), '2nn': (4, 4, 1), 'mnist_cnn': (8, 8, 1), 'femnist_cnn': (16, 16, 1),
  'cifar_cnn': (18, 18, 3), 'char_cnn': (10,), 'char_rnn': (10,),
}  # fmt: skip
CLIENTS = 6
# The models that train in one call as well: dense layers, convolutions with pooling, recurrent ones.
JOINED = ('2nn', 'mnist_cnn', 'char_rnn')
ORDERS = {'ascending': [0, 1, 2, 3, 4, 5], 'shuffled': [4, 0, 5, 2, 1, 3]}
# How many train at a time, and in which orders.
RUNS = {1: ('ascending',), 5: ('ascending', 'shuffled')}


def as_codes(population: Population) -> Population:
  """Returns the population with the whole numbers nearest to its rows, from 0 to classes - 1, as codes of characters."""

  def codes(x: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(x), 0, population.num_classes - 1).astype(np.int8)

  splits = {name: getattr(population, name) for name in ('train', 'validation', 'test')}
  return dataclasses.replace(
    population,
    global_test_x=codes(population.global_test_x),
    **{name: Split(codes(split.x), split.y, split.offsets) for name, split in splits.items()},
  )


def make_trainer(model: str) -> Any:
  from tff_cluster.federated import client_work, optimizers, tff_computations, trainer

  # Clients of 11 to 26 rows: they end at different times, and their last batches have different sizes.
  population = make_population(clients=CLIENTS, rows=11, shape=SHAPES[model])
  if builtin.reads_text(model):
    population = as_codes(population)
  keras_model = build.build(model, population.input_shape, population.num_classes, 7)
  functions = client_work.model_from_keras(keras_model, population.train.x.dtype)
  computations = tff_computations.Computations(functions, optimizers.Local(0.05, 5))
  return trainer.Trainer(population, computations, 2, 1.0, 7)


def in_one_call_and_in_two(
  trainer: Any, first: Any, second: Any, clients: np.ndarray
) -> dict[str, np.ndarray]:
  """Trains two models on some of the clients each, in one call and in one each; returns their weights by name."""
  parts, found = ((first, clients[:4]), (second, clients[4:])), {}
  together = trainer.several_rounds(*zip(*parts, strict=True), 3)
  for (start, users), (after, _) in zip(parts, together, strict=True):
    alone, _ = trainer.round(start, users, 3)
    for name, one in (('in one call', after), ('in a call each', alone)):
      found[f'{len(users)} clients {name}'] = np.concatenate([w.ravel() for w in trainer.weights(one)])
  return found


def numbers_of(trainer: Any, order: list[int], joined: bool) -> dict[str, np.ndarray]:
  """Runs two rounds, and where `joined` two models side by side; then every client trains on its own and is measured, in this order.

  Returns:
    Everything that comes out, by name; rows are clients in ascending order.
  """
  first = state = trainer.start(trainer.computations.model.weights)
  found, everyone = {}, np.arange(CLIENTS)
  for number in (1, 2):
    state, figures = trainer.round(state, everyone, number)
    found[f'loss of round {number}'] = np.array(figures['train_loss'])
    for i, array in enumerate(trainer.weights(state)):
      found[f'weights {i} after round {number}'] = array
  found |= in_one_call_and_in_two(trainer, first, state, everyone) if joined else {}
  weights = trainer.weights(state)
  updates = np.zeros((CLIENTS, trainer.computations.model.num_parameters), np.float32)
  trainer.local_updates(weights, order, 3, lambda i, update: updates.__setitem__(order[i], update))
  measured = trainer.measure(weights, trainer.population.test, order)
  ascending = np.argsort(order)
  return found | {
    'updates': updates,
    'counts': measured.counts[ascending],
    'loss': measured.loss_sum[ascending],
  }


@pytest.fixture(scope='module')
def outcomes() -> dict[tuple[str, int, str], dict[str, np.ndarray]]:
  """Everything that comes out, by model, clients side by side and order."""
  from tff_cluster.engine import worker

  found = {}
  trainers = None
  for count, orders in RUNS.items():
    started = worker.start(count)
    from tff_cluster.engine import context

    with context.connected(started):
      trainers = trainers or {model: make_trainer(model) for model in builtin.MODELS}
      for model, trainer in trainers.items():
        for name in orders:
          found[model, count, name] = numbers_of(trainer, ORDERS[name], model in JOINED)
  return found


def differing(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> list[str]:
  """Returns the names of what has other bits; a 0 and a -0 differ, equal NaNs do not."""
  assert one.keys() == other.keys()
  return [name for name, array in one.items() if array.tobytes() != other[name].tobytes()]


@pytest.mark.parametrize('model', sorted(builtin.MODELS))
def test_any_number_of_clients_side_by_side_in_any_order_and_again(model, outcomes):
  alone = outcomes[model, 1, 'ascending']
  for key, found in outcomes.items():
    assert key[0] != model or differing(alone, found) == [], key


@pytest.mark.parametrize('model', JOINED)
def test_two_models_in_one_call_or_in_a_call_each(model, outcomes):
  found = outcomes[model, 5, 'ascending']
  for clients in (4, 2):
    together, alone = (found[f'{clients} clients in {calls}'] for calls in ('one call', 'a call each'))
    assert together.tobytes() == alone.tobytes()
  assert found['4 clients in one call'].tobytes() != found['2 clients in one call'].tobytes()


@pytest.mark.parametrize('model', sorted(builtin.MODELS))
def test_what_is_compared_is_a_training_that_would_show_a_difference(model, outcomes):
  found = outcomes[model, 1, 'ascending']
  moved = {
    name: np.nextafter(array, np.inf, dtype=array.dtype)
    for name, array in found.items()
    if array.dtype.kind == 'f'
  }
  assert differing(found, found | moved) == list(moved)
  updates = found['updates']
  assert np.isfinite(updates).all() and len(np.unique(updates, axis=0)) == CLIENTS
  # Most parameters learn: no layer is dead, so every kernel has a say in the bits.
  assert (updates != 0).any(axis=0).mean() > 0.5
  assert found['loss of round 2'] < found['loss of round 1']
