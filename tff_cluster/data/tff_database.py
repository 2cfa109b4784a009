"""Databases of tff.simulation.datasets: where they lie, whether they are whole, and how they are downloaded."""

import contextlib
import dataclasses
import os
import pathlib
import struct
from collections.abc import Callable, Iterator

from tff_cluster.base.errors import EnvironmentFault, argument
from tff_cluster.data import downloads
from tff_cluster.storage import temporary_folder

_HOST = 'https://storage.googleapis.com/tff-datasets-public/'


@dataclasses.dataclass(frozen=True)
class Database:
  """The SQLite database of a data set.

  Attributes:
    name: The data set, a module of tff.simulation.datasets.
    file: Its file in the folder `tff` of a data_dir, in a data_dir, or in ~/.tff.
  """

  name: str
  file: str

  def path(self, data_dir: str | None) -> str:
    """Returns where it lies, or is to lie."""
    folder = downloads.subfolder(data_dir, 'tff') or os.path.join(os.path.expanduser('~'), '.tff')
    return os.path.join(folder, self.file)

  def check(self, path: str) -> bool:
    """Returns whether it is there. EnvironmentFault where it is damaged, or neither there nor can be downloaded."""
    if os.path.isfile(path):
      self.check_whole(path)
      return True
    if reason := downloads.unreachable(self._url):
      raise self._missing(os.path.dirname(path), reason)
    return False

  def check_whole(self, path: str) -> None:
    """Raises EnvironmentFault if it is cut off: a broken download leaves a file shorter than the size in its own header."""
    try:
      with open(path, 'rb') as file:
        header = file.read(100)
      size = os.path.getsize(path)
    except OSError as error:
      raise EnvironmentFault(f'{path} cannot be read: {downloads.one_line(error)}') from error
    if len(header) < 100 or not header.startswith(b'SQLite format 3\0'):
      raise damaged(path, 'not an SQLite database')
    page = struct.unpack('>H', header[16:18])[0]
    expected = struct.unpack('>I', header[28:32])[0] * (65536 if page == 1 else page)
    if size < expected:
      raise damaged(path, f'{size} bytes, expected {expected}')

  def download(self, official: Callable[..., object], folder: str) -> None:
    """Downloads it into a folder.

    Args:
      official: TFF's `load_data`, called with cache_dir.

    Raises:
      EnvironmentFault: if that fails.
    """
    reason = downloads.unreachable(self._url) or downloads.writable_fault(folder)
    if reason is None:
      # Beside the final place first: TFF takes any file of that name for the whole database.
      try:
        with temporary_folder.made(pathlib.Path(folder), 'download', [self.file]) as staging:
          with downloads.downloading():
            official(cache_dir=str(staging))
          self.check_whole(os.path.join(staging, self.file))
          os.replace(os.path.join(staging, self.file), os.path.join(folder, self.file))
        return
      except Exception as error:
        # Network, disk and decompression errors come from several libraries, and mean the same to the user.
        reason = downloads.one_line(error)
    raise self._missing(folder, reason)

  @property
  def _url(self) -> str:
    return f'{_HOST}{self.file}.lzma'

  def _missing(self, folder: str, reason: str) -> EnvironmentFault:
    return EnvironmentFault(
      f'{self.name}: {os.path.join(folder, self.file)} does not exist, and downloading failed ({reason}); where there is a network run '
      f'python -c "import tensorflow_federated as tff; tff.simulation.datasets.{self.name}.load_data(cache_dir={folder!r})", '
      f'or give the folder that holds {self.file} as {argument("data_dir")}'
    )


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
  """Raises EnvironmentFault for what goes wrong while a database is read: TFF has no common error for one that it cannot read."""
  try:
    yield
  except MemoryError as error:
    raise EnvironmentFault(f'{path} does not fit into memory') from error
  except Exception as error:
    raise damaged(path, error) from error


def damaged(path: str, reason: object) -> EnvironmentFault:
  """Returns what to say of a database that cannot be read."""
  return EnvironmentFault(
    f'{path} is damaged ({downloads.one_line(reason)}); delete it and run again to download it anew'
  )
