"""Flags are the fields of the configuration classes, no more and no less."""

import dataclasses

import pytest
from absl import flags as absl_flags

from tff_cluster.base import fields
from tff_cluster.cli import flags, program
from tff_cluster.engine import machine
from tff_cluster.experiment import config


def test_every_field_is_a_flag_under_its_heading(capsys):
  seen = {}

  def look():
    by_module = absl_flags.FLAGS.flags_by_module_dict()
    for heading in ('data', 'training', 'evaluation', 'clustering', 'run', 'machine', 'vectors'):
      seen[heading] = {flag.name for flag in by_module.get(heading, [])}

  code = program.execute(
    look, lambda: flags.define('data', 'training', 'evaluation', 'clustering', 'run', 'machine'), ['p']
  )
  assert code == 0, capsys.readouterr().err
  for heading, kind in (
    ('data', config.DataConfig),
    ('training', config.TrainingConfig),
    ('run', flags.RunOptions),
    ('machine', machine.Machine),
  ):
    assert seen[heading] == {field.name for field in dataclasses.fields(kind)}
  assert seen['clustering'] == {field.name for field in dataclasses.fields(flags.ClusteringFlags)}
  assert not seen['vectors']


def test_flags_are_gone_after_a_program(capsys):
  before = set(absl_flags.FLAGS)
  for _ in range(2):
    assert program.execute(lambda: None, lambda: flags.define('data', 'run'), ['p', '--num_clients=5']) == 0
  assert program.execute(lambda: None, lambda: flags.define('data'), ['p', '--num_clients=x']) == 2
  assert set(absl_flags.FLAGS) == before


def test_flags_of_one_program_do_not_reach_the_next():
  given = []
  for arguments in (['p', '--num_clients=5'], ['p']):
    program.execute(
      lambda: given.append(flags.given(config.DataConfig)), lambda: flags.define('data'), arguments
    )
  assert given == [{'num_clients': 5}, {}]


def test_single_run_flags():
  found = []
  program.execute(
    lambda: found.extend(name in absl_flags.FLAGS for name in ('output_dir', 'config_file')),
    lambda: flags.define('output_dir'),
    ['p'],
  )
  assert found == [True, False]
  with pytest.raises(ValueError, match='outputdir'):
    flags.define('outputdir')


@pytest.mark.parametrize('kind', list(flags.SECTIONS.values()), ids=lambda kind: kind.__name__)
def test_help_tells_choices_bounds_and_defaults(kind, capsys, monkeypatch):
  monkeypatch.setenv('COLUMNS', '100')
  section = next(name for name, value in flags.SECTIONS.items() if value is kind)
  assert program.execute(lambda: None, lambda: flags.define(section), ['p', '--help']) == 0
  text = ' '.join(capsys.readouterr().out.split())
  for field in dataclasses.fields(kind):
    # Booleans are given without a value.
    assert (f'--[no]{field.name}' if field.type is bool else f'--{field.name}=') in text
    assert ' '.join(field.metadata['help'].split()) in text
    if 'choices' in field.metadata:
      assert '|'.join(map(str, field.metadata['choices'])) in text
    if field.default not in (None, ''):
      assert f'Default: {field.default}.' in text
    if 'at_least' in field.metadata:
      assert f'at least {field.metadata["at_least"]}' in text


@pytest.mark.parametrize('option', ['--help', '-h', '--helpshort', '-help', '--helpfull'])
def test_help_wins_over_wrong_flags(option, capsys):
  assert program.execute(lambda: 1 / 0, lambda: flags.define('run'), ['p', '--nonsense', option, 'x']) == 0
  shown = capsys.readouterr()
  assert '--output_dir' in shown.out
  assert ('--verbosity=' in shown.out) == (option == '--helpfull')
  assert shown.err == ''


def field(name, kind=config.DataConfig):
  return kind.__dataclass_fields__[name]


@pytest.mark.parametrize(
  ('name', 'text', 'value'),
  [('num_clients', '7', 7), ('num_clients', '-7', -7), ('dirichlet_alpha', '1e-3', 0.001), ('dirichlet_alpha', '2', 2.0), ('dataset', ' a', ' a')],
)  # fmt: skip
def test_values(name, text, value):
  read = fields.value_from_text(field(name), text)
  assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
  ('name', 'text'),
  [('num_clients', text) for text in ('', '1.0', '1e3', '0x10', '1_000', ' 1', 'nan', '٣', '9' * 30)]
  + [('dirichlet_alpha', text) for text in ('', 'nan', 'inf', '-inf', '1e999', 'x', '1,5')]
  + [('data_dir', text) for text in ('', '--num_clients=3', 'a\0b')],
)  # fmt: skip
def test_wrong_values(name, text):
  with pytest.raises(ValueError, match=r'expected|empty|missing|NUL'):
    fields.value_from_text(field(name), text)


def test_a_tilde_means_home_in_paths_only(monkeypatch):
  monkeypatch.setenv('HOME', '/home/someone')
  assert fields.value_from_text(field('data_dir'), '~/data') == '/home/someone/data'
  assert fields.value_from_text(field('dataset'), '~') == '~'


def test_absl_flags_stay_and_are_reset():
  levels = []
  for arguments in (['p'], ['p', '--verbosity=1'], ['p']):
    code = program.execute(
      lambda: levels.append(absl_flags.FLAGS.verbosity), lambda: flags.define('run'), arguments
    )
    assert code == 0
  assert levels[1] == 1 != levels[0] == levels[2]
