"""This suite: rounds as the programs of phases/ run them, through Trainer.round."""

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import turns
from tff_cluster.data import population as population_lib
from tff_cluster.engine import worker as worker_lib


def make_population(x: np.ndarray, y: np.ndarray) -> population_lib.Population:
  """Returns a population whose clients train on x uint8[clients, rows, ...] and y int32[clients, rows].

  Nothing is held out: the splits that a population has beside the training rows are one row a client.
  """
  clients, rows = y.shape
  whole = population_lib.Split(x.reshape(-1, *x.shape[2:]), y.ravel(), np.arange(clients + 1) * rows)
  one = population_lib.Split(np.ascontiguousarray(x[:, 0]), y[:, 0].copy(), np.arange(clients + 1))
  ids = tuple(f'c{k:04d}' for k in range(clients))
  return population_lib.Population('benchmark', ids, whole, one, one, x[0, :1], y[0, :1], 10)


def build_trainer(population: population_lib.Population, setting: Any) -> Any:
  """Returns a Trainer of the MNIST CNN.

  Args:
    population: The clients.
    setting: A common.Setting, or what has its batch_size, local_epochs, learning_rate and seed.
  """
  from tff_cluster.federated import client_work, optimizers, tff_computations, trainer
  from tff_cluster.models import build

  keras_model = build.build('mnist_cnn', population.input_shape, population.num_classes, setting.seed)
  model = client_work.model_from_keras(keras_model, population.train.x.dtype)
  computations = tff_computations.Computations(
    model, optimizers.Local(setting.learning_rate, setting.batch_size)
  )
  return trainer.Trainer(population, computations, setting.local_epochs, 1.0, setting.seed)


@contextlib.contextmanager
def opened(population: population_lib.Population, setting: Any) -> Iterator[Any]:
  """Yields a Trainer, connected to a worker of its own that ends with the block."""
  worker = worker_lib.start(os.cpu_count() or 1)
  from tff_cluster.engine import context

  with context.connected(worker):
    yield build_trainer(population, setting)


def main() -> None:
  conversation, flags = turns.Turns(), turns.arguments()
  with np.load(flags.rows_file) as rows:
    population = make_population(rows['x'], rows['y'])
  with opened(population, flags) as trainer:
    state = trainer.start(trainer.computations.model.weights)
    everyone, number = np.arange(population.num_clients), 0

    def run_round() -> float:
      nonlocal state, number
      start, number = time.perf_counter(), number + 1
      state, _ = trainer.round(state, everyone, number)
      trainer.weights(state)
      return time.perf_counter() - start

    def accuracy() -> float:
      scores = trainer.measure(trainer.weights(state), population.train, everyone)
      return scores.correct.sum() / scores.total.sum()

    conversation.ready(parameters=trainer.computations.model.num_parameters)
    conversation.serve(run_round, accuracy)


if __name__ == '__main__':
  main()
