"""Import paths of users: what fails while their module runs is theirs."""

import pytest

from tff_cluster.base import imports
from tff_cluster.base.errors import InputError
from tff_cluster.cli import signals


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
