"""Whether a model's function is there, told without importing its module, which may import TensorFlow for seconds."""

import ast
import importlib.machinery
import sys
import tokenize
from collections.abc import Iterator

from tff_cluster.base import digests, imports
from tff_cluster.base.errors import InputError, argument
from tff_cluster.models.builtin import MODELS

# A module that does one of these can have names that its text does not show.
_DYNAMIC = {'globals', 'vars', 'locals', 'exec', 'eval', 'setattr', '__getattr__', '__path__', 'modules'}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def check(name: str) -> None:
  """Checks that a model's module is there, can be parsed, and has the function. Nothing of it is run.

  Args:
    name: A built-in name, or package.module:function.

  Raises:
    InputError: if something is missing. A name that comes about only when the module runs is taken to be there.
  """
  if name in MODELS:
    return
  _look_here()
  module, _, function = name.partition(':')
  names = _names(name, module)
  if names is not None and function not in names:
    raise InputError(
      f'{argument("model", name)} cannot be imported: module {module!r} has no function {function!r}'
    )


def _look_here() -> None:
  if '' not in sys.path:  # As when it is imported.
    sys.path.insert(0, '')


def code(name: str) -> str | None:
  """Returns the digest of the module that a model's function is in; None of a built-in one, and where there is no file of it.

  Where the module is imported, it is of the text that was imported.
  """
  if name in MODELS:
    return None
  _look_here()
  module = name.partition(':')[0]
  if (known := imports.code_of_module(module)) is not None:
    return known
  spec = _spec(module)
  if spec is None or spec.origin is None or not spec.origin.endswith('.py'):
    return None
  with tokenize.open(spec.origin) as file:
    return digests.of_json(file.read())


def _names(name: str, module: str) -> set[str] | None:
  """Returns the names that a module has; None where only running it, or a package around it, would tell."""
  if module in sys.modules:
    return set(dir(sys.modules[module]))
  package = module.rpartition('.')[0]
  if package and _names(name, package) is None:
    return None
  try:
    spec = _spec(module)
  except KeyError:
    # A folder without __init__.py in a package is looked up in sys.modules, where the package is not.
    return None
  if spec is None:
    raise InputError(f'{argument("model", name)} cannot be imported: there is no module {module!r}')
  if spec.origin is None:
    # A folder without __init__.py holds modules only.
    return set() if spec.submodule_search_locations is not None else None
  if not spec.origin.endswith('.py'):
    return None
  tree = _parsed(name, spec.origin)
  return None if any(_is_dynamic(node) for node in ast.walk(tree)) else set(_bound(tree))


def _spec(module: str) -> importlib.machinery.ModuleSpec | None:
  """Returns where a module is. Unlike importlib.util.find_spec it imports no package around it."""
  package = module.rpartition('.')[0]
  path = None
  if package in sys.modules:
    path = getattr(sys.modules[package], '__path__', None)
  elif package and (around := _spec(package)):
    path = around.submodule_search_locations
  if package and path is None:
    return None
  return next((found for finder in sys.meta_path if (found := finder.find_spec(module, path))), None)


def _parsed(name: str, path: str) -> ast.Module:
  try:
    with tokenize.open(path) as file:
      return ast.parse(file.read())
  except (SyntaxError, ValueError, RecursionError) as error:
    raise InputError(
      f'{argument("model", name)} cannot be imported: {type(error).__name__} in {path}: {error}'
    ) from error


def _is_dynamic(node: ast.AST) -> bool:
  if isinstance(node, ast.ImportFrom):
    return any(alias.name == '*' for alias in node.names)
  own = getattr(node, 'id', None) or getattr(node, 'attr', None) or getattr(node, 'name', None)
  return isinstance(node, ast.Global) or own in _DYNAMIC


def _bound(node: ast.AST) -> Iterator[str]:
  """Yields the names that the statements of a module bind, in branches and loops too, but not within functions and classes."""
  for child in ast.iter_child_nodes(node):
    if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
      yield child.name
    elif isinstance(child, (ast.Import, ast.ImportFrom)):
      yield from ((alias.asname or alias.name).partition('.')[0] for alias in child.names)
    elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
      yield child.id
    if not isinstance(child, _SCOPES):
      yield from _bound(child)
