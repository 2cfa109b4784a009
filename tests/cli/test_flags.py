"""Flags are the fields of the configuration classes, no more and no less."""

import dataclasses
import importlib.metadata
import pathlib
import re

import pytest
from absl import flags as absl_flags
from setuptools.config.setupcfg import read_configuration

from tff_cluster.base import fields
from tff_cluster.cli import flags, parse, program
from tff_cluster.clustering import methods
from tff_cluster.clustering.method import Method
from tff_cluster.engine import machine
from tff_cluster.experiment import config


def test_flags_of_one_program_are_gone_after_it_and_absls_are_reset():
  before, found = set(absl_flags.FLAGS), []

  def main():
    found.append((flags.given(config.DataConfig), absl_flags.FLAGS.verbosity))

  for arguments, code in ((['--num_clients=5', '--verbosity=1'], 0), ([], 0), (['--num_clients=x'], 2)):
    assert program.execute(main, lambda: flags.define('data', 'run'), ['p', *arguments]) == code
    assert set(absl_flags.FLAGS) == before
  (first, loud), (second, quiet) = found
  assert (first, second) == ({'num_clients': 5}, {}) and loud == 1 != quiet


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


def test_an_option_of_two_methods_has_one_type(monkeypatch):
  @dataclasses.dataclass(frozen=True)
  class Options:
    variant: float = fields.option(1.0, 'How much.')

  added = type('Added', (Method,), {'name': 'added', 'options_type': Options})()
  found = {**methods.METHODS, 'added': added}
  monkeypatch.setattr(methods, '_found', lambda: found)
  words = (
    'option variant of method added is float, of dynamic_distance str; an option of several methods is one'
  )
  with pytest.raises(TypeError, match=words):
    flags._clustering_flags()


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
    if field.default not in (None, '', ()):
      assert f'Default: {fields.as_text(field.default)}.' in text
    if 'at_least' in field.metadata:
      assert f'at least {field.metadata["at_least"]}' in text


def test_help_lists_every_method_with_its_keys(capsys):
  assert program.execute(lambda: None, lambda: flags.define('clusterings'), ['p', '--help']) == 0
  text = ' '.join(capsys.readouterr().out.split())
  for name, method in methods.METHODS.items():
    assert f'{name}: {", ".join(method.fields()) or "none"}' in text


@pytest.mark.parametrize('option', ['--help', '-h', '-helpshort', '--helpfull'])
def test_help_wins_over_wrong_flags(option, capsys):
  assert program.execute(lambda: 1 / 0, lambda: flags.define('run'), ['p', '--nonsense', option, 'x']) == 0
  shown = capsys.readouterr()
  assert '--output_dir=TEXT' in shown.out and '--[no]allow_imports' in shown.out
  assert ('--verbosity=' in shown.out) == (option == '--helpfull')
  assert ('Folder of the run' in shown.out) == ('short' not in option)
  assert shown.err == ''


@pytest.mark.parametrize(
  ('wrong', 'words'),
  [
    ('--hlep', 'did you mean --help?'),
    ('--help=true', '--help is for the command line itself, and takes no value'),
  ],
)
def test_help_that_is_misspelt_is_told(wrong, words, capsys):
  assert program.execute(lambda: 1 / 0, lambda: flags.define('run'), ['p', wrong]) == 2
  assert words in capsys.readouterr().err


def test_the_full_help_has_every_flag_once(capsys):
  known = []
  names = tuple(flags.SECTIONS)[:4]

  def define():
    flags.define(*names)
    known.extend({flag.name for flag in absl_flags.FLAGS._flags().values()})

  assert program.execute(lambda: 1 / 0, define, ['p', '--helpfull']) == 0
  shown = re.findall(r'^  --(?:\[no\])?(\w+)', capsys.readouterr().out, re.M)
  assert len(known) > 40 and sorted(shown) == sorted(
    {*known, 'flagfile', 'undefok', 'help', 'helpshort', 'helpfull', 'version'}
  )


def test_the_version_is_that_of_the_distribution_and_of_what_it_stands_on(capsys):
  assert program.execute(lambda: 1 / 0, lambda: flags.define('run'), ['p', '--nonsense', '-version']) == 0
  ours = read_configuration(pathlib.Path(__file__).parents[2] / 'setup.cfg')['metadata']['version']
  others = (f'{name} {importlib.metadata.version(name)}' for name in ('tensorflow', 'tensorflow-federated'))
  assert capsys.readouterr().out.splitlines() == [f'tff_cluster {ours}', *others]


@pytest.mark.parametrize(
  ('kind', 'name', 'default'), [(config.EvaluationConfig, 'experts', False), (flags.ReplayOptions, 'silhouettes', True)]
)  # fmt: skip
def test_booleans_are_given_as_absl_gives_them(kind, name, default, capsys):
  found = []
  section = next(key for key, value in flags.SECTIONS.items() if value is kind)

  def main():
    found.append(getattr(parse.section_from_flags(kind), name))

  def read(*arguments):
    return program.execute(main, lambda: flags.define(section), ['p', *arguments])

  for written, value in (
    ([], default), ([f'--{name}'], True), ([f'--no{name}'], False), ([f'--{name}=true'], True), ([f'--{name}=false'], False),
    ([f'--{name}=True'], True), ([f'--{name}', f'--no{name}'], False), ([f'-no{name}', f'-{name}'], True),
  ):  # fmt: skip
    assert read(*written) == 0, capsys.readouterr().err
    assert found.pop() is value, written
  for wrong in ('yes', '', '2'):
    assert read(f'--{name}={wrong}') == 2
    hint = f'expected true or false; --{name} and --no{name} say it without a value'
    assert capsys.readouterr().err == f'error: --{name}={wrong}: {hint}\n'
  assert read(f'--no{name}=true') == 2 and read(f'--{name}', 'true') == 2
  assert capsys.readouterr().err.count('\n') == 2 and not found


def field(name, kind=config.DataConfig):
  return kind.__dataclass_fields__[name]


def test_values(monkeypatch):
  monkeypatch.setenv('HOME', '/home/someone')
  for name, text, value in (
    ('num_clients', '-7', -7),
    ('dirichlet_alpha', '2', 2.0),
    ('dataset', ' a', ' a'),
    ('data_dir', '~/data', '/home/someone/data'),
    ('dataset', '~', '~'),
  ):
    read = fields.value_from_text(field(name), text)
    assert (read, type(read)) == (value, type(value))
  assert fields.value_from_text(field('tls_ca', machine.Machine), '~/ca.pem') == '/home/someone/ca.pem'


@pytest.mark.parametrize(
  ('name', 'text'),
  [('num_clients', text) for text in ('', '1.0', '1_000', ' 1', '٣', '9' * 30)]
  + [('dirichlet_alpha', text) for text in ('', 'nan', '1,5')]
  + [('data_dir', text) for text in ('', '--num_clients=3', 'a\0b')],
)  # fmt: skip
def test_wrong_values(name, text):
  with pytest.raises(ValueError, match=r'expected|empty|missing|NUL'):
    fields.value_from_text(field(name), text)
