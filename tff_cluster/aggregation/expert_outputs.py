"""What experts gave for the same samples, in the form that the rules of `experts` and `gate` take.

Outputs are float[experts, samples, classes], finite and not negative: probabilities, or what is proportional to
them. Logits go through a softmax first.
"""

import dataclasses
import os

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data import npz_file

# Sums and products of numbers up to here stay within float64's range.
_LARGEST = 1e100
_ARRAYS = ('outputs', 'labels', 'start_weights')


@dataclasses.dataclass(frozen=True, eq=False)
class ExpertOutputs:
  """Outputs of experts, and what may be known beside them.

  Attributes:
    outputs: float64[experts, samples, classes], finite and not negative.
    labels: int64[samples], true classes from 0, or None where they are not known.
    start_weights: float64[experts, classes], where FedEx starts from; None: 1 / experts each.

  Raises:
    InputError: if an array is not such an array, or the arrays do not fit one another.
  """

  outputs: np.ndarray
  labels: np.ndarray | None = None
  start_weights: np.ndarray | None = None

  def __post_init__(self):
    outputs = checked_outputs(self.outputs)
    object.__setattr__(self, 'outputs', outputs)
    if self.labels is not None:
      object.__setattr__(self, 'labels', checked_labels(self.labels, outputs))
    if self.start_weights is not None:
      object.__setattr__(self, 'start_weights', checked_weights(self.start_weights, outputs))


def read_expert_outputs(path: str | os.PathLike[str]) -> ExpertOutputs:
  """Reads expert outputs from a file.

  Args:
    path: An .npz with `outputs` float[experts, samples, classes] and, if wanted, `labels` int[samples] and
      `start_weights` float[experts, classes]. Names that begin with two underscores are left aside.

  Raises:
    InputError: one line, with the path, that says what is wrong with the file.
    EnvironmentFault: if the machine does not let us read it.
  """
  path = os.fspath(path)
  arrays = {
    name: array
    for name, array in npz_file.read_arrays(path, 'outputs_file').items()
    if not name.startswith('__')
  }
  try:
    if 'outputs' not in arrays:
      found = ', '.join(sorted(arrays)) or 'nothing'
      raise InputError(f"has no array 'outputs' [experts, samples, classes], found {found}")
    unknown = sorted(set(arrays) - set(_ARRAYS))
    if unknown:
      raise InputError(f'has an unknown array {unknown[0]!r}; allowed are {", ".join(_ARRAYS)}')
    return ExpertOutputs(**arrays)
  except InputError as error:
    raise InputError(f'{argument("outputs_file", path)}: {error}') from error


def checked_outputs(outputs: np.ndarray) -> np.ndarray:
  """Returns a new float64[experts, samples, classes].

  Raises:
    InputError: if there is not at least one of each, or a number is negative, NaN, infinite or above 1e100.
  """
  outputs = np.asarray(outputs)
  if outputs.ndim != 3 or 0 in outputs.shape:
    raise InputError(
      f'outputs must be [experts, samples, classes] with at least one of each, found shape {list(outputs.shape)}'
    )
  return _checked_numbers('outputs', outputs, 'give probabilities, not logits')


def checked_weights(weights: np.ndarray, outputs: np.ndarray) -> np.ndarray:
  """Returns a new float64[experts, classes], the weights that belong to outputs [experts, samples, classes].

  Raises:
    InputError: if the shape is another, or a number is negative, NaN, infinite or above 1e100.
  """
  weights, expected = np.asarray(weights), [outputs.shape[0], outputs.shape[2]]
  if list(weights.shape) != expected:
    raise InputError(
      f'start_weights must be [experts, classes], here {expected}, found shape {list(weights.shape)}'
    )
  return _checked_numbers('start_weights', weights, 'equal weights are 1 / experts')


def checked_labels(labels: np.ndarray, outputs: np.ndarray) -> np.ndarray:
  """Returns int64[samples], the true classes of the samples of outputs [experts, samples, classes].

  Raises:
    InputError: if they are not whole numbers from 0 to classes - 1, one a sample.
  """
  labels = np.asarray(labels)
  samples, classes = outputs.shape[1:]
  if labels.ndim != 1 or len(labels) != samples:
    raise InputError(f'labels must be [samples], one for each of {samples}, found shape {list(labels.shape)}')
  if labels.dtype.kind not in 'iu':
    raise InputError(f'labels must be whole numbers, found dtype {labels.dtype}')
  wrong = np.flatnonzero((labels < 0) | (labels >= classes))
  if len(wrong):
    raise InputError(f'labels[{wrong[0]}] is {labels[wrong[0]]}; labels go from 0 to {classes - 1}')
  return labels.astype(np.int64)


def _checked_numbers(name: str, array: np.ndarray, advice: str) -> np.ndarray:
  if array.dtype.kind not in 'iuf':
    raise InputError(f'{name} must be numbers, found dtype {array.dtype}')
  # A new array, which callers may write to. Its layout is fixed because NumPy adds in the order of memory.
  array = array.astype(np.float64, order='C')
  wrong = ~((array >= 0.0) & (array <= _LARGEST))
  if wrong.any():
    place = tuple(int(k) for k in np.argwhere(wrong)[0])
    raise InputError(
      f'{name}{list(place)} is {array[place]:g}; allowed are finite numbers from 0 to {_LARGEST:g}; {advice}'
    )
  return array
