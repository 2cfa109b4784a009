"""The papers' models. Each returns an unbuilt-optimizer Keras model whose outputs are logits [batch, classes].

TensorFlow is imported inside the functions, so that the names can be listed without it.
"""

from collections.abc import Sequence
from typing import Any


def mnist_cnn(input_shape: Sequence[int], num_classes: int) -> Any:
  """The CNN of McMahan 2017, Briggs 2020 and Miles 2024: 1,663,370 parameters at 28x28x1, 10 classes."""
  from tensorflow import keras

  return keras.Sequential(
    [
      keras.layers.InputLayer(input_shape),
      keras.layers.Conv2D(32, 5, padding='same', activation='relu'),
      keras.layers.MaxPooling2D(2),
      keras.layers.Conv2D(64, 5, padding='same', activation='relu'),
      keras.layers.MaxPooling2D(2),
      keras.layers.Flatten(),
      keras.layers.Dense(512, activation='relu'),
      keras.layers.Dense(num_classes),
    ]
  )


def cifar_cnn(input_shape: Sequence[int], num_classes: int) -> Any:
  """A CNN of 5 layers with weights, the size that Sattler 2019 names without giving its widths.

  Departures and choices: three 3x3 convolutions (32, 64, 64) with pooling between them and two dense
  layers, the layout of TensorFlow's own CIFAR-10 tutorial.
  """
  from tensorflow import keras

  return keras.Sequential(
    [
      keras.layers.InputLayer(input_shape),
      keras.layers.Conv2D(32, 3, activation='relu'),
      keras.layers.MaxPooling2D(2),
      keras.layers.Conv2D(64, 3, activation='relu'),
      keras.layers.MaxPooling2D(2),
      keras.layers.Conv2D(64, 3, activation='relu'),
      keras.layers.Flatten(),
      keras.layers.Dense(64, activation='relu'),
      keras.layers.Dense(num_classes),
    ]
  )


def two_nn(input_shape: Sequence[int], num_classes: int) -> Any:
  """The "2NN" of McMahan 2017: two hidden layers of 200 units; 199,210 parameters at 28x28x1, 10 classes."""
  return _dense(input_shape, (200, 200), num_classes)


def logistic(input_shape: Sequence[int], num_classes: int) -> Any:
  """Multinomial logistic regression: 7,850 parameters at 28x28x1, 10 classes."""
  return _dense(input_shape, (), num_classes)


def _dense(input_shape: Sequence[int], hidden: Sequence[int], num_classes: int) -> Any:
  from tensorflow import keras

  layers = [keras.layers.InputLayer(input_shape), keras.layers.Flatten()]
  layers += [keras.layers.Dense(width, activation='relu') for width in hidden]
  return keras.Sequential([*layers, keras.layers.Dense(num_classes)])
