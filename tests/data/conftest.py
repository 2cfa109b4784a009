"""Real sets of images are read once for all tests of data."""

import functools
from collections.abc import Iterator

import pytest

from tff_cluster.data import tfds_images


@pytest.fixture(scope='package')
def images_once() -> Iterator[None]:
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(tfds_images, 'load', functools.cache(tfds_images.load))
    yield
