"""What is installed is what requirements.lock says, no more and no less; and the lock has what is asked for, and no more."""

import importlib.metadata
import itertools
import pathlib
import platform
import re
import sysconfig

import pytest
from packaging import requirements, specifiers, utils, version

ROOT = pathlib.Path(__file__).parents[1]
# pip comes with the environment and installs the rest; tff_cluster is what is developed here.
UNLOCKED = {'pip', 'tff-cluster'}
# BUILD.md, "The environment": what pip check reports.
CONFLICTS = {'jax', 'jaxlib'}


def locked(lock: str = 'requirements.lock') -> dict[str, version.Version]:
  pins = re.findall(r'^([A-Za-z0-9._-]+)==(\S+)', (ROOT / lock).read_text(), re.M)
  return {str(utils.canonicalize_name(name)): version.Version(number) for name, number in pins}


def asked_for(name: str) -> list[requirements.Requirement]:
  lines = (ROOT / name).read_text().splitlines()
  return [requirements.Requirement(line) for line in lines if line.strip() and not line.startswith('#')]


def installed() -> list[importlib.metadata.Distribution]:
  """Returns what lies in the environment's own folders, whatever else the path of this process has."""
  folders = {sysconfig.get_path('purelib'), sysconfig.get_path('platlib')}
  return list(importlib.metadata.distributions(path=sorted(folders)))


def name_of(given: importlib.metadata.Distribution | requirements.Requirement) -> str:
  name = given.name if isinstance(given, requirements.Requirement) else given.metadata['Name']
  return str(utils.canonicalize_name(name))


def needs(distribution: importlib.metadata.Distribution, extras: set[str]) -> list[requirements.Requirement]:
  """Returns what a package asks for here: on this Python and system, with these extras."""
  wanted = [requirements.Requirement(line) for line in distribution.requires or []]
  return [
    each
    for each in wanted
    if each.marker is None or any(each.marker.evaluate({'extra': extra}) for extra in ('', *extras))
  ]


def test_what_is_installed_is_what_the_lock_says():
  found = sorted((name_of(each), version.Version(each.version)) for each in installed())
  assert [pair for pair in found if pair[0] not in UNLOCKED] == sorted(locked().items())


def test_the_lock_has_what_the_packages_ask_for_and_nothing_that_nobody_asks_for():
  by_name = {name_of(each): each for each in installed()}
  waiting = [(name_of(each), each.extras) for each in asked_for('requirements.in')]
  reached: dict[str, set[str]] = {}
  while waiting:
    name, extras = waiting.pop()
    if name in reached and extras <= reached[name]:
      continue
    reached[name] = reached.get(name, set()) | extras
    waiting += [(name_of(each), each.extras) for each in needs(by_name[name], reached[name])]
  assert set(reached) == set(locked())


def test_the_lock_fits_what_the_packages_ask_for_but_for_the_overrides():
  pins = locked()
  overrides = {name_of(each) for each in asked_for('requirements.overrides.txt')}
  unmet = {
    name_of(each)
    for distribution in installed()
    if name_of(distribution) in pins
    for each in needs(distribution, set())
    if not each.specifier.contains(pins[name_of(each)], prereleases=True)
  }
  assert unmet == CONFLICTS
  assert unmet <= overrides


def test_every_locked_package_allows_this_python_and_setup_cfg_asks_for_locked_ones_only():
  for distribution in installed():
    allowed = specifiers.SpecifierSet(distribution.metadata.get('Requires-Python') or '')
    assert allowed.contains(platform.python_version()), name_of(distribution)
  wanted = re.search(r'^install_requires =\n((?: +\S+\n)+)', (ROOT / 'setup.cfg').read_text(), re.M)
  assert wanted is not None
  asked = {str(utils.canonicalize_name(name)) for name in wanted[1].split()}
  assert asked <= set(locked())
  # And for all that a run needs; of tensorflow-metadata there is a bound only.
  tools = {
    'pytest',
    'hypothesis',
    'mypy',
    'ruff',
    'ipykernel',
    'ipython',
    'jupyter-client',
    'setuptools',
    'wheel',
    'pyarrow',
  }
  assert {name_of(each) for each in asked_for('requirements.in')} - tools - {'tensorflow-metadata'} <= asked


def test_make_and_ci_install_from_the_lock_with_hashes_and_nothing_else():
  places = [ROOT / 'Makefile', ROOT / '.ci/run']
  lines = [
    line
    for path in places
    for line in path.read_text().splitlines()
    if re.search(r'\bpip\b.* install\b', line)
  ]
  assert len(lines) == 1
  assert lines[0].endswith('--no-deps --require-hashes -r $<')  # What the environment is made from:
  asked = re.findall(r'^\$\((\w*ENVIRONMENT)\): (\S+)$', places[0].read_text(), re.M)
  assert asked == [
    ('ENVIRONMENT', 'requirements.lock'),
    ('SITE_ENVIRONMENT', 'requirements-site.lock'),
  ]
  # CI begins with none, so that what was installed by hand does not hide a missing line of the lock.
  script = (ROOT / '.ci/run').read_text()
  assert script.index('rm -rf .venv') < script.index('check docs-check site') < script.index('make test')


@pytest.mark.parametrize('lock', ['requirements.lock', 'requirements-site.lock'])
def test_the_lock_has_a_hash_for_every_package_and_no_address(lock):
  text = (ROOT / lock).read_text()
  assert '://' not in text and '--index' not in text and '--find-links' not in text and ' @ ' not in text
  entries = [entry for entry in re.split(r'\n(?=\S)', text.strip()) if not entry.startswith('#')]
  for entry in entries:
    first, *hashes = entry.replace('\\\n', '\n').split('\n')
    assert re.fullmatch(r'[A-Za-z0-9._-]+(\[[a-z,]+\])?==\S+( ; .*)?', first.strip()), first
    assert hashes and all(re.fullmatch(r'\s*--hash=sha256:[0-9a-f]{64}\s*', line) for line in hashes), first
  assert len(entries) == len(locked(lock))


def test_the_lock_fits_what_is_asked_for_and_the_build_notes_give_a_reason_for_every_bound():
  pins = locked()
  table = (ROOT / 'BUILD.md').read_text().partition('### Why each pin is there')[2].partition('###')[0]
  for wanted in itertools.chain(asked_for('requirements.in'), asked_for('requirements.overrides.txt')):
    name = str(utils.canonicalize_name(wanted.name))
    assert name in pins and pins[name] in wanted.specifier, wanted
    assert not wanted.specifier or f'`{wanted}`' in table, wanted
  assert {utils.canonicalize_name(wanted.name) for wanted in asked_for('requirements-site.in')} <= set(
    locked('requirements-site.lock')
  )
