"""What one client does in a round: E epochs of mini-batch steps from the model that it receives (optimizers.Local).

A client's rows travel as arrays in a structure, not as a data set (fed_avg.build_fed_avg says why):

  {x: [rows, ...] (uint8, int8 or float32), y: int32[rows], order: int32[epochs, rows], scale: float32, weight: float32, last: bool}

`order[e]` is the order in which epoch e visits the rows. It is drawn outside, from the experiment's
seed, so that a round is the same bits wherever and beside whomever the client runs, and so that an
oracle in NumPy can follow it. Batches are sliced here: no dataset pipeline runs in the worker, which
is what makes small clients fast (see benchmarks/README.md).

`scale` is what the client multiplies its update with: 1 for an honest client, which changes no bit, anything else for
one that is malicious (data/malicious.py). `weight` is what its update counts in the mean; `last` says whether it is the last
client of its chunk (chunked_sum.py). Where the learning rate decays, `rate`, a float32, multiplies that of round 1, and a model
with dropout gets `seed`, an int32: what it draws in a step follows from [seed, number of the step]. What optimizers.Local asks
for beside that are `row_weights`, float32[rows], and `anchor`, arrays like the weights.
"""

import collections
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster.base import words
from tff_cluster.base.errors import InputError
from tff_cluster.base.types import Weights
from tff_cluster.federated import graph_operations, keras_graph, optimizers
from tff_cluster.models import build as models_build

# What a client counts while it trains: cross-entropy summed over the rows visited, these rows, and whether it was left out.
COUNTS = collections.OrderedDict(
  loss_sum=tf.TensorSpec([], tf.float32),
  rows=tf.TensorSpec([], tf.float32),
  dropped=tf.TensorSpec([], tf.int32),
)

# Weights of a model in a computation, in the order of Weights.
Tensors: TypeAlias = Sequence[tf.Tensor]
# What a client holds while it trains; see the module's docstring.
ClientData: TypeAlias = collections.OrderedDict[str, np.ndarray | Weights]
# update, weight, loss_sum, rows_visited and finite of build_client_update.
_Update: TypeAlias = tuple[Tensors, tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]


class Loss(Protocol):
  """See Model.loss."""

  def __call__(
    self, weights: Tensors, x: tf.Tensor, y: tf.Tensor, seed: tf.Tensor | None = None
  ) -> tuple[tf.Tensor, tf.Tensor]: ...


class ClientUpdate(Protocol):
  """See build_client_update."""

  def __call__(self, initial: Tensors, data: Mapping[str, tf.Tensor]) -> _Update: ...


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
  """A Keras model as functions of its weights.

  Attributes:
    weights: The seeded initial weights, float32 arrays, trainable ones only.
    loss: (weights, x float32 [batch, ...], y int32[batch], seed=None) -> per-example loss float32[batch] (`per_example_loss`)
      and predicted label int32[batch]. Of a model that draws: with dropout from the seed int32[2], or without.
    probabilities: (weights, x float32 [batch, ...]) -> float32[batch, classes].
    x_spec: The spec of a client's rows x: [None, ...].
    num_classes: Number of classes.
    graph: A digest of its operations; equal for equal models, whatever was built before.
    draws: Whether it draws while it trains (dropout).
  """

  weights: Weights
  loss: Loss
  probabilities: Callable[[Tensors, tf.Tensor], tf.Tensor]
  x_spec: tf.TensorSpec
  num_classes: int
  graph: str
  draws: bool

  @property
  def num_parameters(self) -> int:
    return sum(int(w.size) for w in self.weights)

  @property
  def num_bytes(self) -> int:
    """Bytes of the weights as sent once in one direction."""
    return sum(int(w.nbytes) for w in self.weights)

  @property
  def weights_type(self) -> tff.Type:
    return tff.types.tensorflow_to_type(tuple(tf.TensorSpec(w.shape, w.dtype) for w in self.weights))


