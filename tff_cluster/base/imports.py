"""Import paths that a user gives, package.module:attribute. Importing one runs its module."""

import contextlib
import functools
import importlib
import inspect
import re
import sys
from typing import Any

from tff_cluster.base import digests, fields, words
from tff_cluster.base.errors import InputError, argument

# By name the spec of each imported module, which another one takes the place of where it is imported anew, and the digest of its text.
_texts: dict[str, tuple[Any, str]] = {}
_WORDS = {'true': True, 'false': False, 'none': None}


def is_path(text: Any) -> bool:
  """Tells whether a text is an import path, and no name."""
  return isinstance(text, str) and ':' in text


def load(name: str, path: str) -> Any:
  """Returns what an import path names; the folder that a program was started in is searched too.

  Args:
    name: Which argument gave the path, for messages.
    path: package.module:attribute.

  Raises:
    InputError: if it is no such path, or cannot be imported.
  """
  module, _, attribute = path.partition(':')
  if not all(part.isidentifier() for part in [*module.split('.'), attribute]):
    raise InputError(f'{argument(name, path)}: expected an import path, package.module:attribute')
  if '' not in sys.path:
    sys.path.insert(0, '')
  try:
    found = getattr(importlib.import_module(module), attribute)
    code_of_module(module)
    return found
  except (Exception, SystemExit) as error:
    # The module is the user's: importing it can fail in any way. A signal's end is a SystemExit of a kind of its own.
    if isinstance(error, SystemExit) and type(error) is not SystemExit:
      raise
    raise InputError(
      f'{argument(name, path)} cannot be imported: {_cause(error, module, attribute)}'
    ) from error


def _cause(error: BaseException, module: str, attribute: str) -> str:
  """Returns what is wrong with an import path, or what its module raised."""
  if isinstance(error, ModuleNotFoundError) and f'{module}.'.startswith(f'{error.name}.'):
    return f'there is no module {error.name!r}'
  if isinstance(error, AttributeError) and error.name == attribute and error.obj is sys.modules.get(module):
    return f'module {module!r} has no attribute {attribute!r}'
  return f'{type(error).__name__}: {words.message_of(error)}'


def code_of(thing: Any) -> str | None:
  """Returns the digest of a function's or class's module, or of itself where it was written into a notebook; None where none is at hand."""
  thing = without_arguments(thing)
  module = inspect.getmodule(thing)
  if module is not None and (code := code_of_module(module.__name__)) is not None:
    return code
  with contextlib.suppress(OSError, TypeError):
    return digests.of_json(inspect.getsource(inspect.unwrap(thing)))
  return None


def code_of_module(name: str) -> str | None:
  """Returns the digest of the text of an imported module as it runs, not as its file was edited since; None where none is at hand."""
  if (module := sys.modules.get(name)) is None:
    return None
  spec = getattr(module, '__spec__', None)
  if name in _texts and _texts[name][0] is spec:
    return _texts[name][1]
  with contextlib.suppress(OSError, TypeError):
    _texts[name] = spec, digests.of_json(inspect.getsource(module))
    return _texts[name][1]
  return None


def without_arguments(thing: Any) -> Any:
  """Returns the function that a functools.partial is made of; anything else as it is."""
  while isinstance(thing, functools.partial):
    thing = thing.func
  return thing


def plain_value(text: str) -> Any:
  """Returns what an option of a user's code is given as: a number, true, false, none, or else the text."""
  if text.lower() in _WORDS:
    return _WORDS[text.lower()]
  if re.fullmatch(r'[+-]?[0-9]{1,18}', text):
    return int(text)
  try:
    return fields.number(text)
  except ValueError:
    return text
