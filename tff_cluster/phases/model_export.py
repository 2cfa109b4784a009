"""Models as .keras files, whole or not there."""

import contextlib
import pathlib
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from tff_cluster.base import digests
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.base.types import Weights
from tff_cluster.storage import files as files_lib

if TYPE_CHECKING:
  import tensorflow as tf


class Exports:
  """Writes the models of an experiment."""

  def __init__(self, keras_model: 'Callable[[], tf.keras.Model]'):
    """Takes what returns a Keras model of the experiment, whose weights it may set; it is called when a model is written."""
    self._keras_model = keras_model
    self._written: dict[str, pathlib.Path] = {}

  def write(self, path: pathlib.Path, weights: Weights, known: str | None = None) -> str:
    """Writes a model as a .keras file, whole or not at all; a file there that does not hold this model is set aside.

    A model that this process has exported before, for another clustering, takes no room of its own.

    Args:
      path: The file.
      weights: The model.
      known: SHA-256 of the file as an earlier call wrote it; where it still fits, nothing is done.

    Returns:
      The SHA-256 of the file.

    Raises:
      EnvironmentFault: if it cannot be written, or the clock is off by decades.
    """
    found = files_lib.file_digest(path)
    if found is not None and found == known:
      return found
    equal = self._written.setdefault(digests.of_arrays(weights), path)

    def write(temporary: pathlib.Path) -> None:
      with contextlib.suppress(OSError):
        if equal != path:
          temporary.hardlink_to(equal)
      if not temporary.exists():
        model = self._keras_model()
        model.set_weights(list(weights))
        model.save(temporary)
      if found is not None and (known is not None or not same_model(path, temporary)):
        damage = files_lib.DamagedFile(f'{path} is damaged: it is not the model that was trained')
        files_lib.set_aside(path, damage)

    try:
      files_lib.save_file(path, write)
    except (ValueError, struct.error) as error:
      if 'before 1980' not in str(error) and '65535' not in str(error):
        raise
      # A .keras file is a zip archive, which is dated by the clock.
      raise EnvironmentFault(
        f'cannot write {path}: the clock of this machine is not between 1980 and 2107, and such a file cannot be dated '
        'so; set the clock and give the same command again to go on'
      ) from error
    return files_lib.file_digest(path) or ''


def same_model(one: pathlib.Path, other: pathlib.Path) -> bool:
  """Tells whether two .keras files hold the same model; the time at which they were saved stands in them, too."""
  try:
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(other) as second:
      return all(first.read(name) == second.read(name) for name in ('config.json', 'model.weights.h5'))
  except (
    zipfile.BadZipFile,
    KeyError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    zlib.error,
    EOFError,
    OSError,
  ):
    return False  # What zipfile raises on damaged bytes is of many kinds.
