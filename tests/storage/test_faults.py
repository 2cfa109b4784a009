"""Which errors are told in one line."""

import errno
import os

import pytest

from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.storage import faults, small_file


@pytest.mark.parametrize(
  'name', ['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EFBIG', 'ESTALE', 'ENOLCK']
)
@pytest.mark.parametrize('path', [None, '/a/file'])
def test_what_the_machine_does_not_give_is_one_line_and_no_traceback(name, path):
  number = getattr(errno, name)
  fault = faults.of(OSError(number, os.strerror(number), path))
  assert isinstance(fault, EnvironmentFault) and str(fault).endswith(f': {os.strerror(number)}')
  assert path is None or str(fault).startswith(f'{path}: ')


def test_a_folder_in_the_place_of_a_file_is_called_by_its_path(tmp_path):
  with pytest.raises(IsADirectoryError) as caught:
    small_file.read(tmp_path)
  assert str(faults.of(caught.value)) == f'{tmp_path}: Is a directory'


def test_an_error_that_no_machine_causes_keeps_its_traceback():
  assert faults.of(OSError(errno.EINVAL, 'invalid argument')) is None and faults.of(ValueError('x')) is None
