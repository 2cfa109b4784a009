"""The papers' models, layer by layer, so that their sizes are known without TensorFlow; build.py makes Keras models of them.

mnist_cnn: the CNN of McMahan 2017, Briggs 2020 and Miles 2024; 1,663,370 parameters at 28x28x1, 10 classes.
cifar_cnn: a CNN of 5 layers with weights, the size that Sattler 2019 names without giving its widths. Departures and
  choices: three 3x3 convolutions (32, 64, 64) with pooling between them and two dense layers, the layout of
  TensorFlow's own CIFAR-10 tutorial.
femnist_cnn: the CNN of Marfoq 2021 for handwritten characters, that of LEAF without padding; 2,278,334 parameters at 28x28x1,
  62 classes.
1nn: the network of Ghosh 2020 and Kim 2024, one hidden layer of 200 units; 159,010 parameters at 28x28x1, 10 classes.
2nn: the "2NN" of McMahan 2017, two hidden layers of 200 units; 199,210 parameters at 28x28x1, 10 classes.
logistic: multinomial logistic regression; 7,850 parameters at 28x28x1, 10 classes.
char_cnn: two convolutions over the characters before the one that it tells; 154,816 parameters at 40 characters, 64 classes. Nobody's paper:
  it is small, and a step of it takes little time.
char_rnn: an LSTM; 78,912 parameters at 64 classes. Departures and choices: the network of McMahan 2017 for Shakespeare's plays has the same
  embedding, two LSTMs of 256 units, and a loss at each character, not at the last one alone.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence

from tff_cluster.base.errors import InputError, argument


@dataclasses.dataclass(frozen=True)
class Convolution:
  """A convolution with ReLU: number of filters, their side, and Keras' padding, 'same' or 'valid'."""

  filters: int
  side: int
  padding: str = 'valid'


@dataclasses.dataclass(frozen=True)
class Layers:
  """What stands before the last layer, which gives logits.

  Attributes:
    images: Layers of images.
    widths: Widths of dense ReLU layers.
    characters: Layers of codes of characters, in front of those, behind an embedding of EMBEDDING numbers: convolutions along the
      text, or the units of an LSTM, of which the last character's go on.
  """

  images: tuple[Convolution | str, ...] = ()
  widths: tuple[int, ...] = ()
  characters: tuple[Convolution | int, ...] = ()


POOL = 'maximum of each 2 x 2'
EMBEDDING = 8

MODELS = {
  'mnist_cnn': Layers((Convolution(32, 5, 'same'), POOL, Convolution(64, 5, 'same'), POOL), (512,)),
  'femnist_cnn': Layers((Convolution(32, 5), POOL, Convolution(64, 5), POOL), (2048,)),
  'cifar_cnn': Layers((Convolution(32, 3), POOL, Convolution(64, 3), POOL, Convolution(64, 3)), (64,)),
  '1nn': Layers(widths=(200,)),
  '2nn': Layers(widths=(200, 200)),
  'logistic': Layers(),
  'char_cnn': Layers(characters=(Convolution(64, 5), Convolution(64, 5))),
  'char_rnn': Layers(characters=(128,)),
}
# Sides of the smallest images that models with convolutions take, and lengths of the shortest texts.
_SMALLEST = {'mnist_cnn': 4, 'femnist_cnn': 16, 'cifar_cnn': 18, 'char_cnn': 9, 'char_rnn': 1}
# What an LSTM computes for each character and unit: four gates, its state and its output.
_NUMBERS_A_UNIT = 6


def reads_text(name: str) -> bool:
  """Returns whether a built-in model takes codes of characters, whole numbers below the number of classes."""
  return bool(MODELS[name].characters)


def size(name: str, input_shape: Sequence[int], num_classes: int) -> tuple[int, int]:
  """Returns the parameters of a built-in model, and the numbers that it computes for one example (without its outputs).

  Raises:
    InputError: if examples of this shape do not fit the model.
  """
  _check_shape(name, tuple(input_shape))
  kept = MODELS[name]
  image, of_images, activations = _of_images(kept.images, tuple(input_shape))
  text, of_text, also = _of_characters(kept.characters, tuple(input_shape), num_classes)
  widths = (math.prod(text if kept.characters else image), *kept.widths, num_classes)
  dense = sum((before + 1) * after for before, after in itertools.pairwise(widths))
  return of_images + of_text + dense, activations + also + sum(widths[1:-1])


def _check_shape(name: str, shape: tuple[int, ...]) -> None:
  least = _SMALLEST.get(name)
  if least is None:
    return
  if reads_text(name):
    sides, dimensions, told = shape, 1, f'texts of at least {least} characters'
  else:
    sides, dimensions = shape[:2], 3
    told = f'images [height, width, channels] of at least {least} x {least}'
  if len(shape) != dimensions or min(sides) < least:
    raise InputError(f'{argument("model", name)} does not fit examples of shape {shape}; it takes {told}')


def _of_images(
  layers: Sequence[Convolution | str], shape: tuple[int, ...]
) -> tuple[tuple[int, ...], int, int]:
  """Returns the shape that comes out of layers of images, their parameters, and the numbers that they compute."""
  parameters = activations = 0
  for each in layers:
    if isinstance(each, Convolution):
      lost = each.side - 1 if each.padding == 'valid' else 0
      parameters += (each.side**2 * shape[2] + 1) * each.filters
      shape = (shape[0] - lost, shape[1] - lost, each.filters)
    else:
      shape = (shape[0] // 2, shape[1] // 2, shape[2])
    activations += math.prod(shape)
  return shape, parameters, activations


def _of_characters(
  layers: Sequence[Convolution | int], shape: tuple[int, ...], num_classes: int
) -> tuple[tuple[int, ...], int, int]:
  """As `_of_images` of an embedding and the layers behind it; of no layers nothing."""
  if not layers:
    return shape, 0, 0
  shape = (shape[0], EMBEDDING)
  parameters, activations = num_classes * EMBEDDING, math.prod(shape)
  for each in layers:
    if isinstance(each, Convolution):
      parameters += (each.side * shape[1] + 1) * each.filters
      shape = (shape[0] - each.side + 1, each.filters)
      activations += math.prod(shape)
    else:
      parameters += 4 * (shape[1] + each + 1) * each
      activations += _NUMBERS_A_UNIT * shape[0] * each
      shape = (each,)
  return shape, parameters, activations
