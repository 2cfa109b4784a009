"""A population on disk, so that later phases measure on exactly what was trained on."""

import json
import os
import pathlib
import tempfile

import numpy as np

from tff_cluster.errors import EnvironmentFault
from tff_cluster.population import Population, Split

_SPLITS = ('train', 'validation', 'test')
_FORMAT = 1


def save_population(population: Population, path: str | os.PathLike[str]) -> None:
  """Writes the population to an .npz; an interrupted write leaves what was there before.

  Raises:
    EnvironmentFault: if it cannot be written (no permission, disk full).
  """
  path = pathlib.Path(path)
  arrays = {'global_test_x': population.global_test_x, 'global_test_y': population.global_test_y}
  for name in _SPLITS:
    split = getattr(population, name)
    arrays |= {f'{name}_x': split.x, f'{name}_y': split.y, f'{name}_offsets': split.offsets}
  arrays |= {f'truth_{i}': truth for i, truth in enumerate(population.truths.values())}
  about = {
    'format': _FORMAT,
    'name': population.name,
    'client_ids': list(population.client_ids),
    'num_classes': population.num_classes,
    'truths': list(population.truths),
    'digest': population.digest,
  }
  arrays['about'] = np.frombuffer(json.dumps(about).encode(), np.uint8)
  temporary = None
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f'.{path.name}.', dir=path.parent)
    with os.fdopen(handle, 'wb') as file:
      np.savez(file, **arrays)
      file.flush()
      os.fsync(file.fileno())
    os.chmod(temporary, 0o666 & ~_umask())
    os.replace(temporary, path)
    temporary = None
  except OSError as error:
    raise EnvironmentFault(f'{path} cannot be written: {error.strerror or error}') from error
  finally:
    if temporary is not None:
      pathlib.Path(temporary).unlink(missing_ok=True)


def load_population(path: str | os.PathLike[str]) -> Population:
  """Reads what `save_population` wrote.

  Raises:
    EnvironmentFault: if there is no such file, it cannot be read, or its content is not what was written.
  """
  if not os.path.exists(path):
    raise EnvironmentFault(f'{path} does not exist; run the phase that writes it first')
  try:
    with np.load(path, allow_pickle=False) as archive:
      arrays = {key: archive[key] for key in archive.files}
    about = json.loads(arrays['about'].tobytes())
    if about['format'] != _FORMAT:
      raise EnvironmentFault(f'{path} has format {about["format"]}, expected {_FORMAT}; write it again')
    population = Population(
      name=about['name'],
      client_ids=tuple(about['client_ids']),
      **{s: Split(arrays[f'{s}_x'], arrays[f'{s}_y'], arrays[f'{s}_offsets']) for s in _SPLITS},
      global_test_x=arrays['global_test_x'],
      global_test_y=arrays['global_test_y'],
      num_classes=about['num_classes'],
      truths={name: arrays[f'truth_{i}'] for i, name in enumerate(about['truths'])},
    )
    digest = population.digest
  except OSError as error:
    raise EnvironmentFault(f'{path} cannot be read: {error.strerror or error}') from error
  except EnvironmentFault:
    raise
  except Exception as error:
    # What zipfile, zlib, NumPy and json raise on damaged bytes is of many kinds.
    raise EnvironmentFault(f'{path} is damaged; delete it and run again') from error
  if digest != about['digest']:
    raise EnvironmentFault(f'{path} is damaged: its content does not have the digest it was written with')
  return population


def _umask() -> int:
  value = os.umask(0)
  os.umask(value)
  return value
