"""How large the built-in models are for given shapes, without building them."""

import itertools
import math
from collections.abc import Sequence

from tff_cluster.base.errors import InputError, argument


def of_builtin(name: str, input_shape: Sequence[int], num_classes: int) -> tuple[int, int]:
  """Returns the parameters of a built-in model, and the numbers that it computes for one example (without its outputs).

  Args:
    name: A name in lookup.MODELS.
    input_shape: Shape of one example.
    num_classes: Number of classes.

  Raises:
    InputError: if examples of this shape do not fit the model.
  """
  features = math.prod(input_shape)
  if name == 'logistic':
    return _layers(features, num_classes), 0
  if name == '2nn':
    return _layers(features, 200, 200, num_classes), 400
  smallest = {'mnist_cnn': 4, 'cifar_cnn': 18}[name]
  if len(input_shape) != 3 or min(input_shape[:2]) < smallest:
    raise InputError(
      f'{argument("model", name)} does not fit examples of shape {tuple(input_shape)}; it takes images [height, width, channels] of at '
      f'least {smallest} x {smallest}'
    )
  height, width, channels = input_shape
  if name == 'mnist_cnn':
    kernels = _layers(25 * channels, 32) + _layers(25 * 32, 64)
    activations = 40 * height * width + 80 * (height // 2) * (width // 2)
    return kernels + _layers((height // 4) * (width // 4) * 64, 512, num_classes), activations
  kernels = _layers(9 * channels, 32) + _layers(9 * 32, 64) + _layers(9 * 64, 64)
  first, second, third = (
    tuple(side(length) for length in (height, width))
    for side in (lambda n: n - 2, lambda n: (n - 2) // 2 - 2, lambda n: ((n - 2) // 2 - 2) // 2 - 2)
  )
  activations = 40 * math.prod(first) + 80 * math.prod(second) + 64 * math.prod(third)
  return kernels + _layers(math.prod(third) * 64, 64, num_classes), activations


def _layers(*widths: int) -> int:
  """Returns the parameters of dense layers from each width to the next, biases among them."""
  return sum((before + 1) * after for before, after in itertools.pairwise(widths))
