"""Presets as experiments: what a flagfile says, as the command line reads it."""

import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.experiment import preset

LINES = """# A preset.
--num_clients=8
  --learning_rate=0.5
--noexperts
--experts
--nolocal_training
--aggregation=fine_tuned,rounds=2
--aggregation=vote
--clustering=kmeans,num_clusters=2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
  monkeypatch.setattr(preset, 'FOLDER', tmp_path)
  return tmp_path


def test_a_preset_is_read_as_the_command_line_reads_it(folder):
  (folder / 'mine.flags').write_text(LINES)
  found = []
  code = program.execute(
    lambda: found.append(parse.experiment_config_from_flags()),
    lambda: flags.define('data', 'training', 'clusterings', 'evaluation', 'run'),
    ['p', f'--flagfile={folder}/mine.flags'],
  )
  assert code == 0
  read = preset.read_preset('mine', {}, found[0].clusterings)
  assert read == found[0] and read.evaluation.experts is True
  # Changes take the place of what the preset says.
  changed = preset.read_preset('mine', {'experts': False, 'num_clients': 9}, ()), read
  assert [each.data.num_clients for each in changed] == [9, 8] and not changed[0].evaluation.experts
  assert changed[0].training == read.training
  with pytest.raises(InputError, match='no preset'):
    preset.read_preset('other', {}, ())


@pytest.mark.parametrize('line', ['--experts=yes', '--num_clients=many', '--num_clients'])
def test_a_line_that_is_wrong_is_told_with_the_file(line, folder):
  (folder / 'mine.flags').write_text(f'{line}\n')
  with pytest.raises(InputError, match=rf'^{folder}/mine.flags: .*: expected '):
    preset.read_preset('mine', {}, ())
