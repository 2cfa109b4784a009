"""phases.reproduce: what is wrong with its flags is told in one line, before anything slow is imported."""

import os
import subprocess
import sys

import pytest

from phases import reproduce
from tff_cluster.cli import program

BAD = [
  ('', 'give one of --table and --figure; there are fl_hc/table1'),
  ('--table=fl_hc/table1 --figure=fl_hc/figure1', 'give one of --table and --figure'),
  ('--table=fl_hc/table9', '--table=fl_hc/table9: no such table; did you mean fl_hc/table'),
  ('--table=nothing_like_it', '--table=nothing_like_it: no such table; there are fl_hc/table1'),
  ('--table=fl_hc/figure3', '--table=fl_hc/figure3: no such table'),
  ('--figure=fl_hc/table5', '--figure=fl_hc/table5: no such figure'),
  ('--table=fl_hc/table1 --scale=huge', '--scale=huge: allowed are paper, small'),
  ('--table=fl_hc/table1 --seeds=0,x', "--seeds=0,x: 'x' is no seed"),
  ('--table=fl_hc/table1 --seeds=', '--seeds=: the value is empty'),
  ('--table=fl_hc/table1 --seeds=1,2,1', '--seeds=1,2,1: 1 is given twice'),
  ('--table=fl_hc/table1 --seeds=-1', "--seeds=-1: '-1' is no seed"),
  ('--table=fl_hc/table1 --dry_run=maybe', '--dry_run=maybe: expected true or false'),
  ('--table=fl_hc/table1 --config_file=x.json', '--config_file does not apply here'),
  ('--table=fl_hc/table1 --rows=nobody', '--rows=nobody: fl_hc/table1 has no such row; its rows are: cf 0.1, n 1'),
  ('--table=fl_hc/table1 --num_clients=3', 'unknown flag --num_clients'),
  ('--figure=cfl/figure1 --scale=small', '--scale does not apply to cfl/figure1, which is computed at once'),
  ('--figure=cfl/figure2 --rows=xor', '--rows does not apply to cfl/figure2'),
  ('--figure=cfl/figure2 --store_dir=x', '--store_dir does not apply to cfl/figure2'),
  ('--figure=cfl/figure1 --worker_retries=7', '--worker_retries does not apply to cfl/figure1'),
  ('--figure=cfl/figure2 --seeds=0,1', '--seeds=0,1: cfl/figure2 is drawn for one seed'),
]  # fmt: skip


@pytest.mark.parametrize(('arguments', 'words'), BAD)
def test_bad_flags_are_one_line(arguments, words, tmp_path, capsys):
  folder = tmp_path / 'out'
  line = ['reproduce', *arguments.split(), f'--output_dir={folder}']
  assert program.execute(reproduce.main, reproduce.define_flags, line) == 2
  out, err = capsys.readouterr()
  assert out == '' and err.startswith('error: ') and err.count('\n') == 1 and words in err
  assert not folder.exists()


@pytest.mark.program
@pytest.mark.parametrize('figure', ['cfl/figure1', 'cfl/figure2'])
def test_a_toy_figure_ends_with_its_page_and_imports_no_tensorflow(figure, tmp_path):
  code = (
    'import sys; from phases import reproduce; from tff_cluster.cli import program\n'
    "done = program.execute(reproduce.main, reproduce.define_flags, ['r', *sys.argv[1:]])\n"
    "assert not {'tensorflow', 'tensorflow_federated'} & set(sys.modules); sys.exit(done)"
  )
  command = [sys.executable, '-c', code, f'--figure={figure}', f'--output_dir={tmp_path}']
  done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {'PYTHONPATH': '.'})
  assert (done.returncode, done.stderr) == (0, '')
  page = tmp_path / figure / 'index.html'
  assert done.stdout == f'report {page}\n'
  assert f'python -m phases.reproduce --figure={figure}' in page.read_text()
  assert 'fails' not in (tmp_path / figure / 'scorecard.csv').read_text()


def test_the_output_folder_is_asked_for(capsys):
  line = ['reproduce', '--table=fl_hc/table1']
  assert program.execute(reproduce.main, reproduce.define_flags, line) == 2
  assert '--output_dir=FOLDER is required' in capsys.readouterr().err


def test_bad_flags_import_no_tensorflow():
  code = (
    'import sys; from phases import reproduce; from tff_cluster.cli import program\n'
    "program.execute(reproduce.main, reproduce.define_flags, ['r', '--table=x', '--output_dir=/nowhere'])\n"
    "assert not {'tensorflow', 'tensorflow_federated', 'scipy', 'matplotlib'} & set(sys.modules)"
  )
  done = subprocess.run(
    [sys.executable, '-c', code], capture_output=True, text=True, env=os.environ | {'PYTHONPATH': '.'}
  )
  assert done.returncode == 0, done.stderr
