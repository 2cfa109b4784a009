"""Small models of the layers that users take, by name: what docs/models.md lists, and what its test runs."""

import dataclasses
from collections.abc import Callable
from typing import Any

CLASSES = 3
IMAGE, SEQUENCE, TOKENS, VECTOR = (6, 6, 2), (5, 4), (7,), (6,)


@dataclasses.dataclass(frozen=True)
class Taken:
  """A model of some layers.

  Attributes:
    shape: Shape of an example.
    layers: Makes the layers between input and the last dense layer, from tf.keras.layers.
    refused: What the refusal says; '' where it works.
    instead: What to use instead of what is refused.
  """

  shape: tuple[int, ...]
  layers: Callable[[Any], list[Any]]
  refused: str = ''
  instead: str = ''


def _flat(*names: str, **options: Any) -> Callable[[Any], list[Any]]:
  return lambda keras: [keras.Flatten(), keras.Dense(8), *(getattr(keras, n)(**options) for n in names)]


ACTIVATIONS = ('gelu', 'elu', 'selu', 'swish', 'tanh', 'softplus')
_STATE, _DRAWS = 'non-trainable variables', 'draws random numbers'
_GROUP = 'GroupNormalization or LayerNormalization'

LAYERS: dict[str, Taken] = {
  'Dense, Rescaling, RepeatVector': Taken(
    VECTOR, lambda k: [k.Rescaling(0.5, 1.0), k.Dense(8, 'relu'), k.RepeatVector(2), k.Flatten()]
  ),
  'Conv1D, MaxPooling1D, AveragePooling1D': Taken(
    SEQUENCE, lambda k: [k.Conv1D(4, 2), k.MaxPooling1D(2), k.AveragePooling1D(2), k.Flatten()]
  ),
  'Conv2D, DepthwiseConv2D, SeparableConv2D': Taken(
    IMAGE,
    lambda k: [k.Conv2D(4, 3, padding='same'), k.DepthwiseConv2D(3), k.ReLU(), k.SeparableConv2D(4, 3), k.ReLU(), k.Flatten()],
  ),
  'Conv3D': Taken(IMAGE, lambda k: [k.Reshape((6, 6, 2, 1)), k.Conv3D(2, 2), k.ReLU(), k.Flatten()]),
  'Conv2DTranspose, GlobalAveragePooling2D': Taken(
    IMAGE, lambda k: [k.Conv2DTranspose(3, 3, strides=2), k.ReLU(), k.GlobalAveragePooling2D()]
  ),
  'MaxPooling2D, AveragePooling2D': Taken(
    IMAGE, lambda k: [k.Conv2D(4, 3), k.MaxPooling2D(2, 1), k.AveragePooling2D(2, 1), k.Flatten()]
  ),
  'GlobalMaxPooling2D, GroupNormalization': Taken(
    IMAGE, lambda k: [k.Conv2D(4, 3), k.GroupNormalization(2), k.ReLU(), k.GlobalMaxPooling2D()]
  ),
  'LayerNormalization, UnitNormalization': Taken(VECTOR, _flat('LayerNormalization', 'ReLU', 'UnitNormalization')),
  'BatchNormalization': Taken(VECTOR, _flat('BatchNormalization'), _STATE, _GROUP),
  'Dropout': Taken(VECTOR, lambda k: [k.Dropout(0.25), k.Dense(8, 'tanh'), k.Dropout(0.5), k.Dense(8)]),
  'SpatialDropout1D': Taken(SEQUENCE, lambda k: [k.SpatialDropout1D(0.5), k.Flatten()]),
  'LSTM(dropout=0.5)': Taken(SEQUENCE, lambda k: [k.LSTM(4, dropout=0.5)], _DRAWS, 'Dropout before it'),
  'GaussianNoise': Taken(VECTOR, _flat('GaussianNoise', stddev=0.1), _DRAWS, 'no noise'),
  'Embedding': Taken(TOKENS, lambda k: [k.Embedding(10, 4), k.Flatten()]),
  'Embedding(mask_zero=True), LSTM': Taken(TOKENS, lambda k: [k.Embedding(10, 4, mask_zero=True), k.LSTM(4)]),
  'GRU, SimpleRNN': Taken(SEQUENCE, lambda k: [k.GRU(4, return_sequences=True), k.SimpleRNN(5)]),
  'Bidirectional, LSTM, GlobalAveragePooling1D': Taken(
    SEQUENCE, lambda k: [k.Bidirectional(k.LSTM(4, return_sequences=True)), k.GlobalAveragePooling1D()]
  ),
  'TimeDistributed, Reshape, Permute': Taken(
    SEQUENCE, lambda k: [k.TimeDistributed(k.Dense(4, 'tanh')), k.Permute((2, 1)), k.Reshape((20,))]
  ),
  'PReLU, LeakyReLU, Softmax': Taken(VECTOR, _flat('PReLU', 'LeakyReLU', 'Softmax')),
  ', '.join(ACTIVATIONS): Taken(VECTOR, lambda k: [k.Dense(8, activation=name) for name in ACTIVATIONS]),
  'ZeroPadding2D, Cropping2D, UpSampling2D': Taken(
    IMAGE, lambda k: [k.ZeroPadding2D(1), k.Conv2D(3, 3), k.Cropping2D(1), k.UpSampling2D(2), k.Flatten()]
  ),
  'Lambda': Taken(VECTOR, lambda k: [k.Dense(8), k.Lambda(lambda x: x * x)]),
  'a regularizer': Taken(VECTOR, lambda k: [k.Dense(8, kernel_regularizer='l2')], 'adds losses of its own', 'none'),
  'a constraint': Taken(VECTOR, lambda k: [k.Dense(8, kernel_constraint='non_neg')], 'clients would not keep it', 'none'),
}  # fmt: skip


