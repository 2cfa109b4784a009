"""What phases.keep archives of runs is enough to have their results elsewhere, without a round of training, and on no other rows."""

import tarfile

import numpy as np
import pytest

from tests.phases.conftest import TINY
from tests.phases.whole_run import WholeRun, changed
from tff_cluster.base.errors import InputError
from tff_cluster.experiment.config import EvaluationConfig
from tff_cluster.studies.kept import runs_archive


def unpacked(archive, place):
  with tarfile.open(archive) as opened:
    opened.extractall(place, filter='data')
    return opened.getnames()


def test_an_archived_run_has_its_results_elsewhere_without_training(with_new, tmp_path):
  runs_archive.write(tmp_path / 'one', with_new.folder.root)
  # What a killed program left is not archived.
  left = with_new.folder.root / 'phase3' / f'.tff_cluster-{"0a" * 8}-kmeans.json'
  left.write_text('half')
  runs_archive.write(tmp_path / 'two', with_new.folder.root)
  left.unlink()
  assert (tmp_path / 'one').read_bytes() == (tmp_path / 'two').read_bytes()
  names = unpacked(tmp_path / 'one', tmp_path / 'elsewhere')
  assert 'phase1.json' in names and 'clusterings/bipartition/similarities.npz' in names
  assert not [name for name in names if name.startswith(('population', 'store', 'models', 'results'))]
  again = WholeRun(with_new.config, tmp_path / 'elsewhere')
  assert (again.done.asked, again.done.trained) == (0, 0)
  # Where and when it was trained, too.
  assert again.results == with_new.results


def test_the_folds_of_an_archived_run_are_not_trained_again(tmp_path):
  config = changed(TINY, evaluation=EvaluationConfig(num_folds=2))
  run = WholeRun(config, tmp_path / 'run')
  runs_archive.write(tmp_path / 'archive', run.folder.root)
  unpacked(tmp_path / 'archive', tmp_path / 'elsewhere')
  again = WholeRun(config, tmp_path / 'elsewhere')
  assert again.done.trained == 0 and again.results.cross_validation == run.results.cross_validation


def test_an_archive_names_no_place_of_data_and_other_rows_are_refused(tmp_path):
  generator = np.random.default_rng(0)

  def config(name):
    path = tmp_path / name / 'rows.npz'
    path.parent.mkdir()
    x, y = generator.random((640, 28, 28, 1), np.float32), np.arange(640) % 10
    np.savez(path, x=x, y=y.astype(np.int64))
    return changed(TINY, data={'dataset': 'file', 'data_file': str(path)})

  config_here = config('here')
  run = WholeRun(config_here, tmp_path / 'run')
  runs_archive.write(tmp_path / 'archive', run.folder.root)
  unpacked(tmp_path / 'archive', tmp_path / 'elsewhere')
  assert str(tmp_path) not in (tmp_path / 'elsewhere/config.json').read_text()
  with pytest.raises(InputError, match='has other rows than the run'):
    WholeRun(config('other'), tmp_path / 'elsewhere')
  assert WholeRun(config_here, tmp_path / 'elsewhere').results.digest == run.results.digest
