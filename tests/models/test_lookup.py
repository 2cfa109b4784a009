"""Whether a model's function is there is read from the text of its module, which is not run."""

import importlib
import sys

import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.models import lookup

# Whoever imports this fails, and so does every test.
TEXT = """
raise SystemError('imported')
import os.path as path
from collections import deque as queue
def small(shape, classes): ...
class Large: ...
if small:
  try:
    medium = small
  except Exception:
    async def other(): ...
for looped, (second, *rest) in []: ...
def outer():
  hidden = 1
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
  """Returns a function that writes a module of this text and gives its name."""
  monkeypatch.syspath_prepend(tmp_path)

  def write(text, name='lookup_made'):
    path = tmp_path / (name.replace('.', '/') + '.py')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding='utf-8')
    return name

  return write


def test_what_a_module_binds_is_there_and_nothing_else(module):
  name = module(TEXT)
  for bound in ('small', 'Large', 'medium', 'other', 'path', 'queue', 'looped', 'second', 'rest', 'outer'):
    lookup.check(f'{name}:{bound}')
  for missing in ('hidden', 'shape', 'deque', 'nothing'):
    with pytest.raises(InputError, match=f"module 'lookup_made' has no function '{missing}'"):
      lookup.check(f'{name}:{missing}')


@pytest.mark.parametrize(
  'text',
  [
    'from os import *', 'globals()["made"] = 1', 'def __getattr__(name): ...', 'exec("made = 1")',
    'import sys\nsetattr(sys.modules[__name__], "made", 1)', 'def f():\n  global made\n  made = 1\nf()',
  ],
  ids=repr,
)  # fmt: skip
def test_names_that_come_about_by_running_are_taken_to_be_there(text, module):
  lookup.check(f'{module(text)}:made')


def test_modules_within_packages(module):
  module('', 'lookup_package.__init__')
  module('', 'lookup_package.deep.__init__')
  name = module(TEXT, 'lookup_package.deep.models')
  lookup.check(f'{name}:small')
  with pytest.raises(InputError, match="has no function 'nothing'"):
    lookup.check(f'{name}:nothing')
  for missing in ('lookup_package.nowhere', 'lookup_package.deep.models.below', 'lookup_nowhere.below'):
    with pytest.raises(InputError, match='there is no module'):
      lookup.check(f'{missing}:small')
  lookup.check(f'{module(TEXT, "lookup_package.bare.models")}:small')
  lookup.check(f'{module(TEXT, "lookup_bare.models")}:small')
  # A package that makes its modules itself is believed.
  module('import sys\nsys.modules["lookup_maker.made"] = sys', 'lookup_maker.__init__')
  lookup.check('lookup_maker.made:f')
  assert not [name for name in sys.modules if name.startswith('lookup_')]


def test_what_is_no_module_of_text(module, tmp_path):
  (tmp_path / 'lookup_folder').mkdir()
  for name, words in (
    (module('def ('), r'SyntaxError in .*lookup_made\.py'),
    ('lookup_folder', "has no function 'f'"),
    ('sys', "'sys' has no function 'f'"),
  ):
    with pytest.raises(InputError, match=words):
      lookup.check(f'{name}:f')
  # Imported already, compiled, or large: none of them is imported to look into it.
  before = set(sys.modules)
  for known in ('math:sqrt', 'numpy.core._multiarray_umath:array', 'tensorflow.keras.applications:MobileNet'):
    lookup.check(known)
  assert ('tensorflow' in sys.modules) == ('tensorflow' in before)


def test_a_package_that_is_imported_is_asked_for_its_modules(module, tmp_path):
  module(TEXT, 'lookup_elsewhere/models')
  name = module(f'__path__.append({str(tmp_path / "lookup_elsewhere")!r})', 'lookup_extended.__init__')
  assert importlib.import_module(name.partition('.')[0])
  try:
    lookup.check('lookup_extended.models:small')
    with pytest.raises(InputError, match="has no function 'nothing'"):
      lookup.check('lookup_extended.models:nothing')
    with pytest.raises(InputError, match='there is no module'):
      lookup.check('lookup_extended.nowhere:small')
  finally:
    del sys.modules['lookup_extended']
