"""Import paths of users: what fails while their module runs is theirs."""

import importlib
import sys

import pytest

from tff_cluster.base import digests, imports
from tff_cluster.base.errors import InputError
from tff_cluster.cli import signals
from tff_cluster.models import lookup


@pytest.mark.parametrize('ends', ['sys.exit(0)', 'sys.exit("no licence")', 'quit()'])
def test_a_module_that_ends_the_program_is_told_as_one_that_cannot_be_imported(ends, tmp_path, monkeypatch):
  (tmp_path / 'ends_it.py').write_text(f'import sys\n{ends}\n')
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(InputError, match=r'^model=ends_it:model cannot be imported: SystemExit: [^\n]+$'):
    imports.load('model', 'ends_it:model')


def test_a_signal_that_comes_while_a_module_runs_ends_the_program(tmp_path, monkeypatch):
  (tmp_path / 'slow_one.py').write_text('from tff_cluster.cli import signals\nraise signals.Stopped\n')
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setattr(signals, '_ending', lambda: ('terminated', 143))
  with pytest.raises(signals.Stopped):
    imports.load('model', 'slow_one:model')


def test_the_digest_of_code_is_that_of_what_was_imported_until_it_is_imported_anew(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setattr(sys, 'dont_write_bytecode', True)
  path = tmp_path / 'edited_code.py'
  path.write_text('def f():\n  return 1\n')
  found = imports.load('model', 'edited_code:f')
  first = imports.code_of(found)
  assert lookup.code('edited_code:f') == first == digests.of_json(path.read_text())
  path.write_text('def f():\n  return 2\n')
  again = imports.load('model', 'edited_code:f')
  assert again() == 1 and imports.code_of(again) == lookup.code('edited_code:f') == first
  importlib.reload(sys.modules['edited_code'])
  new = imports.load('model', 'edited_code:f')
  assert new() == 2 and imports.code_of(new) == lookup.code('edited_code:f') != first
  monkeypatch.delitem(sys.modules, 'edited_code')
  path.write_text('def f():\n  return 3\n')
  assert lookup.code('edited_code:f') == digests.of_json(path.read_text())  # Told without importing it.
  assert 'edited_code' not in sys.modules