def per_example_loss(
  y: tf.Tensor, outputs: tf.Tensor, probabilities: bool, double_softmax: bool
) -> tf.Tensor:
  """Returns the cross-entropy of each example in nats, float32[batch].

  Args:
    y: int32[batch].
    outputs: float32[batch, classes], of a model.
    probabilities: Whether the outputs are probabilities; else they are logits.
    double_softmax: Whether the probabilities are taken for logits, and so put through a softmax once more. Cross-entropy is then
      between log(e + classes - 1) - 1, where the model is sure and right, and log(e + classes - 1). The loss that the printed
      numbers of Miles et al. 2024 imply.
  """
  if double_softmax:
    # Keras would take the logits back that a softmax was made of.
    shares = outputs if probabilities else tf.nn.softmax(outputs)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(y, shares)
  return tf.keras.losses.sparse_categorical_crossentropy(y, outputs, from_logits=not probabilities)


def model_from_keras(
  keras_model: tf.keras.Model, x_dtype: np.dtype | type[np.number], double_softmax: bool = False
) -> Model:
  """Returns the model as functions of its weights.

  Args:
    keras_model: As models.build.build returns it.
    x_dtype: The dtype of the rows: uint8 rows are divided by 255, others taken as they are.
    double_softmax: See `per_example_loss`.

  Raises:
    InputError: if its weights are not float32, it cannot be taken apart (see keras_graph), draws random numbers or uses
      operations that compute wrong in a worker.
  """
  kinds = {weight.dtype.name for weight in keras_model.trainable_weights} - {'float32'}
  if kinds:
    raise InputError(f'the Keras model has {" and ".join(sorted(kinds))} weights; allowed: float32')
  if tf.as_dtype(x_dtype) == tf.uint8 and any(
    isinstance(layer, tf.keras.layers.Embedding) for layer in keras_model._flatten_layers()
  ):
    raise InputError(
      'the Keras model has an embedding, and the rows are bytes (uint8), which are divided by 255 before a model sees them; '
      'save x as int32'
    )
  probabilities = models_build.outputs_probabilities(keras_model)
  x_spec = tf.TensorSpec(keras_model.input_shape, tf.as_dtype(x_dtype))
  weights = tuple(np.asarray(w, np.float32) for w in keras_model.trainable_weights)
  try:
    whole = keras_graph.KerasGraph(keras_model)
  except InputError:
    raise
  except Exception as error:
    raise _unusable(error) from error
  # Our functions go without AutoGraph, and Keras would take that for the layers of users, too.
  autograph = tf.__internal__.autograph
  outputs_of = autograph.tf_convert(whole.outputs, autograph.control_status_ctx(), convert_by_default=False)

  def predict_probabilities(weights: Tensors, x: tf.Tensor) -> tf.Tensor:
    outputs = outputs_of(weights, x)
    return outputs if probabilities else tf.nn.softmax(outputs)

  def loss(
    weights: Tensors, x: tf.Tensor, y: tf.Tensor, seed: tf.Tensor | None = None
  ) -> tuple[tf.Tensor, tf.Tensor]:
    outputs = outputs_of(weights, x, seed)
    each = per_example_loss(y, outputs, probabilities, double_softmax)
    return each, tf.argmax(outputs, axis=1, output_type=tf.int32)

  with tf.Graph().as_default() as graph:
    try:
      loss(
        [tf.compat.v1.placeholder(tf.float32, w.shape) for w in weights],
        tf.zeros([1, *x_spec.shape[1:]]),
        tf.zeros([1], tf.int32),
        tf.zeros([2], tf.int32) if whole.draws else None,
      )
    except Exception as error:
      raise _unusable(error) from error
  graph_operations.refuse(graph, whole.draws)
  classes = int(keras_model.output_shape[-1])
  return Model(
    weights, loss, predict_probabilities, x_spec, classes, graph_operations.digest(graph), whole.draws
  )


def _unusable(error: Exception) -> InputError:
  return InputError(f'this Keras model cannot be taken apart: {words.last_line(error, type(error).__name__)}')


