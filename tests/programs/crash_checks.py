"""What a killed program may leave, and what must be there once it was run again. No TensorFlow.

Every check raises Broken, with one line that says what was found.
"""

import hashlib
import json
import os
import pathlib
import re
import zipfile
from collections.abc import Iterator, Mapping

from tff_cluster.storage import files as files_lib

# Written before the slow imports, so that most kills that waited for them would hit no work at all.
_CLAIM = ('.tff_cluster-lock', 'config.json', 'environment.json', 'population.npz')
_TIMED = ('timing', 'environment', 'sealed')


class Broken(Exception):
  """A promise that did not hold."""


def files(folder: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
  """Yields (name relative to the folder, path) of all files, through links too, sorted by name."""
  found = []
  for where, _, names in os.walk(folder, followlinks=True):
    found += [pathlib.Path(where) / name for name in names]
  yield from sorted((str(path.relative_to(folder)), path) for path in found)


def snapshot(folder: pathlib.Path) -> dict[str, tuple[int, int]]:
  """Returns (size, time of change) by name of what a program's own work writes; claiming the folder is none of it."""
  seen = {}
  for name, path in files(folder):
    if re.sub(r'^\.tff_cluster-[0-9a-f]{16}-', '', name) not in _CLAIM:
      try:
        about = path.stat()
      except FileNotFoundError:
        continue
      seen[name] = (about.st_size, about.st_mtime_ns)
  return seen


def content(folder: pathlib.Path) -> dict[str, str]:
  """Returns a digest by name of all that must be equal after every history: times and dates are left out.

  A .keras file counts with its weights, report.html (which tells how long things took) by being there.
  """
  found = {}
  for name, path in files(folder):
    if name in ('.tff_cluster-lock', 'environment.json') or name.startswith('tensorboard/'):
      continue
    if name.endswith('.keras'):
      with zipfile.ZipFile(path) as archive:
        data = archive.read('model.weights.h5')
    elif name == 'report.html':
      data = b''
    elif name.endswith('.json'):
      data = json.dumps(_untimed(json.loads(path.read_bytes())), sort_keys=True).encode()
    else:
      data = path.read_bytes()
    found[name] = hashlib.sha256(data).hexdigest()
  return found


def check_same(expected: Mapping[str, str], found: Mapping[str, str]) -> None:
  """Both as `content` returns them."""
  for name in sorted(expected.keys() | found.keys()):
    if name not in found:
      raise Broken(f'{name} is missing')
    if name not in expected:
      raise Broken(f'{name} is there, and is not after an uninterrupted run')
    if expected[name] != found[name]:
      raise Broken(f'{name} is not what it is after an uninterrupted run')


def check_whole(folder: pathlib.Path) -> None:
  """What a killed program left under its final name is whole; temporary files may be anything."""
  for name, path in files(folder):
    if temporary(name) or name.startswith(('tensorboard/', 'metrics/')):
      continue  # Logs of rounds are begun anew by the next run.
    try:
      if name.endswith('.json'):
        files_lib.load_json(path)
      elif name.endswith('.npz'):
        files_lib.load_arrays(path)
      elif name.endswith('.npy') and path.with_name(path.name + '.json').exists():
        files_lib.load_rows(path)
      elif name.endswith('.keras') and zipfile.ZipFile(path).testzip() is not None:
        raise Broken(f'{name} is damaged')
    except (files_lib.DamagedFile, zipfile.BadZipFile) as error:
      raise Broken(f'after the kill: {error}') from error


def check_tidy(folder: pathlib.Path) -> None:
  """Nothing of a killed program is left: no temporary file or folder, no lock, nothing set aside."""
  for name, _ in files(folder):
    if temporary(name):
      raise Broken(f'a temporary file is left: {name}')
    if pathlib.Path(name).name == '.tff_cluster-lock':
      raise Broken(f'a lock is left: {name}')
    if name.endswith('.damaged'):
      raise Broken(f'a file was taken for damaged: {name}')
  for where, folders, _ in os.walk(folder, followlinks=True):
    for name in folders:
      if temporary(name):
        raise Broken(f'a temporary folder is left: {pathlib.Path(where, name).relative_to(folder)}')


def temporary(name: str) -> bool:
  """Tells whether a name is, or lies in, what is on its way to a final name."""
  parts = pathlib.PurePath(name).parts
  return any(re.match(r'\.tff_cluster-([0-9a-f]{16}|removed)-.', part) for part in parts) or bool(
    re.search(r'\.csv.+$', parts[-1])
  )


def client_rounds_saved(folder: pathlib.Path) -> dict[str, int]:
  """Returns the client-rounds that a run's store holds, by artifact: rounds times cohort, and a round for updates."""
  saved = {}
  for described in sorted((folder / 'store').glob('fedavg-*/determinants.json')):
    about = json.loads(described.read_bytes())
    # Not `*_`: a file that a kill left half-written has a name of the same ending, and is no saved round.
    rounds = [int(path.stem.rpartition('_')[2]) for path in described.parent.glob('[a-z]*_[0-9]*.npz')]
    cohort = max(int(about['settings']['cohort_fraction'] * len(about['clients']) + 1e-9), 1)
    saved[described.parent.name] = cohort * (max(rounds) - about['start_round'] if rounds else 0)
  for described in sorted((folder / 'store').glob('signatures-*/determinants.json')):
    about = json.loads(described.read_bytes())
    if about['kind'] == 'updates' and (described.parent / 'vectors.npy.json').exists():
      saved[described.parent.name] = len(about['clients'])
  return saved


def client_rounds(out: str) -> tuple[int, int] | None:
  """Returns the client-rounds asked for and trained that a program printed; None where it trains nothing."""
  found = re.search(r'(\d+) (?:client-rounds )?asked for, (\d+) trained', out)
  return (int(found[1]), int(found[2])) if found else None


def check_rounds(trained: int, needed: int, before: Mapping[str, int], at_the_kill: Mapping[str, int]) -> int:
  """No finished round is trained again. The round in flight is not among the saved ones.

  Args:
    trained: Client-rounds that the run after the kill trained.
    needed: Those that an uninterrupted run trains.
    before: client_rounds_saved before the program was started at all.
    at_the_kill: The same when it was killed.

  Returns:
    How many it was allowed to train.
  """
  allowed = needed - sum(count - before.get(name, 0) for name, count in at_the_kill.items())
  if trained > allowed:
    raise Broken(f'rounds were lost: {trained} client-rounds were trained again, {allowed} were missing')
  return allowed


def _untimed(value):
  if isinstance(value, dict):
    return {name: _untimed(inner) for name, inner in value.items() if name not in _TIMED}
  return [_untimed(inner) for inner in value] if isinstance(value, list) else value
