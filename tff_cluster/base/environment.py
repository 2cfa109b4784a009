"""What a run ran on, for environment.json and results.json; imports none of the packages it names."""

import dataclasses
import datetime
import functools
import importlib.metadata
import os
import pathlib
import platform
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

import tff_cluster
from tff_cluster.base import records

# Raised when a change of the engine changes the bits of a round, so that old artifacts are not gone on with.
ENGINE = 3
_PACKAGES = (
    'absl-py', 'matplotlib', 'networkx', 'numpy', 'scikit-learn', 'scipy', 'tensorflow', 'tensorflow-datasets',
    'tensorflow-federated',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Environment(records.Record):
  """What a run ran on.

  Attributes:
    python: Its version.
    packages: Versions of those that are installed, by name.
    machine: Operating system and processor.
    cores: Those that this process may use.
    started: ISO time of its beginning, UTC.
    engine: The ENGINE that trained; 0 where an earlier version did not tell.
    commit: Of the checkout that the code lies in, with '-dirty' where it was changed; empty where it is none.

  Of a run that was gone on with, packages, machine and commit name all that it ran on, in their order.
  """

  python: str
  packages: dict[str, str]
  machine: str
  cores: int
  started: str
  engine: int = records.optional(0)
  commit: str = records.optional('')


def machines(found: Iterable[Environment]) -> str:
  """Returns all machines, each once: 'Linux-6.1-x86_64, 4 cores; …'."""
  return '; '.join(dict.fromkeys(f'{each.machine}, {each.cores} cores' for each in found))


def describe_environment() -> Environment:
  """Returns what this process runs on, and the time."""
  return Environment(
    python=platform.python_version(),
    packages={
      **{name: version for name in _PACKAGES if (version := _version(name))},
      'tff_cluster': tff_cluster.__version__,
    },
    machine=platform.platform(),
    cores=available_cores(),
    started=datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds'),
    engine=ENGINE,
    commit=_commit(),
  )


def versions() -> dict[str, str]:
  """Returns the versions of this package, TensorFlow and TFF by name; 'not installed' where one is missing."""
  others = ('tensorflow', 'tensorflow-federated')
  return {
    'tff_cluster': tff_cluster.__version__,
    **{name: _version(name) or 'not installed' for name in others},
  }


def version_lines() -> str:
  """Returns `versions` as programs print them, a line each."""
  return '\n'.join(f'{name} {number}' for name, number in versions().items())


def gone_on(before: Environment, now: Environment) -> Environment:
  """Returns what a run ran on that is gone on with: what it began on, and each other machine, commit and version that followed."""

  def told(one: str, other: str, between: str) -> str:
    return between.join(dict.fromkeys(filter(None, [*one.split(between), other])))

  return dataclasses.replace(
    before,
    packages={
      name: told(before.packages.get(name, ''), now.packages.get(name, ''), ', ')
      for name in before.packages | now.packages
    },
    machine=told(before.machine, now.machine, '; '),
    engine=min(before.engine, now.engine),
    commit=told(before.commit, now.commit, ', '),
  )


@functools.cache
def about_worker() -> Mapping[str, Any]:
  """Returns what decides whether workers compute alike: python, packages {name: version} and the processor's
  instruction sets that TensorFlow's kernels choose by, `instructions` (sorted; empty where the system does not tell).

  It is looked up once, because each task of a cluster asks.
  """
  return {
    'python': platform.python_version(),
    'packages': {name: _version(name) for name in ('tensorflow', 'tensorflow-federated')},
    'instructions': _instructions(),
  }


def _instructions() -> list[str]:
  try:
    lines = pathlib.Path('/proc/cpuinfo').read_text().splitlines()
  except OSError:
    return []
  flags = next((line.partition(':')[2].split() for line in lines if line.startswith('flags')), [])
  return sorted(flag for flag in flags if flag.startswith(('avx', 'amx', 'fma', 'sse4')))


def available_cores() -> int:
  """Returns the cores that this process may use, which containers make fewer than the machine has."""
  if hasattr(os, 'sched_getaffinity'):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


@functools.cache
def _commit() -> str:
  root = pathlib.Path(tff_cluster.__file__).parents[1]
  if not (root / '.git').exists():
    return ''
  try:
    asked = ['git', '-C', str(root), 'describe', '--always', '--dirty', '--abbrev=12', '--exclude=*']
    return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
  except (OSError, subprocess.SubprocessError):
    return ''


def _version(name: str) -> str | None:
  try:
    return importlib.metadata.version(name)
  except importlib.metadata.PackageNotFoundError:
    return None
