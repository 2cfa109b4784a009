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
  """What stands before the last layer, which gives logits: layers of images, and widths of dense ReLU layers."""

  images: tuple[Convolution | str, ...] = ()
  widths: tuple[int, ...] = ()


POOL = 'maximum of each 2 x 2'

MODELS = {
  'mnist_cnn': Layers((Convolution(32, 5, 'same'), POOL, Convolution(64, 5, 'same'), POOL), (512,)),
  'femnist_cnn': Layers((Convolution(32, 5), POOL, Convolution(64, 5), POOL), (2048,)),
  'cifar_cnn': Layers((Convolution(32, 3), POOL, Convolution(64, 3), POOL, Convolution(64, 3)), (64,)),
  '1nn': Layers(widths=(200,)),
  '2nn': Layers(widths=(200, 200)),
  'logistic': Layers(),
}
# Sides of the smallest images that models with convolutions take.
_SMALLEST = {'mnist_cnn': 4, 'femnist_cnn': 16, 'cifar_cnn': 18}


def size(name: str, input_shape: Sequence[int], num_classes: int) -> tuple[int, int]:
  """Returns the parameters of a built-in model, and the numbers that it computes for one example (without its outputs).

  Raises:
    InputError: if examples of this shape do not fit the model.
  """
  least = _SMALLEST.get(name)
  if least is not None and (len(input_shape) != 3 or min(input_shape[:2]) < least):
    raise InputError(
      f'{argument("model", name)} does not fit examples of shape {tuple(input_shape)}; it takes images [height, width, channels] of at '
      f'least {least} x {least}'
    )
  shape, parameters, activations = tuple(input_shape), 0, 0
  for each in MODELS[name].images:
    if isinstance(each, Convolution):
      lost = each.side - 1 if each.padding == 'valid' else 0
      parameters += (each.side**2 * shape[2] + 1) * each.filters
      shape = (shape[0] - lost, shape[1] - lost, each.filters)
    else:
      shape = (shape[0] // 2, shape[1] // 2, shape[2])
    activations += math.prod(shape)
  widths = (math.prod(shape), *MODELS[name].widths, num_classes)
  parameters += sum((before + 1) * after for before, after in itertools.pairwise(widths))
  return parameters, activations + sum(widths[1:-1])
