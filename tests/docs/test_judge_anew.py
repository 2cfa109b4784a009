"""Kept reproductions are judged by today's claims from their archives, and a number that comes out otherwise is refused."""

import shutil

import pytest

from docs.programs import judge_anew

NAME = 'rohith2020_table1_small'


@pytest.fixture
def kept(tmp_path, monkeypatch):
  """Returns the folder of a copy of the kept result."""
  folder = shutil.copytree(judge_anew.KEPT / NAME, tmp_path / NAME)
  monkeypatch.setattr(judge_anew, 'KEPT', tmp_path)
  return folder


def plant(path, old, new):
  text = path.read_text()
  assert old in text
  path.write_text(text.replace(old, new, 1))


def test_a_verdict_of_other_claims_is_replaced_and_told(kept, capsys):
  there = (kept / 'scorecard.csv').read_text()
  plant(kept / 'scorecard.csv', ',"not decidable', ',"reproduced')
  assert judge_anew.main([NAME]) == 0
  assert ': reproduced, now not decidable' in capsys.readouterr().out
  assert (kept / 'scorecard.csv').read_text() == there
  assert '"judged"' in (kept / 'provenance.json').read_text()


def test_digests_and_columns_that_are_kept_since_are_renewed_and_the_others_stay():
  assert judge_anew._renewed('a,c\n1,3\n', 'a,b,c\n1,2,4\n').splitlines() == ['a,b,c', '1,2,3']
  assert judge_anew._renewed('a,digest\n1,x\n', 'a,digest\n2,y\n').splitlines() == ['a,digest', '1,y']
  assert judge_anew._renewed('a,b\n1,2\n', 'a\n1\n') == 'a,b\n1,2\n'


def test_a_number_that_comes_out_otherwise_and_what_has_no_archive_are_refused(kept, capsys):
  accuracy = judge_anew.results.read_all(kept.parent)[NAME].lines('runs')[0]['accuracy end']
  plant(kept / 'runs.csv', accuracy, f'{accuracy}1')
  there = (kept / 'scorecard.csv').read_text()
  assert judge_anew.main([NAME]) == 2
  assert f'{NAME}/runs.csv comes out otherwise than it is kept: accuracy end' in capsys.readouterr().err
  assert (kept / 'scorecard.csv').read_text() == there
  (kept / 'runs.tar.xz').unlink()
  assert judge_anew.main([NAME]) == 2
  assert 'nothing kept with runs.tar.xz' in capsys.readouterr().err
