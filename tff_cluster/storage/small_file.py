"""Reading files of settings: small regular files. What else a path can name (a pipe, a device) may never end."""

import errno
import os
import stat
from pathlib import Path

from tff_cluster.base.errors import InputError

_MOST_BYTES = 16 * 2**20


def read(path: str | Path) -> bytes:
  """Returns what a file of settings holds; never waits for one who writes into a pipe.

  Raises:
    InputError: if it is not a regular file, or too large to hold settings.
    OSError: if it cannot be opened or read; IsADirectoryError for a folder.
  """
  descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
  status = os.fstat(descriptor)
  if stat.S_ISDIR(status.st_mode):
    os.close(descriptor)
    # Opening the descriptor would call the folder by a number.
    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
  with open(descriptor, 'rb') as file:
    if not stat.S_ISREG(status.st_mode):
      raise InputError(f'{path} is a pipe or a device; settings are read from a file')
    # One byte more than allowed, because files of the kernel's do not tell their size.
    content = b'' if status.st_size > _MOST_BYTES else file.read(_MOST_BYTES + 1)
  if status.st_size > _MOST_BYTES or len(content) > _MOST_BYTES:
    raise InputError(f'{path} is larger than {_MOST_BYTES // 2**20} MB, so it holds no settings')
  return content
