"""phases.reproduce as a process that needs no TensorFlow. Its wrong flags are in test_wrong_flags.py."""

import pytest

from tests.programs import children


@pytest.mark.parametrize('figure', ['cfl/figure1', 'cfl/figure2'])
def test_a_toy_figure_ends_with_its_page_and_imports_no_tensorflow(figure, tmp_path):
  arguments = [f'--figure={figure}', f'--output_dir={tmp_path}']
  answer = children.without_modules('reproduce', children.TENSORFLOW, arguments)
  page = tmp_path / figure / 'index.html'
  assert (answer.code, answer.err, answer.out) == (0, '', f'report {page}\n')
  assert f'python -m phases.reproduce --figure={figure}' in page.read_text()
  assert 'fails' not in (tmp_path / figure / 'scorecard.csv').read_text()
