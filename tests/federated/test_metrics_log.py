"""The figures of the rounds as files: whole rows, and one line when they cannot be written."""

import shutil

import pytest

from tff_cluster.base.errors import EnvironmentFault

pytestmark = pytest.mark.tensorflow


def round_log(*paths):
  # Imported late: the tests that do not need TensorFlow do not wait for it.
  from tff_cluster.federated import metrics_log

  return metrics_log.RoundLog(*paths)


@pytest.fixture
def folder(tmp_path):
  folder = tmp_path / 'metrics'
  folder.mkdir()
  return folder


def test_a_row_for_each_round_and_a_stage_that_goes_on_begins_its_files_anew(folder, tmp_path):
  for losses in ((2.0, 1.0), (4.0, 3.0, 2.0)):
    (folder / 'phase1.csv_temp1234').write_text('half a ro')
    log = round_log(folder / 'phase1.csv', tmp_path / 'board')
    for number, loss in enumerate(losses, 1):
      log.release(number, {'loss': loss})
  assert [path.name for path in folder.iterdir()] == ['phase1.csv']
  assert (folder / 'phase1.csv').read_text().split() == ['round,loss', '1,4.0', '2,3.0', '3,2.0']
  assert len(list((tmp_path / 'board').glob('events.out.tfevents.*'))) == 1


def test_figures_that_cannot_be_written_are_told_in_one_line(folder, tmp_path):
  log = round_log(folder / 'phase1.csv', tmp_path / 'board')
  log.release(1, {'loss': 1.0})
  shutil.rmtree(folder)
  with pytest.raises(EnvironmentFault, match=r'round 2 in .*phase1\.csv: .*No such file'):
    log.release(2, {'loss': 0.5})


def test_a_first_line_that_a_full_disk_does_not_take_is_told_so_and_is_gone(folder, tmp_path, monkeypatch):
  import tensorflow as tf
  import tensorflow_federated as tff

  def full(path, **_):
    path.with_name(path.name + '_temp1234').write_text('rou')
    raise tf.errors.ResourceExhaustedError(None, None, f'{path}; No space left on device')

  monkeypatch.setattr(tff.program, 'CSVFileReleaseManager', full)
  with pytest.raises(EnvironmentFault, match=r'the first line of .*phase1\.csv: .*No space left'):
    round_log(folder / 'phase1.csv', tmp_path / 'board')
  assert not list(folder.iterdir())
