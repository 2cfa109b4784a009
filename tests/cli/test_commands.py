"""The installed program's subcommands, which follow from the programs; what shells complete; and presets wherever one is."""

import importlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.programs.children import PROGRAMS, ROOT, SECONDS, call_process
from tff_cluster.base.errors import InputError
from tff_cluster.cli import commands, completion, flagfile, program, signals

FOUND = commands.found('phases', ROOT / 'phases')


def test_every_program_is_a_command_whose_name_the_program_knows():
  assert sorted(command.module for command in FOUND.values()) == [f'phases.{name}' for name in PROGRAMS]
  for name, command in FOUND.items():
    module = importlib.import_module(command.module)
    assert name == getattr(module, 'COMMAND', command.module.removeprefix('phases.'))
    assert ' '.join(module.__doc__.split()).startswith(command.about) and command.about.endswith('.')


def test_a_new_program_is_a_command_without_being_listed(tmp_path):
  (tmp_path / 'new_one.py').write_text(
    '"""Does something.\n\nAnd more."""\nCOMMAND = \'fresh\'\nraise SystemExit\n'
  )
  (tmp_path / '__main__.py').write_text('raise SystemExit')
  assert commands.found('mine', tmp_path) == {
    'fresh': commands.Command('fresh', 'mine.new_one', 'Does something.')
  }


def test_the_overview_is_fast_and_imports_nothing_that_computes():
  script = (
    'import sys, phases.__main__ as m; sys.argv = ["tff-cluster", "--help"]; m.main(); '
    'assert not {"tensorflow", "scipy", "numpy", "absl"} & {*sys.modules}'
  )
  answer = call_process('-c', script)
  assert (answer.code, answer.err) == (0, '') and answer.seconds < SECONDS
  listed = re.findall(r'^  ([\w|]+(?: [\w|]+)?)  +\S', answer.out, re.M)
  assert listed == [*FOUND, 'completion bash|zsh']


@pytest.mark.parametrize(
  ('line', 'words'),
  [
    ('runn --seed=1', "'runn' is no command of tff-cluster (did you mean run?); there are cluster, compare"),
    ('run_all', '(did you mean run?)'),
    ('--seed=1', "'--seed=1' is no command"),
    ('ru\nn', "'ru\\nn' is no command"),
    ('completion', 'completion: give one shell, bash or zsh'),
    ('completion fish', 'completion fish: give one shell, bash or zsh'),
  ],
)
def test_a_wrong_command_is_a_line_and_exit_code_2(line, words, capsys):
  assert commands.main('phases', ROOT / 'phases', line.split(' ')) == 2
  out, err = capsys.readouterr()
  assert out == '' and err.startswith('error: ') and words in err and err.count('\n') == 1


def test_a_command_is_its_program_and_says_how_it_was_called(tmp_path, monkeypatch, capsys):
  asked = call_process('-m', 'phases', 'cluster', '--help')
  assert asked.code == 0 and 'usage: tff-cluster cluster --flag=value ...' in asked.out.splitlines()
  # The others here: the program does not end the process.
  codes = []
  monkeypatch.setattr('sys.argv', [])
  monkeypatch.setattr(signals, 'take_early', lambda: None)
  monkeypatch.setattr(program, 'run', lambda *about: codes.append(program.execute(*about, sys.argv)))

  def call(*arguments):
    commands.main('phases', ROOT / 'phases', arguments)
    return codes.pop(), *capsys.readouterr()

  wrong = call('cluster', f'--output_dir={tmp_path}', '--num_cluster=3')
  assert wrong == (2, '', 'error: unknown flag --num_cluster; did you mean --num_clusters?\n')
  code, _, err = call('run', f'--output_dir={tmp_path}', '--clustering=kmeans', '--num_clusters=3')
  assert code == 2 and err.endswith('are one flag, for instance --clustering=kmeans,num_clusters=2\n')
  assert call('run', '--version') == (0, call_process('-m', 'phases', '--version').out, '')


