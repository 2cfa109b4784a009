"""One finished run that tests of folders read, or copy and damage. Programs that run in this process render no pictures."""

import pathlib
import shutil
from collections.abc import Iterator

import pytest

from tests.made_up.rendering import unrendered
from tests.programs import children

__all__ = ['unrendered']


@pytest.fixture
def without_report() -> Iterator[None]:
  with children.no_report():
    yield


@pytest.fixture(scope='session')
def finished(tmp_path_factory) -> pathlib.Path:
  """The folder of children.run_small with exported models, without a report. Nobody writes in it."""
  folder = tmp_path_factory.mktemp('finished') / 'run'
  with children.no_report():
    assert children.run_small(folder, '--export_models') == 0
  return folder


@pytest.fixture
def copy(finished, tmp_path) -> pathlib.Path:
  shutil.copytree(finished, tmp_path / 'run')
  return tmp_path / 'run'
