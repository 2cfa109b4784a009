"""Rules of Phase 3 that a user names: RULE,KEY=VALUE,..., where RULE is an import path or a built-in rule that not every run has.

An import path leads to a function, whose parameters' names say what it is given and whether it mixes models or combines
predictions (aggregation/rule.py), or to a `Rule`. Other parameters are its options.
"""

import dataclasses
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import MixingRule, PredictionRule, Rule, parameters
from tff_cluster.base import imports, words
from tff_cluster.base.errors import InputError, argument, shown

# Names stand in results and on pages, and in front of numbers in columns.
_NAME = re.compile(r'[A-Za-z0-9_-]{1,100}')
_LONGEST_WORDS = 80


def read(text: str) -> Rule:
  """Returns the rule that a text of `aggregation` names; an import path's module is run for that.

  Raises:
    InputError: naming the text and the first part of it that is wrong.
  """
  path, *parts = [part.strip() for part in text.split(',')]
  found = imports.load('aggregation', path) if imports.is_path(path) else None
  try:
    given = dict(_pairs(parts))
    rule = _built_in(path) if found is None else _brought(path.rpartition(':')[2], found)
    name = given.pop('name', rule.name)
    if not _NAME.fullmatch(name):
      raise InputError(f'name={name}: a rule’s name has letters, digits, "-" and "_" only, at most 100')
    options = {**rule.options, **{key: imports.plain_value(value) for key, value in given.items()}}
    _check(rule, options)
  except InputError as error:
    raise InputError(f'{argument("aggregation", text)}: {error}') from None
  told = rule.words if name == rule.name else f'{rule.words} ({name})'
  return dataclasses.replace(rule, name=name, words=told, path=text, options=options, roles=frozenset())


def _pairs(parts: Sequence[str]) -> list[tuple[str, str]]:
  pairs: list[tuple[str, str]] = []
  for part in parts:
    key, equals, value = part.partition('=')
    if not (key and equals and value):
      raise InputError(f'{part!r} is not KEY=VALUE')
    if key in dict(pairs):
      raise InputError(f'{key} is given twice')
    pairs.append((key, value))
  return pairs


def _built_in(name: str) -> Rule:
  rule = rules.RULES.get(name)
  if isinstance(rule, MixingRule):
    raise InputError(f'every Phase 3 has {name}; leave it out')
  if rule is None or _out_of_reach(rule):
    allowed = [
      n for n, each in rules.RULES.items() if not (isinstance(each, MixingRule) or _out_of_reach(each))
    ]
    raise InputError(f'allowed are {", ".join(allowed)}, or package.module:function')
  return rule


def _brought(attribute: str, found: Any) -> Rule:
  if isinstance(found, Rule):
    return dataclasses.replace(found, name=attribute, code=imports.code_of(found.function))
  if not callable(found) or isinstance(found, type):
    raise InputError(
      f'expected a function, or a tff_cluster.aggregation.rule.Rule, found {shown(type(found).__name__)}'
    )
  try:
    names = parameters(found)
  except (TypeError, ValueError):
    raise InputError('its parameters cannot be told; give a function that is written in Python') from None
  kind = PredictionRule if 'probabilities' in names else MixingRule
  told = words.first_line(
    inspect.getdoc(imports.without_arguments(found)) or '', attribute.replace('_', ' ')
  ).rstrip('.')
  if len(told) > _LONGEST_WORDS:
    told = f'{told[: _LONGEST_WORDS - 1]}…'
  return kind(name=attribute, words=told, function=found, code=imports.code_of(found))


def _check(rule: Rule, options: Mapping[str, Any]) -> None:
  """Raises InputError where a function cannot be given what it asks for."""
  found = parameters(rule.function)
  named = {
    name: parameter
    for name, parameter in found.items()
    if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
  }
  own = [name for name in named if name not in rule.known]
  if unknown := [key for key in options if key not in own]:
    raise InputError(f'unknown key {unknown[0]!r}; known: {", ".join(["name", *own])}')
  if any(parameter.kind is parameter.POSITIONAL_ONLY for parameter in found.values()):
    raise InputError('its parameters must be given by name; leave out the / among them')
  missing = [name for name in own if named[name].default is inspect.Parameter.empty and name not in options]
  if missing or not rule.takes:
    asked = f'its parameter {missing[0]!r} is none of these' if missing else 'it has none of these parameters'
    raise InputError(
      f'{asked}, by which a rule is given what it asks for: {", ".join(MixingRule.known)} (it returns shares), or '
      f'{", ".join(PredictionRule.of_clients)} (it returns predictions)'
    )
  if beyond := _out_of_reach(rule):
    raise InputError(f'it needs {beyond[0]}, which no rule is given for clients’ rows')
  rule.check(options)


def _out_of_reach(rule: Rule) -> list[str]:
  return [name for name in rule.needs if isinstance(rule, PredictionRule) and name not in rule.of_clients]