def scaled(x: tf.Tensor) -> tf.Tensor:
  """Returns rows as the model sees them: float32, uint8 divided by 255."""
  return tf.cast(x, tf.float32) / 255.0 if x.dtype == tf.uint8 else tf.cast(x, tf.float32)


def client_data_spec(model: Model, local: optimizers.Local) -> collections.OrderedDict[str, tf.TensorSpec]:
  """Returns the spec of ClientData."""
  spec = collections.OrderedDict(
    x=model.x_spec,
    y=tf.TensorSpec([None], tf.int32),
    order=tf.TensorSpec([None, None], tf.int32),
    scale=tf.TensorSpec([], tf.float32),
    weight=tf.TensorSpec([], tf.float32),
    last=tf.TensorSpec([], tf.bool),
  )
  if local.decays:
    spec['rate'] = tf.TensorSpec([], tf.float32)
  if model.draws:
    spec['seed'] = tf.TensorSpec([], tf.int32)
  if local.weighs_rows:
    spec['row_weights'] = tf.TensorSpec([None], tf.float32)
  if local.brings_anchor:
    spec['anchor'] = tuple(tf.TensorSpec(w.shape, w.dtype) for w in model.weights)
  return spec


def beside_rows(
  order: np.ndarray,
  scale: float | np.float32 = 1.0,
  weight: float = 1.0,
  last: bool = True,
  rate: float | None = None,
  seed: int | None = None,
  row_weights: np.ndarray | None = None,
  anchor: Weights | None = None,
) -> dict[str, np.ndarray | Weights]:
  """Returns what a client is sent beside its rows x and y; see the module's docstring."""
  return {
    'order': order.astype(np.int32),
    'scale': np.asarray(scale, np.float32),
    'weight': np.asarray(weight, np.float32),
    'last': np.asarray(last),
    **({} if rate is None else {'rate': np.asarray(rate, np.float32)}),
    **({} if seed is None else {'seed': np.asarray(seed, np.int32)}),
    **({} if row_weights is None else {'row_weights': np.asarray(row_weights, np.float32)}),
    **({} if anchor is None else {'anchor': tuple(anchor)}),
  }


