"""Which failures a person has to act on, whatever kind of exception tells of them."""

import errno
import os

from tff_cluster.base.errors import EnvironmentFault, Fault, InputError
from tff_cluster.storage import output_folders

# What the shape of a path that was given causes.
_OF_PATHS = ('ENAMETOOLONG', 'ELOOP', 'ENOTDIR', 'EISDIR', 'EEXIST')
_OF_WRITING = ('ENOSPC', 'EROFS', 'EACCES', 'EPERM', 'EDQUOT', 'EFBIG', 'EIO')
_OF_MACHINE = (*_OF_WRITING, 'EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'ENOLCK', 'ESTALE')


def of(error: Exception) -> Fault | None:
  """Returns the fault that is behind an error, with a message of one line; None where it is a fault of this software.

  What fails in libraries when a folder is taken away is of many kinds; that it was is the cause.
  """
  if gone := output_folders.lost():
    return gone
  if isinstance(error, Fault):
    return error
  if isinstance(error, MemoryError):
    return EnvironmentFault(f'not enough memory: {str(error) or "an allocation failed"}')
  return _of_system(error) if isinstance(error, OSError) else None


def _of_system(error: OSError) -> Fault | None:
  kind = errno.errorcode.get(error.errno or 0)
  if kind in _OF_PATHS and error.filename is not None:
    return InputError(f'{os.fsdecode(error.filename)}: {error.strerror}')
  if kind in _OF_MACHINE:
    where = error.filename or ('cannot write the output' if kind in _OF_WRITING else 'the operating system')
    return EnvironmentFault(f'{where}: {error.strerror}')
  return None
