"""Folders that are taken away from a process: named in one line, nothing written to them or to what replaced them."""

import functools
import os
import shutil

import pytest

from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.storage import artifacts, files, folder_guard

pytestmark = pytest.mark.usefixtures('folders_let_go')
LOST = 'was removed or replaced'


@pytest.fixture
def run(tmp_path):
  return run_claim.lock_output_dir(tmp_path / 'run')


def test_a_folder_that_was_removed_is_named_and_does_not_come_back(run):
  shutil.rmtree(run)
  refused(
    f'output_dir={run} {LOST} while',
    lambda: files.save_json(run / 'deep' / 'a.json', 1),
    lambda: files.save_file(run / 'a.keras', lambda path: path.write_text('x')),
    lambda: artifacts.Store(run / 'store').artifact('fedavg', {}),
  )
  assert not run.exists()
  assert str(run) in str(folder_guard.lost())


def refused(match, *writes):
  """Expects one line of each of these functions."""
  for write in writes:
    with pytest.raises(EnvironmentFault, match=match) as caught:
      write()
    assert '\n' not in str(caught.value)


def test_a_folder_half_removed_is_lost_through_a_link_as_well_as_soon_as_its_lock_is_gone(tmp_path):
  run = tmp_path / 'run'
  run.mkdir()
  (tmp_path / 'link').symlink_to(run)
  run_claim.lock_output_dir(tmp_path / 'link')
  (run / 'results.json').write_text('{}')
  os.unlink(run / '.tff_cluster-lock')
  for name in (run, tmp_path / 'link'):
    refused(LOST, functools.partial(files.save_json, name / 'results.json', 1))
  assert (run / 'results.json').read_text() == '{}'


def test_a_run_that_was_put_in_its_place_is_left_alone(run):
  shutil.move(run, run.with_name('moved'))
  run.mkdir()
  (run / '.tff_cluster-lock').write_text('somebody else')
  refused(LOST, lambda: files.save_json(run / 'a.json', 1))
  run_claim.release_output_dirs()
  assert [path.name for path in run.iterdir()] == ['.tff_cluster-lock']
  assert (run / '.tff_cluster-lock').read_text() == 'somebody else'


def test_other_folders_can_be_written_and_the_same_one_be_made_anew(run, tmp_path):
  shutil.rmtree(run)
  files.save_json(tmp_path / 'elsewhere' / 'a.json', 1)
  again = run_claim.lock_output_dir(run)
  files.save_json(again / 'a.json', 1)
  assert folder_guard.lost() is None and folder_guard.is_ours(run)
  run_claim.release_output_dirs()
  assert [path.name for path in run.iterdir()] == ['a.json']
  # What was let go is forgotten.
  assert folder_guard.lost() is None and not folder_guard.is_ours(run)
  shutil.rmtree(run)
  folder_guard.check(run / 'a.json')


def test_a_shared_store_that_was_removed_is_named_and_does_not_come_back(run, tmp_path):
  run_claim.claim_output_dir(run, ExperimentConfig(), str(tmp_path / 'shared')).write()
  artifact = artifacts.Store(run / 'store').artifact('fedavg', {'a': 1})
  files.save_json(artifact / 'a.json', 1)
  shutil.rmtree(tmp_path / 'shared')
  refused(
    r'the store .*shared of the run in .* is not there',
    lambda: files.save_json(artifact / 'a.json', 2),
    lambda: artifacts.Store(run / 'store').artifact('fedavg', {'a': 1}),
  )
  assert not (tmp_path / 'shared').exists()
