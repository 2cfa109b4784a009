"""What a run ran on, for environment.json and results.json; imports none of the packages it names."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
from typing import Any

import tff_cluster

_PACKAGES = (
    'absl-py', 'matplotlib', 'networkx', 'numpy', 'scikit-learn', 'scipy', 'tensorflow', 'tensorflow-datasets',
    'tensorflow-federated',
)  # fmt: skip


def describe_environment() -> dict[str, Any]:
  """Returns python, packages {name: version} (installed ones), machine, cores and started (ISO time, UTC)."""
  return {
    'python': platform.python_version(),
    'packages': {
      **{name: version for name in _PACKAGES if (version := _version(name))},
      'tff_cluster': tff_cluster.__version__,
    },
    'machine': platform.platform(),
    'cores': available_cores(),
    'started': datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds'),
  }


def versions() -> dict[str, str]:
  """Returns the versions of this package, TensorFlow and TFF by name; 'not installed' where one is missing."""
  others = ('tensorflow', 'tensorflow-federated')
  return {
    'tff_cluster': tff_cluster.__version__,
    **{name: _version(name) or 'not installed' for name in others},
  }


def about_worker() -> dict[str, Any]:
  """Returns what decides whether workers compute alike: python, packages {name: version} and the processor's
  instruction sets that TensorFlow's kernels choose by, `instructions` (sorted; empty where the system does not tell).
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


def _version(name: str) -> str | None:
  try:
    return importlib.metadata.version(name)
  except importlib.metadata.PackageNotFoundError:
    return None
