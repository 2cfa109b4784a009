"""A Keras model taken apart: its graph with given tensors where Keras would make variables.

TFF's `functional_model_from_keras` does the same by the same means (a copy of the model whose variables are
intercepted while it is made), but it gives weights in the order in which a copy makes them, which need not be Keras's
own, and it wraps the graph in a tf.function, inside which TensorFlow does not find a pooling layer's gradient.
"""

from collections.abc import Sequence
from typing import Protocol

import tensorflow as tf

from tff_cluster.base.errors import InputError


class KerasGraph:
  """Builds a Keras model's graph, in the graph that is being built, as often as asked.

  Attributes:
    keras_model: The model.
  """

  def __init__(self, keras_model: tf.keras.Model):
    """Takes a model as models.build.build returns it.

    Args:
      keras_model: The model. It must be one that Keras can copy: Sequential or functional, its layers such that their
        `get_config` tells all there is to know.

    Raises:
      InputError: if it trains other than by its loss (regularizers, constraints), or cannot be copied.
    """
    self.keras_model = keras_model
    _refuse_beside_loss(keras_model)
    self._order = _order_of_making(keras_model)

  @property
  def draws(self) -> bool:
    """Whether the model draws while it trains (dropout)."""
    return bool(_dropouts(self.keras_model))

  def outputs(self, weights: Sequence[tf.Tensor], x: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
    """Returns what the model gives for a batch while it trains, [batch, classes].

    Args:
      weights: Trainable weights, in the order of keras_model.trainable_weights.
      x: float32 [batch, ...].
      seed: int32[2], which all that a model draws follows from; None for one that draws: as it is measured, without dropout.

    Raises:
      InputError: if an operation of it does not compute right in the worker.
    """
    waiting = [weights[i] for i in self._order]
    # Making a model builds its graph once. In a graph of its own, which is thrown away: a loop (of a recurrent layer) that
    # nobody feeds would be run, and fail.
    aside = tf.__internal__.FuncGraph('making')
    with aside.as_default(), tf.variable_creator_scope(lambda _, **options: waiting.pop(0)):
      copy = tf.keras.models.clone_model(self.keras_model)
    for layer in copy._flatten_layers():
      # Written out instead of FusedBatchNorm: see graph_operations.
      if isinstance(layer, tf.keras.layers.LayerNormalization):
        layer._fused = False
    if seed is not None:
      draw_from(copy, seed)
    return copy(x, training=seed is not None or not self.draws)


class _Draws:
  """Stands in for the random generator of a dropout layer: what it gives depends on the seed and on how often it was asked."""

  def __init__(self, seed: tf.Tensor):
    self._seed, self._asked = seed, 0

  def dropout(self, inputs: tf.Tensor, rate: float, noise_shape: tf.Tensor | None = None) -> tf.Tensor:
    seed = tf.random.experimental.stateless_fold_in(self._seed, self._asked)
    self._asked += 1
    return tf.nn.experimental.stateless_dropout(inputs, rate, seed, 'philox', noise_shape)


def draw_from(keras_model: tf.keras.Model, seed: tf.Tensor) -> None:
  """Has the dropout layers of a model draw from a seed, int32[2], each in its own way, for one call of the model."""
  for place, layer in enumerate(_dropouts(keras_model)):
    layer._random_generator = _Draws(tf.random.experimental.stateless_fold_in(seed, place))


def _dropouts(keras_model: tf.keras.Model) -> list[tf.keras.layers.Layer]:
  """Returns the layers that drop something; attention, for instance, has one that need not."""
  layers = keras_model._flatten_layers()
  return [layer for layer in layers if isinstance(layer, tf.keras.layers.Dropout) and layer.rate != 0]


def _refuse_beside_loss(keras_model: tf.keras.Model) -> None:
  """Raises InputError where Keras's own training would do more than follow the gradient of the loss."""
  found = [layer.name for layer in keras_model._flatten_layers(include_self=False) if layer.losses]
  found += [
    layer.name
    for layer in keras_model._flatten_layers()
    if getattr(layer, 'activity_regularizer', None) is not None
  ]
  if found or keras_model.losses:
    raise InputError(
      f'the Keras model adds losses of its own ({found[0] if found else keras_model.name}: a regularizer, or add_loss), '
      'which clients would not train by; leave them out'
    )
  constrained = [w.name for w in keras_model.trainable_weights if getattr(w, 'constraint', None) is not None]
  if constrained:
    raise InputError(
      f'the Keras model has a constraint on {constrained[0]}; clients would not keep it, so leave it out'
    )


class _Maker(Protocol):
  """What makes a variable of Keras's options."""

  def __call__(self, **options: object) -> tf.Variable: ...


def _order_of_making(keras_model: tf.keras.Model) -> list[int]:
  """Returns, for each variable that a copy of the model makes, its place in keras_model.trainable_weights."""
  made: list[tf.Variable] = []

  def record(make: _Maker, **options: object) -> tf.Variable:
    made.append(make(**options))
    return made[-1]

  with tf.Graph().as_default(), tf.variable_creator_scope(record):
    weights = tf.keras.models.clone_model(keras_model).trainable_weights
    places = {id(weight): place for place, weight in enumerate(weights)}
    if [w.shape for w in weights] != [w.shape for w in keras_model.trainable_weights]:
      raise InputError(
        'a copy of the Keras model has other weights than the model: layers that share variables without being one '
        'layer, or whose get_config does not tell all; use the same layer twice instead, or complete get_config'
      )
    if sorted(places.get(id(variable), -1) for variable in made) != list(range(len(made))) or not made:
      raise InputError(
        f'the Keras model makes {len(made)} variables and has {len(weights)} trainable weights; all that it makes must '
        'be trainable weights, and there must be one'
      )
  return [places[id(variable)] for variable in made]
