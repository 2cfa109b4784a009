"""The pages of docs/results/ are what their kept files give; planted faults are found."""

import json
import pathlib
import re
import shutil

import pytest

from docs.programs.result_pages import __main__ as result_pages
from tff_cluster.base.environment import ENGINE

FOLDER = pathlib.Path(__file__).parents[2] / 'docs/results'


@pytest.fixture
def copied(tmp_path):
  return shutil.copytree(FOLDER, tmp_path / 'results')


@pytest.fixture
def checked(monkeypatch, capsys):
  """Returns the function that checks a folder, or writes it; it returns exit code, output and errors."""

  def run(folder, *flags):
    monkeypatch.setattr('sys.argv', ['result_pages', f'--folder={folder}', *flags])
    code = result_pages.main()
    return code, *capsys.readouterr()

  return run


def replace(path, old, new):
  text = path.read_text()
  assert old in text
  path.write_text(text.replace(old, new, 1))


def test_the_pages_of_the_tree_pass(checked):
  code, _, errors = checked(FOLDER, '--check')
  assert (code, errors) == (0, '')


def test_a_wrong_number_a_typed_result_and_a_changed_file_are_found(copied, checked):
  replace(copied / 'robustness.md', 'bytes a client', 'bytes  a client')
  (number, *_) = re.findall(r'[0-9.]+ points', (copied / 'overlap.md').read_text())
  replace(copied / 'overlap.md', number, '99.9 points')
  replace(copied / 'data/fl_hc_table3/scorecard.csv', '81.4', '82.4')
  template = copied / 'templates/methods.md.jinja'
  template.write_text(template.read_text() + '\nIt gains 3.4 points.\n')
  (copied / 'left_over.md').write_text('nothing\n')
  code, _, errors = checked(copied, '--check')
  assert code == 1
  for name in ('robustness.md', 'overlap.md', 'briggs2020.md', 'methods.md'):
    assert f'{copied / name} is not what its template and kept files give' in errors
  assert f'{template}:{len(template.read_text().splitlines())}: 3.4 is typed' in errors
  assert 'left_over.md is made by no template' in errors
  assert f'{copied / "sattler2019.md"} is not' not in errors


def test_a_stale_file_is_named_and_shown(copied, checked):
  path = copied / 'data/cfl_figure1/provenance.json'
  assert 'stale: cfl_figure1' not in checked(copied, '--check')[1]
  known = json.loads(path.read_text())
  path.write_text(json.dumps(known | {'engine': ENGINE - 1}))
  code, output, errors = checked(copied, '--check')
  assert code == 1 and f'stale: cfl_figure1 (engine {ENGINE - 1}, today {ENGINE})' in output
  assert f'{copied / "sattler2019.md"} is not' in errors
  assert checked(copied)[0] == 0
  code, output, _ = checked(copied, '--check')
  assert code == 0 and 'stale: cfl_figure1' in output
  assert f'**Stale:** engine {ENGINE - 1}' in (copied / 'sattler2019.md').read_text()


def test_an_opening_without_its_picture_or_too_long_is_found(copied, checked):
  picture = "{{ picture(s, 'accuracy_over_rounds.svg', 'Accuracy over rounds') }}\n\n## Coverage\n"
  moved = 'More. And more.\n\n## Coverage\n\n' + picture.partition('\n')[0]
  replace(copied / 'templates/ruan2022.md.jinja', picture, moved)
  assert checked(copied)[0] == 0
  code, _, errors = checked(copied, '--check')
  assert code == 1 and 'its opening has 0 pictures' in errors and 'its opening has 5 sentences' in errors


def test_a_missing_provenance_is_an_error_in_one_line(copied, checked):
  (copied / 'data/disturb/provenance.json').unlink()
  code, _, errors = checked(copied, '--check')
  assert code == 2 and errors.count('\n') == 1 and 'disturb' in errors
