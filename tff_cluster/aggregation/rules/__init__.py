"""The rules of Phase 3: one module each, found by being here; and those of a user, by import path.

A module holds one object `RULE` (aggregation/rule.py). No list of names stands anywhere.
"""

import functools
import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from typing import Any

from tff_cluster.aggregation.rule import MixingRule, PredictionRule, Rule
from tff_cluster.base.errors import InputError

# The registry, in the order of pages, is made when it is first asked for.
RULES: Mapping[str, Rule]


def __getattr__(name: str) -> Any:
  if name == 'RULES':
    return _found()
  raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def mixing_rules() -> list[MixingRule]:
  """Returns the built-in mixing rules, which every Phase 3 has."""
  return [rule for rule in _found().values() if isinstance(rule, MixingRule)]


def prediction_rules() -> list[PredictionRule]:
  """Returns the built-in rules of predictions, which experts have."""
  return [rule for rule in _found().values() if isinstance(rule, PredictionRule)]


def with_role(role: str) -> Any:
  """Returns the built-in rule that has a role (aggregation/rule.py)."""
  return next(rule for rule in _found().values() if role in rule.roles)


def added(texts: Sequence[str]) -> list[Rule]:
  """Returns the rules that `aggregation` names beside those that every Phase 3 has.

  Raises:
    InputError: if one cannot be had, or results could not tell two of them apart.
  """
  from tff_cluster.aggregation import of_users

  found = [of_users.read(text) for text in texts]
  taken = {rule.name.lower() for rule in mixing_rules()}
  for rule in found:
    if rule.name.lower() in taken:
      raise InputError(
        f'{rule.called}: two rules are called {rule.name!r}; tell them apart with name=..., for instance '
        f'name={rule.name}_2'
      )
    taken.add(rule.name.lower())
  return found


@functools.cache
def _found() -> dict[str, Rule]:
  names = [module.name for module in pkgutil.iter_modules(__path__)]
  found = [importlib.import_module(f'{__name__}.{name}').RULE for name in names]
  return {rule.name: rule for rule in sorted(found, key=lambda rule: (rule.position, rule.name))}
