"""A small matrix of kills, and what its checks find. The large one: python -m tests.crash_matrix."""

import numpy as np
import pytest

from tests import crash_matrix
from tests.programs import crash_checks as checks
from tests.programs.children import ForkedChild
from tff_cluster.storage import artifacts, files


@pytest.fixture
def run(tmp_path):
  """A made-up folder of a run."""
  folder = tmp_path / 'run'
  files.save_json(folder / 'phase1.json', {'stage': [1, 2], 'timing': {'seconds': 1.5}})
  files.save_json(folder / 'environment.json', {'started': 'now'})
  artifact = artifacts.Store(folder / 'store').artifact(
    'fedavg', {'clients': list('abcde'), 'start_round': 2, 'settings': {'cohort_fraction': 0.5}}
  )
  files.save_arrays(artifact / 'round_00004.npz', {'x': np.ones(3)})
  files.save_arrays(artifact / 'latest_00007.npz', {'x': np.ones(3)})
  files.save_rows(artifact / 'vectors.npy', 2, 2, lambda rows: rows.fill(1))
  return folder


def test_times_do_not_count_and_whatever_else_differs_or_is_left_is_found(run):
  expected = checks.content(run)
  files.save_json(run / 'phase1.json', {'stage': [1, 2], 'timing': {'seconds': 7.0}})
  files.save_json(run / 'environment.json', {'started': 'later'})
  checks.check_same(expected, checks.content(run))
  checks.check_whole(run)
  checks.check_tidy(run)
  files.save_json(run / 'phase1.json', {'stage': [1, 3], 'timing': {'seconds': 1.5}})
  with pytest.raises(checks.Broken, match=r'phase1\.json is not what'):
    checks.check_same(expected, checks.content(run))
  (run / 'phase1.json').unlink()
  with pytest.raises(checks.Broken, match=r'phase1\.json is missing'):
    checks.check_same(expected, checks.content(run))
  with pytest.raises(checks.Broken, match=r'phase1\.json is there'):
    checks.check_same(checks.content(run), expected)
  (path,) = run.glob('store/*/round_00004.npz')
  path.write_bytes(path.read_bytes()[:-9])
  with pytest.raises(checks.Broken, match=r'round_00004\.npz is damaged'):
    checks.check_whole(run)
  (run / '.tff_cluster-lock').write_text('x')
  with pytest.raises(checks.Broken, match='a lock is left'):
    checks.check_tidy(run)


def test_client_rounds_are_counted_by_hand(run):
  # Rounds 3 to 7 of half of five clients, which are two.
  (folder,) = (run / 'store').iterdir()
  (folder / '.tff_cluster-0123456789abcdef-round_00008.npz').write_bytes(
    b'half of a r'
  )  # Killed while it was saved.
  ((name, count),) = checks.client_rounds_saved(run).items()
  assert name.startswith('fedavg-') and count == 5 * 2
  assert checks.client_rounds('Phase 1: 9 client-rounds asked for, 4 trained\n') == (9, 4)
  assert checks.client_rounds('client-rounds: 12 asked for, 0 trained\n') == (12, 0)
  assert checks.client_rounds('digest 1\n') is None


def test_a_lost_round_is_found():
  before, at_the_kill = {'one': 4}, {'one': 10, 'two': 6}
  assert checks.check_rounds(20, 32, before, at_the_kill) == 32 - 6 - 6
  with pytest.raises(checks.Broken, match='21 client-rounds were trained again, 20 were missing'):
    checks.check_rounds(21, 32, before, at_the_kill)


@pytest.fixture(scope='module')
def matrix(tmp_path_factory):
  """A matrix of a small experiment, and the lines that it says."""
  said: list[str] = []
  experiment = [flag for flag in crash_matrix.EXPERIMENT if 'kmeans' not in flag]
  work = tmp_path_factory.mktemp('matrix')
  return crash_matrix.Matrix(work, 0, experiment, said.append, ForkedChild, ForkedChild), said


@pytest.mark.tensorflow
# Of these seeds the moments are early enough for quick machines, too.
@pytest.mark.parametrize(('target', 'seed'), [('run_all', 1), ('store', 1), ('prune', 3)])
def test_a_small_matrix_of_kills_breaks_nothing(target, seed, matrix):
  made, said = matrix
  made.seed = seed
  made.reference('phase1' if target == 'prune' else 'run_all')
  said.clear()
  tally = made.run(target, 1)
  assert (tally.trials, tally.kills >= 1, len(said)) == (1, True, 1), said