def _attention(keras: Any, inputs: Any) -> Any:
  return keras.Flatten()(keras.Attention()([keras.Dense(4)(inputs), keras.Dense(4)(inputs)]))


def _multi_head(keras: Any, inputs: Any) -> Any:
  inner = keras.LayerNormalization()(keras.Dense(4)(inputs))
  return keras.GlobalAveragePooling1D()(keras.Add()([inner, keras.MultiHeadAttention(2, 3)(inner, inner)]))


def _attention_with_dropout(keras: Any, inputs: Any) -> Any:
  inner = keras.Dense(4)(inputs)
  # Of two branches the one that is made last comes first in the model; each has dropout of its own.
  late, early = keras.Dropout(0.5), keras.MultiHeadAttention(2, 3, dropout=0.5)
  return keras.Flatten()(keras.Concatenate()([early(inner, inner), late(inner)]))


def _dropout_twice(keras: Any, inputs: Any) -> Any:
  layer = keras.Dropout(0.5)
  return layer(keras.Dense(8)(layer(inputs)))


def _residual(keras: Any, inputs: Any) -> Any:
  inner = keras.Conv2D(2, 3, padding='same', activation='relu')(inputs)
  return keras.Flatten()(keras.Add()([inner, inputs]))


def _branches(keras: Any, inputs: Any) -> Any:
  # Of two branches of equal shapes, the one that is made last comes first in the model.
  late, early = keras.Dense(5, 'relu', name='late'), keras.Dense(5, 'tanh', name='early')
  return keras.Concatenate()([early(keras.Dense(6)(inputs)), late(inputs)])


def _shared(keras: Any, inputs: Any) -> Any:
  layer = keras.Dense(6, activation='tanh')
  return layer(layer(inputs))


GRAPHS: dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = {
  'Attention': (SEQUENCE, _attention),
  'MultiHeadAttention': (SEQUENCE, _multi_head),
  'MultiHeadAttention(dropout=0.5)': (SEQUENCE, _attention_with_dropout),
  'a shared Dropout': (VECTOR, _dropout_twice),
  'a residual model (Add)': (IMAGE, _residual),
  'branches (Concatenate)': (VECTOR, _branches),
  'a shared layer': (VECTOR, _shared),
}


def names() -> list[str]:
  return [*LAYERS, *GRAPHS]


def refusal(name: str) -> tuple[str, str]:
  """Returns why a model is refused and what to use instead; both '' where it works."""
  taken = LAYERS.get(name)
  return (taken.refused, taken.instead) if taken else ('', '')


def shape(name: str) -> tuple[int, ...]:
  """Returns the shape of an example of a model."""
  return GRAPHS[name][0] if name in GRAPHS else LAYERS[name].shape


def make(name: str) -> Any:
  """Returns a model by its name, with seeded weights, as --model=module:function makes it."""
  import tensorflow as tf

  keras = tf.keras.layers
  tf.keras.backend.reset_uids()
  tf.keras.utils.set_random_seed(7)
  if name in GRAPHS:
    shape, body = GRAPHS[name]
    inputs = tf.keras.Input(shape)
    return tf.keras.Model(inputs, keras.Dense(CLASSES)(body(keras, inputs)))
  taken = LAYERS[name]
  return tf.keras.Sequential([keras.InputLayer(taken.shape), *taken.layers(keras), keras.Dense(CLASSES)])


def table() -> str:
  """Returns the table of docs/models.md."""
  lines = ['| layer or model | trained | use instead |', '| --- | --- | --- |']
  for name in names():
    reason, instead = refusal(name)
    lines.append(f'| {name} | {f"no: {reason}" if reason else "yes"} | {instead or "–"} |')
  return '\n'.join(lines)