@pytest.mark.parametrize('name', FOUND)
def test_a_shell_knows_the_flags_that_help_knows(name, capsys):
  module = importlib.import_module(FOUND[name].module)
  assert program.execute(module.main, module.define_flags, ['p', '--helpshort']) == 0
  shown = re.findall(r'^  --(?:\[no\])?(\w+)', capsys.readouterr().out, re.M)
  assert shown
  completed = {re.match(r'--(\w+)', each)[1] for each in completion.candidates(FOUND[name])}
  assert set(shown) - {'undefok'} <= completed


# Fills in what readline hands to a completion function, which takes words apart at "="; each answer is a line.
_ASKED = """source /dev/stdin
ask() (
  COMP_LINE=$1 COMP_POINT=${#1} COMP_CWORD=$(( $# - 2 ))
  shift; COMP_WORDS=("$@"); _tff_cluster; echo "${COMPREPLY[*]}"
)
"""


def test_bash_completes_commands_flags_values_presets_and_files(tmp_path):
  expected = {
    ('tff-cluster', ''): [*FOUND, 'completion'],
    ('tff-cluster', 'rep'): ['replay', 'report', 'reproduce'],
    ('tff-cluster', 'completion', ''): ['bash', 'zsh'],
    ('tff-cluster', 'run', '--client_opt'): ['--client_optimizer=sgd', '--client_optimizer=momentum', '--client_optimizer=adam'],
    ('tff-cluster', 'run', '--client_optimizer', '=', 'a'): ['adam'],
    ('tff-cluster', 'run', '--dry'): ['--dry_run'],
    ('tff-cluster', 'run', '--flagfile', '=', 'flags/de'): ['flags/demo.flags'],
    ('tff-cluster', 'store', '--store_dir', '=', 'own_fo'): ['own_folder'],
    ('tff-cluster', 'store', '--dataset'): [],
  }  # fmt: skip
  (tmp_path / 'own_folder').mkdir()
  asked = [shlex.join(['ask', ' '.join(words).replace(' = ', '='), *words]) for words in expected]
  done = subprocess.run(
    ['bash', '--norc', '-c', '\n'.join([_ASKED, *asked])],
    input=completion.script('bash', 'tff-cluster', FOUND), capture_output=True, text=True, check=True, cwd=tmp_path,
  )  # fmt: skip
  found = [line.split() for line in done.stdout.splitlines()]
  assert (dict(zip(expected, found, strict=True)), done.stderr) == (expected, '')


@pytest.mark.skipif(shutil.which('zsh') is None, reason='no zsh here')
def test_zsh_takes_the_script(tmp_path):
  (tmp_path / 'script').write_text(completion.script('zsh', 'tff-cluster', FOUND))
  command = f'source {tmp_path}/script; print $_comps[tff-cluster]'
  done = subprocess.run(
    ['zsh', '-f', '-c', command], capture_output=True, text=True, env=os.environ | {'HOME': str(tmp_path)}
  )
  assert '_tff_cluster' in done.stdout


def test_a_preset_is_found_where_no_such_file_is_and_a_file_of_that_name_wins(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  lines = [line for line in (ROOT / 'flags/demo.flags').read_text().splitlines() if line.startswith('--')]
  assert flagfile.expanded(['--seed=1', '--flagfile=flags/demo.flags']) == ['--seed=1', *lines]
  pathlib.Path('flags').mkdir()
  pathlib.Path('flags/demo.flags').write_text('--seed=3\n')
  assert flagfile.expanded(['--flagfile', 'flags/demo.flags']) == ['--seed=3']
  # As some editors save UTF-8.
  (tmp_path / 'marked.flags').write_bytes(b'\xef\xbb\xbf# A comment.\n--seed=4\n')
  assert flagfile.expanded([f'--flagfile={tmp_path}/marked.flags']) == ['--seed=4']
  for name in (
    'demo.flags',
    'flags/nothing.flags',
    'flags/',
    'flags/../flags/iid.flags',
    f'{tmp_path}/flags/compare_iid.flags',
  ):
    with pytest.raises(InputError, match=f'--flagfile={name}: '):
      flagfile.expanded([f'--flagfile={name}'])
