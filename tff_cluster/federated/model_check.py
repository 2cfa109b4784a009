"""Whether a model that somebody brings computes in the worker what Keras computes; asked once, before round 1.

Clients with a full batch of rows and with fewer make one step in the worker, in a worker without oneDNN, and by Keras and a
gradient tape in this process, on the model as its function made it. A single step, because rounding grows in a longer
training, which could diverge, too. What they do in several steps is compared bit for bit, alone and side by side.

Nobody wants to wait for that, so three workers of its own compute at the same time, and Keras meanwhile.
"""

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import ParamSpec, TypeVar

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster.base import words
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.engine import connection, one_machine
from tff_cluster.engine import machine as machine_lib
from tff_cluster.engine import worker as worker_lib
from tff_cluster.federated import client_work, keras_graph, optimizers, tff_computations
from tff_cluster.models import build as models_build

# Rows of a full batch.
MOST_ROWS = 32
# Large enough that rounding of the weights, from which a step is subtracted, does not drown it.
_LEARNING_RATE = 1 / 16
# Of what a model with dropout draws.
_SEED = 3
# Clients side by side, how many train, and how many steps of theirs: what they do to each other is seen only when it
# happens. Large models make fewer.
_SIDE_BY_SIDE = 4
_MOST_CLIENTS, _MOST_BYTES = 24, 64_000_000
_MOST_STEPS, _MOST_PARAMETERS = 8, 10_000_000
# Difference of a weight's update that is allowed, as a share of its length, and of the whole update's. Rounding gives
# 1e-6 to 1e-4, an activation within rounding of a kink less than 1e-2; a wrong operation more than 0.1. A weight whose
# gradient is zero (a bias before a normalization) has rounding alone for an update, hence the second.
_OF_WEIGHT, _OF_WHOLE = 1e-2, 1e-4
# Difference of a predicted probability that is allowed.
_OF_PROBABILITY = 1e-2


_Arguments = ParamSpec('_Arguments')
_T = TypeVar('_T')


@dataclasses.dataclass(frozen=True)
class _Numbers:
  """What a model gives, a row or an array for each client.

  Attributes:
    updates: float32[features] of one step.
    probabilities: float32[rows, classes] with the weights before it.
  """

  updates: list[np.ndarray]
  probabilities: list[np.ndarray]


class _Asked:
  """A worker of its own that computes what it is asked, one thing after the other, while this thread goes on."""

  def __init__(self, machine: machine_lib.Machine, clients_in_parallel: int, onednn: bool = True):
    """Starts it, without waiting until it serves; see worker.start."""
    self._which = 'the worker' if onednn else 'the worker without oneDNN'
    self._worker = worker_lib.start(clients_in_parallel, onednn=onednn)
    self._thread = futures.ThreadPoolExecutor(1, 'model_check')
    once = dataclasses.replace(machine, worker_retries=0)
    self._context = self._thread.submit(one_machine.LocalContext, self._worker, once)

  def ask(
    self, function: Callable[_Arguments, _T], *arguments: _Arguments.args, **named: _Arguments.kwargs
  ) -> futures.Future[_T]:
    """Returns what will be the function's result, computed in the worker.

    The future raises InputError where that fails, and EnvironmentFault where the worker does not come up.
    """

    def compute() -> _T:
      context = self._context.result()
      with tff.framework.get_context_stack().install(context):  # That of this thread.
        try:
          return function(*arguments, **named)
        except EnvironmentFault as fault:
          raise InputError(
            f'the Keras model fails in {self._which}, which {fault.__cause__ or fault}'
          ) from fault

    return self._thread.submit(compute)

  def close(self) -> None:
    """Ends the worker, whatever it does."""
    self._worker.stop()
    self._thread.shutdown(cancel_futures=True)
    if not self._context.cancelled() and self._context.exception() is None:
      self._context.result().close()


