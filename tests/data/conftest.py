"""Real sets of images are read once for all tests of data; a network that is not there; what an interpreter imports."""

import ast
import functools
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tff_cluster.data import tfds_images

# How often each digit occurs in MNIST's 60,000 training rows.
MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
SLOW = ('tensorflow', 'tensorflow_federated', 'tensorflow_datasets', 'absl')


@pytest.fixture(scope='package')
def images_once() -> Iterator[None]:
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(tfds_images, 'load', functools.cache(tfds_images.load))
    yield


@pytest.fixture
def no_network(monkeypatch):
  def refuse(*_, **__):
    raise urllib.error.URLError('Name or service not known')

  monkeypatch.setattr(urllib.request, 'urlopen', refuse)


def slow_imports(program: str) -> list[str]:
  """Returns what of SLOW a program imports that is run by a fresh interpreter and says nothing on stderr."""
  ending = f'\nimport sys\nprint([name for name in {SLOW} if name in sys.modules])\n'
  done = subprocess.run([sys.executable, '-c', program + ending], capture_output=True, text=True, check=True)
  assert done.stderr == ''
  return ast.literal_eval(done.stdout)
