"""A small matrix of kills; and the matrix itself finds what it is to find. The large one: python -m tests.crash_matrix."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests import crash_matrix
from tests.programs import crash_checks as checks
from tests.programs.children import ROOT, Child
from tff_cluster import artifacts, store

# Trains twenty rounds of four clients in a second, as our programs do; or has one of the faults.
STUB = """
import pathlib, subprocess, sys, time
import numpy as np
from tff_cluster import artifacts, store

fault, folder = sys.argv[1], pathlib.Path(sys.argv[2])
if fault != 'litters':
  artifacts.Store(folder / 'store').sweep()
about = {'clients': list('abcd'), 'start_round': 0, 'settings': {'cohort_fraction': 1.0}}
artifact = artifacts.Store(folder / 'store').artifact('fedavg', about)
done = len(list(artifact.glob('round_*.npz')))
if fault == 'leaves a process':
  subprocess.Popen(['sleep', '20'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
if fault == 'fails when it goes on' and done:
  sys.exit('error: it does not')
if fault == 'litters':
  (artifact / f'.x{done}.tmp').write_text('x')
numbers = range(1 if fault == 'forgets' else done + 1, 21)
for number in numbers:
  time.sleep(0.05)
  path = artifact / f'round_{number:05d}.npz'
  if fault == 'writes in place':
    path.write_bytes(b'PK')
    time.sleep(0.05)
  bits = number + (done if fault == 'depends on its history' else 0)
  store.save_arrays(path, {'x': np.array([bits])})
if fault == 'litters':
  (artifact / '.x0.tmp').unlink(missing_ok=True)
print(f'client-rounds: 80 asked for, {4 * len(numbers)} trained')
"""
FOUND = {
  'forgets': 'rounds were lost: 80 client-rounds were trained again',
  'writes in place': 'is damaged',
  'depends on its history': 'is not what it is after an uninterrupted run',
  'leaves a process': 'processes are left',
  'fails when it goes on': 'run again ended with code 1',
  'litters': 'is there, and is not after an uninterrupted run',
}


class Stubs(crash_matrix.Matrix):
  """A matrix of the stub instead of our programs."""

  fault = ''

  def _start(self, child: type[Child], program: str, run: pathlib.Path, *more: str) -> Child:
    return Child('stub', self.fault, str(run), PYTHONPATH=str(self.work.parent))


@pytest.fixture
def stubs(tmp_path):
  (tmp_path / 'stub.py').write_text(STUB)
  return Stubs(tmp_path / 'work', say=lambda line: None)


def test_a_program_without_a_fault_passes(stubs):
  tally = stubs.run('phase1', 3)
  assert tally.trials == 3 and tally.kills >= 3


@pytest.mark.parametrize('fault', FOUND)
def test_a_program_with_a_fault_is_found_out(fault, stubs):
  stubs.fault = fault
  with pytest.raises(checks.Broken) as caught:
    stubs.run('phase1', 8)
  assert FOUND[fault] in str(caught.value) and '\n' not in str(caught.value)
  assert str(caught.value).startswith('phase1, trial ')


def test_a_program_in_a_fork_is_a_program():
  # In a process that has started no thread.
  code = (
    'import sys; from tests.programs.children import ForkedChild as C\n'
    'for flags in (["--help"], ["--bad"]):\n'
    '  child = C("phases.store", *flags); code, out, err = child.finish(); child.kill()\n'
    '  print(code, len(out) > 500, err.strip(), child.process.communicate(1) == (out, err), child.left_over())\n'
  )
  done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True)
  help_told, bad_told = done.stdout.splitlines()
  assert help_told == '0 True  True []'
  assert bad_told.startswith('2 False error: unknown flag --bad') and bad_told.endswith('True []')
  assert done.stderr == ''


def test_moments_come_from_the_seed():
  def moments(seed):
    rng = crash_matrix.seeding.generator(seed, 'crash matrix', 'phase1', 0)
    return rng.uniform(size=3).tolist()

  assert moments(0) == moments(0) != moments(1)


@pytest.fixture
def run(tmp_path):
  """A made-up folder of a run."""
  folder = tmp_path / 'run'
  store.save_json(folder / 'phase1.json', {'stage': [1, 2], 'timing': {'seconds': 1.5}})
  store.save_json(folder / 'environment.json', {'started': 'now'})
  artifact = artifacts.Store(folder / 'store').artifact(
    'fedavg', {'clients': list('abcde'), 'start_round': 2, 'settings': {'cohort_fraction': 0.5}}
  )
  store.save_arrays(artifact / 'round_00004.npz', {'x': np.ones(3)})
  store.save_arrays(artifact / 'latest_00007.npz', {'x': np.ones(3)})
  store.save_rows(artifact / 'vectors.npy', 2, 2, lambda rows: rows.fill(1))
  return folder


def test_a_whole_tidy_folder_passes_and_times_do_not_count(run):
  expected = checks.content(run)
  store.save_json(run / 'phase1.json', {'stage': [1, 2], 'timing': {'seconds': 7.0}})
  store.save_json(run / 'environment.json', {'started': 'later'})
  checks.check_same(expected, checks.content(run))
  checks.check_whole(run)
  checks.check_tidy(run)


def test_a_changed_a_missing_and_an_additional_file_are_found(run):
  expected = checks.content(run)
  store.save_json(run / 'phase1.json', {'stage': [1, 3], 'timing': {'seconds': 1.5}})
  with pytest.raises(checks.Broken, match=r'phase1\.json is not what'):
    checks.check_same(expected, checks.content(run))
  (run / 'phase1.json').unlink()
  with pytest.raises(checks.Broken, match=r'phase1\.json is missing'):
    checks.check_same(expected, checks.content(run))
  with pytest.raises(checks.Broken, match=r'phase1\.json is there'):
    checks.check_same(checks.content(run), expected)


@pytest.mark.parametrize('name', ['round_00004.npz', 'vectors.npy', 'vectors.npy.json'])
def test_a_changed_byte_is_found(name, run):
  (path,) = run.glob(f'store/*/{name}')
  whole = bytearray(path.read_bytes())
  whole[len(whole) // 3] ^= 1
  path.write_bytes(whole)
  with pytest.raises(checks.Broken, match=f'{name} is damaged'):
    checks.check_whole(run)


@pytest.mark.parametrize(
  'name',
  ['.tff_cluster-lock', '.tff_cluster-0123456789abcdef-config.json',
   'models/k/.tff_cluster-0123456789abcdef-cluster_000.keras', 'metrics/phase1.csv_temp1234',
   'store/.tff_cluster-removed-fedavg-1/round_00001.npz', 'store/fedavg-1/latest_00001.npz.damaged'],
)  # fmt: skip
def test_what_is_left_over_is_found(name, run):
  (run / name).parent.mkdir(parents=True, exist_ok=True)
  (run / name).write_text('x')
  with pytest.raises(checks.Broken, match=r'is left|taken for damaged'):
    checks.check_tidy(run)


def test_an_empty_folder_that_is_left_over_is_found_through_a_link_too(run, tmp_path):
  (run / 'store').rename(tmp_path / 'shared')
  (run / 'store').symlink_to(tmp_path / 'shared')
  checks.check_tidy(run)
  (tmp_path / 'shared' / '.tff_cluster-removed-fedavg-1').mkdir()
  with pytest.raises(checks.Broken, match='a temporary folder is left'):
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


@pytest.mark.tensorflow
def test_a_small_matrix_of_kills_breaks_nothing(tmp_path):
  said: list[str] = []
  matrix = crash_matrix.Matrix(tmp_path / 'work', seed=1, say=said.append)
  tallies = [matrix.run('phase1', 1), matrix.run('prune', 1)]
  assert [tally.trials for tally in tallies] == [1, 1]
  assert sum(tally.kills for tally in tallies) >= 1
  assert len(said) == 3  # The reference, and a line for each trial.
