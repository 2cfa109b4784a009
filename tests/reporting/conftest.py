"""Pages are written without rendering their pictures, but where a test looks at them."""

from collections.abc import Iterator

import pytest
import rendering


@pytest.fixture(scope='session', autouse=True)
def _unrendered() -> Iterator[None]:
  with rendering.off():
    yield


@pytest.fixture
def rendered() -> Iterator[None]:
  """In this test the files have the pictures."""
  with rendering.on():
    yield