def check(
  make: Callable[[], tf.keras.Model],
  model: client_work.Model,
  x: np.ndarray,
  y: np.ndarray,
  double_softmax: bool = False,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
) -> None:
  """Compares a model's numbers in the worker with Keras's.

  Args:
    make: Makes the Keras model anew, with the same weights. (Taking a model apart changes the classes of Keras, until the
      next model is made.)
    model: The model as the worker is to get it.
    x: [rows, ...], at least one row as clients have them; the first MOST_ROWS are used.
    y: int32[rows].
    double_softmax: Which loss the model was made for; see client_work.per_example_loss.
    machine: How patient workers of this machine are.

  Raises:
    InputError: if they differ, with what differed.
    EnvironmentFault: if a worker does not come up.
  """
  most = min(len(y), MOST_ROWS)
  clients = [(x[:n], y[:n]) for n in sorted({most, 2 * most // 3, most // 3, 1} - {0})]
  step, steps, beside = _jobs(model, clients)
  computations = tff_computations.Computations(model, optimizers.Local(_LEARNING_RATE, MOST_ROWS))
  with contextlib.ExitStack() as open_workers:
    # All of Keras stays in this thread, and the workers come up while it is at work.
    together, alone, plain = (
      open_workers.enter_context(contextlib.closing(_Asked(machine, parallel, onednn)))
      for parallel, onednn in ((_SIDE_BY_SIDE, True), (1, True), (1, False))
    )
    _trace(computations, make, clients, double_softmax)
    beside_updates = together.ask(_updates, computations, beside)
    alone_updates = alone.ask(_updates, computations, [*step, *steps])
    plain_updates = plain.ask(_updates, computations, step)
    predicted = alone.ask(
      computations.predict, list(model.weights), [collections.OrderedDict(x=x) for x, _ in clients]
    )
    keras_model = make()
    names = [weight.name for weight in keras_model.trainable_weights]
    expected = _by_keras(keras_model, clients, double_softmax)
    updates = alone_updates.result()
    found = _Numbers(updates[: len(step)], [np.asarray(each) for each in predicted.result()])
    _compare_side_by_side(beside_updates.result(), updates[len(step) :])
    _compare_probabilities(found, expected)
    _compare_updates(found.updates, expected.updates, 'Keras', model, names)
    _compare_updates(found.updates, plain_updates.result(), 'a worker without oneDNN', model, names)


def _jobs(
  model: client_work.Model, clients: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[list[client_work.ClientData], list[client_work.ClientData], list[client_work.ClientData]]:
  """Returns what clients hold that make one step, the same with several steps, and these again and again."""
  number = min(_MOST_STEPS, max(_MOST_PARAMETERS // model.num_parameters, 4))
  seed = _SEED if model.draws else None
  step = [_work(*client, 1, seed) for client in clients]
  steps = [_work(*client, number, seed) for client in clients]
  total = min(_MOST_CLIENTS, max(_MOST_BYTES // model.num_bytes, 2 * len(clients)))
  return step, steps, [steps[i % len(steps)] for i in range(total)]


def _trace(
  computations: tff_computations.Computations,
  make: Callable[[], tf.keras.Model],
  clients: Sequence[tuple[np.ndarray, np.ndarray]],
  double_softmax: bool,
) -> None:
  """Builds the computations, and compiles once what several workers get. Raises InputError where that fails."""
  try:
    connection.compiled(computations.local_updates)
    _ = computations.predict
  except Exception as error:
    _by_keras(make(), clients, double_softmax)  # It says better what is wrong.
    raise InputError(
      f'this Keras model cannot be trained: {type(error).__name__}: {words.first_line(error, "no message")}'
    ) from error


def _by_keras(
  keras_model: tf.keras.Model, clients: Sequence[tuple[np.ndarray, np.ndarray]], double_softmax: bool
) -> _Numbers:
  """Returns what Keras gives, in this process. Raises InputError where it fails."""
  probabilities = models_build.outputs_probabilities(keras_model)
  cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(
    from_logits=double_softmax or not probabilities
  )
  weights = keras_model.trainable_variables
  updates, predicted = [], []
  for x, y in clients:
    rows = client_work.scaled(tf.constant(x))
    try:
      keras_graph.draw_from(keras_model, tf.constant([_SEED, 0]))
      with tf.GradientTape() as tape:
        outputs = keras_model(rows, training=True)
        if double_softmax:  # Behind an identity Keras does not know what the probabilities were made of.
          outputs = tf.identity(outputs) if probabilities else tf.nn.softmax(outputs)
        loss = cross_entropy(y, outputs)
      gradients = tape.gradient(loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
      outputs = keras_model(rows, training=False)
    except Exception as error:
      raise InputError(
        f'the Keras model fails on the first {len(y)} training rows: {type(error).__name__}: {words.first_line(error, "no message")}'
      ) from error
    if keras_model.losses:
      raise InputError(
        'the Keras model adds losses of its own (add_loss), which clients would not train by; leave them out'
      )
    updates.append(np.concatenate([_stepped(w.numpy(), g) for w, g in zip(weights, gradients, strict=True)]))
    predicted.append(np.asarray(outputs if probabilities else tf.nn.softmax(outputs)))
    if not probabilities and _are_probabilities(np.asarray(outputs)):
      raise InputError(
        'the Keras model gives probabilities, and its last layer is no softmax, so they would be taken for logits; let it '
        'end in keras.layers.Softmax(), or in no softmax at all'
      )
  return _Numbers(updates, predicted)


def _stepped(weight: np.ndarray, gradient: tf.Tensor | tf.IndexedSlices) -> np.ndarray:
  """Returns what a step changes of a weight, with the rounding of the weight."""
  step = np.asarray(tf.convert_to_tensor(gradient)) * np.float32(_LEARNING_RATE)
  return np.ravel((weight - step) - weight)


def _are_probabilities(outputs: np.ndarray) -> bool:
  """Tells whether every row is a distribution over classes that is not the only one there is."""
  return bool(outputs.shape[1] > 1 and (outputs >= 0).all() and np.abs(outputs.sum(axis=1) - 1).max() < 1e-3)


def _updates(
  computations: tff_computations.Computations, work: Sequence[client_work.ClientData]
) -> list[np.ndarray]:
  return [
    np.asarray(update) for update in computations.local_updates(list(computations.model.weights), list(work))
  ]


def _work(x: np.ndarray, y: np.ndarray, steps: int, seed: int | None) -> client_work.ClientData:
  """Returns what a client holds that visits its rows in their order, all in a step."""
  order = np.tile(np.arange(len(y), dtype=np.int32), (steps, 1))
  return collections.OrderedDict(x=x, y=y, **client_work.beside_rows(order, seed=seed))


def _compare_side_by_side(beside: Sequence[np.ndarray], alone: Sequence[np.ndarray]) -> None:
  """Raises InputError where clients that train at the same time, again and again the same, give other bits than each alone."""
  total = len(beside)
  wrong = sum(update.tobytes() != alone[i % len(alone)].tobytes() for i, update in enumerate(beside))
  if wrong:
    raise InputError(
      f'the Keras model is not computed alike twice: of {total} clients side by side {wrong} got other bits than alone; an '
      'operation of it is not fit for clients that train at the same time'
    )


def _compare_updates(
  updates: Sequence[np.ndarray],
  others: Sequence[np.ndarray],
  whose: str,
  model: client_work.Model,
  names: Sequence[str],
) -> None:
  """Raises InputError where updates differ by more than rounding; what is finite in neither is left to the training."""
  for update, other in zip(updates, others, strict=True):
    if not (np.isfinite(other).all() or np.isfinite(update).all()):
      continue
    for name, difference in _differences(update, other, model, names):
      if not np.isfinite(difference):
        raise InputError(
          f'the Keras model trains otherwise in the worker than by {whose}: the update of {name} is finite in one of them only; '
          'values of the rows that are far from 1 can do this'
        )
      if difference > 1:
        raise InputError(
          f'the Keras model trains otherwise in the worker than by {whose}: the update of {name} differs by '
          f'{difference * _OF_WEIGHT:.2g} of its length, allowed is {_OF_WEIGHT:g}'
        )


def _compare_probabilities(found: _Numbers, expected: _Numbers) -> None:
  """Raises InputError where predictions differ by more than rounding."""
  for predicted, other in zip(found.probabilities, expected.probabilities, strict=True):
    difference = float(np.abs(predicted - other).max())
    if np.isfinite(other).all() and not difference <= _OF_PROBABILITY:
      raise InputError(
        f'the Keras model predicts otherwise in the worker than by Keras: a probability differs by {difference:.2g}, '
        f'allowed is {_OF_PROBABILITY:g} (a layer that does something else while it trains?)'
      )


def _differences(
  update: np.ndarray, other: np.ndarray, model: client_work.Model, names: Sequence[str]
) -> Iterator[tuple[str, float]]:
  """Yields each weight's name, and how its updates differ as a share of what is allowed."""
  # Squares of what they hold can be too large for float32.
  update, other = update.astype(np.float64), other.astype(np.float64)
  ends = np.cumsum([weight.size for weight in model.weights])
  floor = _OF_WHOLE * np.linalg.norm(other)
  for name, one, two in zip(names, np.split(update, ends[:-1]), np.split(other, ends[:-1]), strict=True):
    allowed = _OF_WEIGHT * np.linalg.norm(two) + floor
    with np.errstate(invalid='ignore'):  # Infinity less infinity.
      difference = np.linalg.norm(one - two)
    yield name, float(difference / allowed) if difference else 0.0
