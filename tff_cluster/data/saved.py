"""A population on disk, so that later phases measure on exactly what was trained on."""

import json
import os
import pathlib
from collections.abc import Mapping

import numpy as np

from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.data.population import Population, SharedSplit, Split
from tff_cluster.storage import files

_SPLITS = ('train', 'validation', 'test')
_FORMAT = 1


def save_population(population: Population, path: str | os.PathLike[str]) -> None:
  """Writes the population to an .npz; an interrupted write leaves what was there before.

  Raises:
    EnvironmentFault: if it cannot be written (no permission, disk full).
  """
  arrays = {'global_test_x': population.global_test_x, 'global_test_y': population.global_test_y}
  for name in _SPLITS:
    split = getattr(population, name)
    if isinstance(split, SharedSplit):  # Its rows are those of the global test set.
      arrays |= {f'{name}_y': split.y, f'{name}_groups': split.groups}
    else:
      arrays |= {f'{name}_x': split.x, f'{name}_y': split.y, f'{name}_offsets': split.offsets}
  arrays |= {f'truth_{i}': truth for i, truth in enumerate(population.truths.values())}
  if population.update_scales is not None:
    arrays['update_scales'] = population.update_scales
  about = {
    'format': _FORMAT,
    'name': population.name,
    'client_ids': list(population.client_ids),
    'num_classes': population.num_classes,
    'truths': list(population.truths),
  }
  arrays['about'] = np.frombuffer(json.dumps(about).encode(), np.uint8)
  files.save_arrays(pathlib.Path(path), arrays)


def load_population(path: str | os.PathLike[str]) -> Population:
  """Reads what `save_population` wrote.

  Raises:
    EnvironmentFault: if there is no such file, or its content is not what was written.
  """
  try:
    arrays = files.load_arrays(pathlib.Path(path))
  except FileNotFoundError as error:
    raise EnvironmentFault(f'{path} does not exist; run the phase that writes it first') from error
  if 'about' not in arrays:
    raise files.damage(pathlib.Path(path), 'it holds no population')
  about = json.loads(arrays['about'].tobytes())
  if about['format'] != _FORMAT:
    raise files.damage(pathlib.Path(path), f'it has format {about["format"]}, expected {_FORMAT}')
  return Population(
    name=about['name'],
    client_ids=tuple(about['client_ids']),
    train=_own(arrays, 'train'),
    validation=_own(arrays, 'validation'),
    test=_shared(arrays, 'test') if 'test_groups' in arrays else _own(arrays, 'test'),
    global_test_x=arrays['global_test_x'],
    global_test_y=arrays['global_test_y'],
    num_classes=about['num_classes'],
    truths={name: arrays[f'truth_{i}'] for i, name in enumerate(about['truths'])},
    update_scales=arrays.get('update_scales'),
  )


def _shared(arrays: Mapping[str, np.ndarray], name: str) -> SharedSplit:
  return SharedSplit(arrays['global_test_x'], arrays[f'{name}_y'], arrays[f'{name}_groups'])


def _own(arrays: Mapping[str, np.ndarray], name: str) -> Split:
  return Split(arrays[f'{name}_x'], arrays[f'{name}_y'], arrays[f'{name}_offsets'])