def build_client_update(model: Model, local: optimizers.Local) -> ClientUpdate:
  """Returns a tf.function (weights, client data) -> (update, weight, loss_sum, rows_visited, finite).

  update: float32 arrays like the weights, initial minus trained (TFF's sign), times the client's scale; weight:
  float32, the client's own, or 0 with a zero update where training or
  scale made NaN or infinity of it; loss_sum float32 over the rows visited, without penalties.
  What local.proximal_mu pulls to is the anchor that the client brings, or the weights that it starts from.

  Args:
    model: The model.
    local: How clients train.
  """
  optimizer = local.build()

  # Without AutoGraph, which takes longer to translate these few functions than TensorFlow to trace them. A call, not
  # inlined: TensorFlow rewrites a function's operations to oneDNN's on their own, while inside a loop's graph it finds the
  # gradient of a pooling layer by luck only, and a round takes a quarter longer.
  @functools.partial(
    tf.function, autograph=False, reduce_retracing=True, experimental_attributes={'_noinline': True}
  )
  def one_batch(
    state: optimizers.State,
    weights: Tensors,
    x: tf.Tensor,
    y: tf.Tensor,
    row_weights: tf.Tensor | None,
    anchor: Tensors | None,
    seed: tf.Tensor | None,
  ) -> tuple[optimizers.State, Tensors, tf.Tensor]:
    with tf.GradientTape() as tape:
      tape.watch(weights)
      each, _ = model.loss(weights, scaled(x), y, seed)
      loss = tf.reduce_mean(each if row_weights is None else each * row_weights)
    gradients = tape.gradient(loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    state, weights = optimizer.next(state, weights, local.pulled(gradients, weights, anchor))
    return state, weights, tf.reduce_sum(each)

  @functools.partial(tf.function, autograph=False)
  def client_update(initial: Tensors, data: Mapping[str, tf.Tensor]) -> _Update:
    x, y, order = data['x'], data['y'], data['order']
    rows = tf.shape(y)[0]
    # No batch is larger than the client: a sum with a batch size of any number could leave int32.
    size = tf.maximum(rows, 1)
    if local.batch_size:
      size = tf.minimum(size, min(local.batch_size, tf.int32.max))
    batches = (rows + size - 1) // size
    steps = tf.shape(order)[0] * batches
    initial = tuple(initial)
    anchor = tuple(data['anchor'] if local.brings_anchor else initial) if local.proximal_mu else None
    state = optimizer.initialize(tuple(tf.TensorSpec(w.shape, w.dtype) for w in model.weights))
    if local.decays:
      state = optimizers.at_rate(optimizer, state, data['rate'])

    def one_step(
      step: tf.Tensor, state: optimizers.State, weights: Tensors, loss_sum: tf.Tensor
    ) -> tuple[tf.Tensor, optimizers.State, Tensors, tf.Tensor]:
      start = (step % batches) * size
      visit = order[step // batches, start : tf.minimum(start + size, rows)]
      seed = tf.stack([data['seed'], step]) if model.draws else None
      weighed = tf.gather(data['row_weights'], visit) if local.weighs_rows else None
      rows_of_batch = tf.gather(x, visit), tf.gather(y, visit), weighed
      state, weights, batch_loss = one_batch(state, weights, *rows_of_batch, anchor, seed)
      return step + 1, state, weights, loss_sum + batch_loss

    first = (tf.constant(0), state, initial, tf.constant(0.0))
    _, _, weights, loss_sum = tf.while_loop(lambda step, *_: step < steps, one_step, first)
    update = tuple((before - after) * data['scale'] for before, after in zip(initial, weights, strict=True))
    finite = tf.reduce_all(tf.stack([tf.reduce_all(tf.math.is_finite(u)) for u in update]))
    update = tuple(tf.where(finite, u, tf.zeros_like(u)) for u in update)
    weight = tf.where(finite, data['weight'], 0.0)
    loss_sum = tf.where(finite, loss_sum, 0.0)
    visited = tf.where(finite, tf.cast(tf.size(order), tf.float32), 0.0)
    return update, weight, loss_sum, visited, finite

  return client_update


def build_client_result(model: Model, local: optimizers.Local) -> tff.Computation:
  """Returns (weights, <x,y,...>) -> (<update=<update, last>, update_weight>, counts <loss_sum, rows, dropped>) of one client.

  Args:
    model: The model.
    local: How clients train.
  """
  update_fn = build_client_update(model, local)
  data_type = tff.types.tensorflow_to_type(client_data_spec(model, local))

  @tff.tensorflow.computation(model_weights_type(model), data_type)
  def client_result(weights, data):
    update, weight, loss_sum, visited, finite = update_fn(weights.trainable, data)
    sent = collections.OrderedDict(update=update, last=data['last'])
    counts = collections.OrderedDict(loss_sum=loss_sum, rows=visited, dropped=1 - tf.cast(finite, tf.int32))
    return tff.learning.templates.ClientResult(update=sent, update_weight=weight), counts

  return client_result


@tff.tensorflow.computation(tff.types.tensorflow_to_type(COUNTS))
def measurements(counts):
  """Returns <loss, rows, dropped> of counts that were added up over clients; loss is the mean over the rows visited."""
  return collections.OrderedDict(
    loss=counts['loss_sum'] / tf.maximum(counts['rows'], 1.0),
    rows=counts['rows'],
    dropped=counts['dropped'],
  )


def model_weights_type(model: Model) -> tff.Type:
  """Returns the type of the weights as TFF's learning processes have them."""
  return tff.types.tensorflow_to_type(
    tff.learning.models.ModelWeights(tuple(tf.TensorSpec(w.shape, w.dtype) for w in model.weights), ())
  )
