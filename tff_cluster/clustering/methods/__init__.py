"""The clustering methods: one module each, found by being here; and those of a user, by import path.

A module holds one object `METHOD` (clustering/method.py). No list of names stands anywhere.
"""

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base.errors import InputError, argument, shown
from tff_cluster.base.words import plural
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Method, Rows

if TYPE_CHECKING:
  from tff_cluster.clustering.clustering_config import ClusteringConfig
  from tff_cluster.clustering.outcome import Outcome
  from tff_cluster.clustering.signatures import Signatures

# The registry is made when it is first asked for.
METHODS: Mapping[str, Method[Any]]


def __getattr__(name: str) -> Any:
  if name == 'METHODS':
    return _found()
  raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def find(name: str) -> Method[Any]:
  """Returns the method of a name, or of an import path package.module:attribute, whose module is run for that.

  Raises:
    InputError: if there is no such method.
  """
  if ':' in name:
    from tff_cluster.clustering import external

    return external.load(name)
  if name not in _found():
    raise InputError(
      f'{argument("method", name)}: allowed are {", ".join(_found())}, or package.module:attribute'
    )
  return _found()[name]


def with_option(option: str) -> list[str]:
  """Returns the names of the methods that an option applies to."""
  return [name for name, method in _found().items() if option in method.fields()]


def cluster(
  config: 'ClusteringConfig',
  signatures: 'Signatures',
  seed: int,
  truths: Mapping[str, np.ndarray] | None = None,
  client_ids: tuple[str, ...] | None = None,
  rows: Rows | None = None,
) -> 'Outcome':
  """Clusters the clients.

  Args:
    config: Method and its parameters.
    signatures: The clients' vectors.
    seed: The experiment's seed; methods that draw do so through tff_cluster.base.seeding.
    truths: Planted memberships by name, float[groups, clients]; only an oracle gets to see them.
    client_ids: The clients of the truths; those of the signatures by default.
    rows: The clients' training rows; only a method that reads them gets to see them.

  Raises:
    InputError: if the method is unknown, its parameters do not fit these clients, or a user's method assigns others.
  """
  return ask(config, Evidence(signatures, seed, truths, client_ids, rows))


def ask(config: 'ClusteringConfig', evidence: Evidence, options: Any = None) -> 'Outcome':
  """Returns what a method makes of some evidence, of which it sees what it may look at.

  Args:
    options: In place of those of the configuration.

  Raises:
    InputError: as `cluster`.
  """
  seen = evidence.seen_by(config.rule)
  found = config.rule.cluster(config.options if options is None else options, seen)
  assignment = getattr(found, 'assignment', None)
  if not isinstance(assignment, ClusterAssignment):
    raise InputError(
      f'{config.method} returned {shown(type(found).__name__)}; expected an Outcome whose assignment is a ClusterAssignment'
    )
  if tuple(assignment.client_ids) != seen.client_ids:
    raise InputError(
      f'{config.method} assigned {plural(assignment.num_clients, "client")}; expected the {len(seen.client_ids)} of evidence.client_ids, in '
      'their order'
    )
  return found


@functools.cache
def _found() -> dict[str, Method[Any]]:
  names = sorted(module.name for module in pkgutil.iter_modules(__path__))
  found = [importlib.import_module(f'{__name__}.{name}').METHOD for name in names]
  return {method.name: method for method in found}
