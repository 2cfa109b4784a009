"""The data sets: one module each, found by being here.

A module holds one object `DATASET` (data/dataset.py). No list of names stands anywhere; none imports anything slow.
"""

import functools
import importlib
import pkgutil
from collections.abc import Mapping

from tff_cluster.base import fields
from tff_cluster.base.errors import InputError, argument
from tff_cluster.data.dataset import Dataset


@functools.cache
def registered() -> Mapping[str, Dataset]:
  """Returns the data sets by name, in the order in which messages name them."""
  names = [module.name for module in pkgutil.iter_modules(__path__)]
  found = [importlib.import_module(f'{__name__}.{name}').DATASET for name in names]
  return {each.name: each for each in sorted(found, key=lambda each: (each.position, each.name))}


def find(name: str) -> Dataset:
  """Returns the data set that `dataset` names.

  Raises:
    InputError: if there is none of this name.
  """
  for each in registered().values():
    if fields.is_among(name, (each.name,)):
      return each
  raise InputError(f'{argument("dataset", name)}: allowed are {", ".join(registered())}')


def of_users() -> tuple[str, ...]:
  """Returns the names of the data sets whose rows are users' own."""
  return tuple(name for name, each in registered().items() if each.is_of_users)


def with_option(option: str) -> tuple[str, ...]:
  """Returns the names of the data sets that a field of DataConfig applies to."""
  return tuple(name for name, each in registered().items() if option in each.options)
