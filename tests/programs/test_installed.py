"""The wheel: what is in it, and its program in a folder that holds nothing of this repository."""

import configparser
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from tests.programs.children import ROOT
from tff_cluster.cli import commands

PIP = (sys.executable, '-m', 'pip', '--disable-pip-version-check', '--quiet')


@pytest.fixture(scope='module')
def wheel(tmp_path_factory) -> pathlib.Path:
  """Builds it from a copy, without a network: setuptools leaves files beside what it builds."""
  folder = tmp_path_factory.mktemp('wheel')
  ignored = shutil.ignore_patterns('__pycache__')
  for name in ('tff_cluster', 'phases', 'flags'):
    shutil.copytree(ROOT / name, folder / 'copy' / name, symlinks=True, ignore=ignored)
  for name in ('setup.cfg', 'pyproject.toml', 'README.md'):
    shutil.copy(ROOT / name, folder / 'copy' / name)
  made = (
    'wheel',
    '--no-deps',
    '--no-build-isolation',
    '--no-index',
    f'--wheel-dir={folder}',
    folder / 'copy',
  )
  subprocess.run([*PIP, *made], check=True)
  (path,) = folder.glob('*.whl')
  return path


@pytest.fixture(scope='module')
def installed(wheel, tmp_path_factory) -> pathlib.Path:
  target = tmp_path_factory.mktemp('site')
  subprocess.run([*PIP, 'install', '--no-deps', '--no-index', f'--target={target}', wheel], check=True)
  return target


def test_the_wheel_has_the_library_the_programs_and_the_presets_and_nothing_else(wheel):
  files = [path for name in ('tff_cluster', 'phases') for path in (ROOT / name).rglob('*') if path.is_file()]
  ours = {str(path.relative_to(ROOT)) for path in files if '__pycache__' not in path.parts}
  ours |= {f'tff_cluster/presets/{path.name}' for path in (ROOT / 'flags').glob('*.flags')}
  with zipfile.ZipFile(wheel) as archive:
    names = {name for name in archive.namelist() if '.dist-info/' not in name}
    (entries,) = (name for name in archive.namelist() if name.endswith('/entry_points.txt'))
    parsed = configparser.ConfigParser()
    parsed.read_string(archive.read(entries).decode())
  assert names == ours
  assert dict(parsed['console_scripts']) == {commands.PROGRAM: 'phases.__main__:main'}


def call(
  installed: pathlib.Path, folder: pathlib.Path, *arguments: str
) -> 'subprocess.CompletedProcess[str]':
  """Calls the program that was installed, in a folder of its own."""
  return subprocess.run(
    [sys.executable, installed / 'bin' / commands.PROGRAM, *arguments],
    cwd=folder, env=os.environ | {'PYTHONPATH': str(installed)}, capture_output=True, text=True,
  )  # fmt: skip


def test_the_installed_program_finds_its_presets_anywhere(installed, tmp_path):
  done = call(installed, tmp_path, 'partition', '--flagfile=flags/demo.flags', '--output_dir=here')
  assert (done.returncode, done.stderr) == (0, '')
  assert len((tmp_path / 'here/partition.csv').read_text().splitlines()) == 1 + 20  # Clients of the demo.
  wrong = call(installed, tmp_path, 'partition', '--flagfile=flags/dmo.flags', '--output_dir=here')
  assert wrong.returncode == 2 and wrong.stderr.startswith('error: --flagfile=flags/dmo.flags: ')


def test_the_installed_programs_answer_as_modules_and_as_commands(installed, tmp_path):
  for name, expected in (('--help', 0), ('nothing', 2)):
    done = call(installed, tmp_path, name)
    assert done.returncode == expected and ' reproduce' in done.stdout + done.stderr
  as_module = subprocess.run(
    [sys.executable, '-m', 'phases.store', '--help'],
    cwd=tmp_path, env=os.environ | {'PYTHONPATH': str(installed)}, capture_output=True, text=True, check=True,
  )  # fmt: skip
  as_command = call(installed, tmp_path, 'store', '--help')
  assert as_command.stdout == as_module.stdout.replace(
    'usage: python -m phases.store', 'usage: tff-cluster store'
  )
