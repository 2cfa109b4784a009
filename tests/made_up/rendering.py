"""Whether the pictures of pages are rendered in tests: that takes most of the time, and few tests look at the files."""

import contextlib
from collections.abc import Iterator

import pytest

from tff_cluster.report.figures import base

_EMPTY = (b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>', b'\x89PNG\r\n\x1a\n')
_render = base.render


@contextlib.contextmanager
def off() -> Iterator[None]:
  """Figures are drawn into Matplotlib's objects, and empty files are written for them."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(base, 'render', lambda figure: _EMPTY)
    yield


@contextlib.contextmanager
def on() -> Iterator[None]:
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(base, 'render', _render)
    yield


@pytest.fixture(scope='session', autouse=True)
def unrendered() -> Iterator[None]:
  with off():
    yield


@pytest.fixture
def rendered() -> Iterator[None]:
  """In this test the files have the pictures."""
  with on():
    yield
