"""Disks of which tests say how large they are."""

import contextlib
import os
import pathlib
import subprocess
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def disk(folder: pathlib.Path, options: str) -> Iterator[pathlib.Path]:
  """Mounts a disk with these options of tmpfs while it lasts; who must not is skipped."""
  folder.mkdir()
  command = ['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', str(folder)]
  if os.geteuid() or subprocess.run(command, capture_output=True).returncode:
    pytest.skip('only root can mount a disk')
  yield folder
  subprocess.run(['umount', str(folder)], check=True)
