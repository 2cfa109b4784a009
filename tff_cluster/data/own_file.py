"""Opening a file that a user names."""

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

from tff_cluster.base.errors import EnvironmentFault, InputError, argument
from tff_cluster.data import downloads


@contextlib.contextmanager
def opened(path: str, name: str = 'data_file') -> Iterator[BinaryIO]:
  """Opens a file for reading bytes, and says in one line why it cannot be opened or read on.

  Args:
    path: As the user gave it.
    name: The argument that named it; errors begin with it.

  Raises:
    InputError: if there is no such file, or what is there is a folder, a pipe or a device.
    EnvironmentFault: if the machine does not let us open it, or does not let the caller read on.
  """
  if not os.path.exists(path):
    raise InputError(f'{argument(name, path)}: no such file')
  if not os.path.isfile(path):
    raise InputError(f'{argument(name, path)}: not a file')
  try:
    with open(path, 'rb') as file:
      yield file
  except OSError as error:
    raise EnvironmentFault(f'{argument(name, path)} cannot be read: {downloads.one_line(error)}') from error
