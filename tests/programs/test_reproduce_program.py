"""phases.reproduce: what is wrong with its flags is told in one line, before anything slow is imported."""

import os
import subprocess
import sys

import pytest


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
