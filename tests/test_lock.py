"""What is installed is what requirements.lock says, no more and no less; and the lock has what is asked for, and no more."""

import importlib.metadata
import pathlib
import platform
import re
import sysconfig
from collections.abc import Iterable, Mapping

import hypothesis
from hypothesis import strategies as st
from packaging import requirements, specifiers, utils, version

from tests.test_readme import asked_for, locked

ROOT = pathlib.Path(__file__).parents[1]
# pip comes with the environment and installs the rest; tff_cluster is what is developed here.
UNLOCKED = {'pip', 'tff-cluster'}
# BUILD.md, "The environment": what pip check reports.
CONFLICTS = {'jax', 'jaxlib'}


def installed() -> list[importlib.metadata.Distribution]:
  """Returns what lies in the environment's own folders, whatever else the path of this process has."""
  folders = {sysconfig.get_path('purelib'), sysconfig.get_path('platlib')}
  return list(importlib.metadata.distributions(path=sorted(folders)))


def name_of(distribution: importlib.metadata.Distribution) -> str:
  return str(utils.canonicalize_name(distribution.metadata['Name']))


def differences(found: Iterable[tuple[str, str]], pins: Mapping[str, version.Version]) -> list[str]:
  """Returns a line for each package that is missing, installed twice, or not the locked one.

  Args:
    found: (package, version) of each that is installed.
    pins: {package: version} of the lock.
  """
  found = sorted(found)
  names = [name for name, _ in found]
  lines = [
    f'{name} {number}: not in the lock' for name, number in found if name not in pins and name not in UNLOCKED
  ]
  lines += [f'{name} {pin}: not installed' for name, pin in pins.items() if name not in names]
  lines += [
    f'{name} {number}: the lock says {pins[name]}'
    for name, number in found
    if name in pins and version.Version(number) != pins[name]
  ]
  return lines + [f'{name}: installed more than once' for name in sorted(set(names)) if names.count(name) > 1]


def needs(distribution: importlib.metadata.Distribution, extras: set[str]) -> list[requirements.Requirement]:
  """Returns what a package asks for here: on this Python and system, with these extras."""
  wanted = [requirements.Requirement(line) for line in distribution.requires or []]
  return [
    each
    for each in wanted
    if each.marker is None or any(each.marker.evaluate({'extra': extra}) for extra in ('', *extras))
  ]


def test_what_is_installed_is_what_the_lock_says():
  found = [(name_of(each), each.version) for each in installed()]
  assert differences(found, locked()) == []


@hypothesis.given(
  st.dictionaries(st.sampled_from('abcdefgh'), st.sampled_from(['1', '2.3', '2023.4.1']), min_size=1),
  st.data(),
)
def test_one_package_more_less_twice_or_in_another_version_would_be_noticed(numbers, data):
  pins = {name: version.Version(number) for name, number in numbers.items()}
  found = [*numbers.items(), ('pip', '1')]
  assert differences(found, pins) == []
  name = data.draw(st.sampled_from(sorted(pins)))
  other = [pair for pair in found if pair[0] != name]
  assert differences(other, pins) == [f'{name} {pins[name]}: not installed']
  assert differences([*other, (name, '0.0.1')], pins) == [f'{name} 0.0.1: the lock says {pins[name]}']
  assert differences([*found, ('stranger', '1.0')], pins) == ['stranger 1.0: not in the lock']
  assert differences([*found, (name, str(pins[name]))], pins) == [f'{name}: installed more than once']


def test_the_lock_has_what_the_packages_ask_for_and_nothing_that_nobody_asks_for():
  by_name = {name_of(each): each for each in installed()}
  waiting = [(str(utils.canonicalize_name(each.name)), each.extras) for each in asked_for('requirements.in')]
  reached: dict[str, set[str]] = {}
  while waiting:
    name, extras = waiting.pop()
    if name in reached and extras <= reached[name]:
      continue
    reached[name] = reached.get(name, set()) | extras
    waiting += [
      (str(utils.canonicalize_name(each.name)), each.extras) for each in needs(by_name[name], reached[name])
    ]
  assert set(reached) == set(locked())


def test_the_lock_fits_what_the_packages_ask_for_but_for_the_overrides():
  pins = locked()
  overrides = {str(utils.canonicalize_name(each.name)) for each in asked_for('requirements.overrides.txt')}
  unmet = {
    str(utils.canonicalize_name(each.name))
    for distribution in installed()
    if name_of(distribution) in pins
    for each in needs(distribution, set())
    if not each.specifier.contains(pins[str(utils.canonicalize_name(each.name))], prereleases=True)
  }
  assert unmet == CONFLICTS
  assert unmet <= overrides


def test_every_locked_package_allows_this_python_and_setup_cfg_asks_for_locked_ones_only():
  for distribution in installed():
    allowed = specifiers.SpecifierSet(distribution.metadata['Requires-Python'] or '')
    assert allowed.contains(platform.python_version()), name_of(distribution)
  wanted = re.search(r'^install_requires =\n((?: +\S+\n)+)', (ROOT / 'setup.cfg').read_text(), re.M)
  assert wanted is not None
  assert set(wanted[1].split()) <= set(locked())


def test_make_and_ci_install_from_the_lock_with_hashes_and_nothing_else():
  places = [ROOT / 'Makefile', ROOT / '.ci/run']
  lines = [
    line
    for path in places
    for line in path.read_text().splitlines()
    if re.search(r'\bpip\b.* install\b', line)
  ]
  assert len(lines) == 1
  assert lines[0].endswith('--no-deps --require-hashes -r requirements.lock')
  # CI begins with none, so that what was installed by hand does not hide a missing line of the lock.
  script = (ROOT / '.ci/run').read_text()
  assert script.index('rm -rf .venv') < script.index('make check') < script.index('make test')
