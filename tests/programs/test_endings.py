"""However a run ends, it leaves no process behind; and it goes on to the same bits."""

import os
import re
import signal
import sys
import time

import numpy as np
import pytest

from tests.engine.dask_cluster import Authority, DaskCluster, wait_for
from tests.engine.reach import listening, networks_can_be_forbidden
from tests.programs.children import (
  Child,
  UnconnectedChild,
  UnreportedChild,
  digest,
  left_in,
  no_report,
  run_here,
  run_small,
)  # fmt: skip
from tff_cluster import engine

pytestmark = pytest.mark.tensorflow

SMALL = (
  '--dataset=digits', '--partition=label_swapped', '--num_clients=6', '--num_groups=2', '--model=logistic',
  '--phase1_rounds=12', '--phase2_rounds=3', '--clustering=kmeans,num_clusters=2',
  '--clustering=dynamic_distance,distance_threshold=quantile:0.3', '--cohort_fraction=0.7', '--learning_rate=0.5',
)  # fmt: skip


def run_all(folder, *more, child=UnreportedChild, **environment):
  return child('phases.run_all', *SMALL, f'--output_dir={folder}', *more, **environment)


def training(folder, *more, **environment):
  """Returns a run that has saved a round, and its worker's id."""
  child = run_all(folder, *more, **environment)
  assert child.wait_for(folder, 'store/fedavg-*/latest_*.npz')
  (worker,) = child.workers()
  return child, worker


@pytest.fixture(scope='module')
def uninterrupted(tmp_path_factory):
  folder = tmp_path_factory.mktemp('uninterrupted') / 'run'
  child = run_all(folder, '--clients_in_parallel=1', child=Child)
  code, out, err = child.finish()
  assert (code, err) == (0, '')
  assert child.left_over() == []
  return folder, out


def test_a_run_ends_with_report_and_digest_and_warns_of_nothing(uninterrupted):
  folder, out = uninterrupted
  assert re.search(r'^client-rounds: \d+ asked for, \d+ trained$', out, re.M)
  assert f'digest {digest(folder)}' in out
  assert f'report {(folder / "report.html").resolve()}' in out


@pytest.mark.parametrize(
  ('number', 'code'), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_no_process_of_a_run_can_be_reached_or_is_left_by_a_signal(number, code, tmp_path):
  # Longer than the address of a Unix socket may be.
  scratch = tmp_path / ('long' * 30)
  scratch.mkdir()
  child, worker = training(tmp_path / 'run', '--phase1_rounds=5000', TMPDIR=str(scratch))
  if not os.path.samefile(f'/proc/{worker}/ns/net', '/proc/self/ns/net'):  # Where the system allows it.
    assert listening(child.process.pid) == [] and listening(worker) == []
  second = run_all(tmp_path / 'run', '--phase1_rounds=5000').finish()
  assert second[0] == 1 and 'another run' in second[2]
  child.process.send_signal(number)
  found, _, err = child.finish(timeout=60)
  assert found == code
  assert err.count('\n') == (number != signal.SIGKILL) and 'Traceback' not in err
  assert child.left_over() == []
  # TensorFlow itself leaves the code that it generated.
  assert not [path for path in scratch.iterdir() if '__autograph_generated_file' not in path.name]


@pytest.mark.parametrize('seed', range(2))
def test_signals_at_random_moments_end_a_run_in_seconds_and_leave_nothing(seed, tmp_path):
  child, _ = training(tmp_path / 'run', '--phase1_rounds=5000')
  random = np.random.default_rng(seed)
  time.sleep(random.uniform(0.0, 1.0))
  for pause in random.choice([0.0, 0.001, 0.01, 0.1], size=3):
    child.process.send_signal(signal.SIGTERM)
    time.sleep(pause)
  code, _, err = child.finish(timeout=30)
  assert (code, err) == (143, 'terminated by SIGTERM\n')
  assert child.left_over() == [] and left_in(tmp_path / 'run') == []


def test_a_worker_that_dies_is_replaced_and_the_run_ends_with_the_same_bits(uninterrupted, tmp_path):
  child, worker = training(tmp_path / 'run')
  os.kill(worker, signal.SIGKILL)
  code, _, err = child.finish()
  assert code == 0
  assert (
    'TFF worker ended (exit code -9)' in err and 'its work repeated (1 of 2)' in err and err.count('\n') == 1
  )
  assert digest(tmp_path / 'run') == digest(uninterrupted[0])
  assert child.left_over() == []


def test_a_worker_that_dies_of_its_own_fault_ends_the_run_with_its_model(tmp_path):
  child, worker = training(tmp_path / 'run', '--phase1_rounds=5000')
  os.kill(worker, signal.SIGSEGV)
  code, _, err = child.finish(timeout=30)
  assert code == 1 and err.count('\n') == 1
  assert err.startswith('error: the TFF worker died of SIGSEGV while it computed with --model=logistic')
  assert list((tmp_path / 'run').glob('store/fedavg-*/latest_*.npz'))
  assert child.left_over() == []


def test_a_system_without_private_networks_is_told_of_once_a_run(tmp_path):
  if not networks_can_be_forbidden():
    pytest.skip('no user namespace can be made, in which networks could be forbidden')
  # Each fold has a worker of its own.
  few = ('--num_folds=2', '--phase1_rounds=1', '--phase2_rounds=1')
  code, _, err = run_all(tmp_path / 'run', *few, child=UnconnectedChild).finish()
  assert code == 0, err
  assert 'can read and write all your files' in err and err.count('\n') == 1


def test_a_fault_of_this_software_keeps_its_traceback_and_leaves_no_worker(tmp_path):
  child = UnreportedChild('tests.programs.faulty', *SMALL, f'--output_dir={tmp_path / "run"}')
  code, _, err = child.finish()
  assert code == 1 and 'Traceback' in err and 'no_such_attribute' in err
  assert (tmp_path / 'run' / 'population.npz').exists()
  assert child.left_over() == []


def test_the_digest_does_not_depend_on_clients_in_parallel_or_on_the_phases_being_run_alone(
  uninterrupted, tmp_path
):
  # The experiment is that of the configuration alone.
  first = ('phases.phase1', f'--config_file={uninterrupted[0] / "config.json"}', '--clients_in_parallel=3')
  more = (
    ('phases.clustering',),
    ('phases.phase2', '--clients_in_parallel=2'),
    ('phases.phase3',),
    ('phases.report',),
  )
  before = os.umask(0o077)
  try:
    for program, *flags in (first, *more):
      assert run_here(program, *flags, f'--output_dir={tmp_path / "run"}') == 0, program
  finally:
    os.umask(before)
  assert digest(tmp_path / 'run') == digest(uninterrupted[0])
  # Where the umask forbids it, others can read nothing.
  assert {path.stat().st_mode & 0o077 for path in [tmp_path / 'run', *(tmp_path / 'run').rglob('*')]} == {0}


def test_a_scheduler_that_is_killed_ends_the_run_in_one_line_and_the_same_command_goes_on(
  uninterrupted, tmp_path
):
  there = tmp_path / 'there'
  cluster = DaskCluster(tmp_path, Authority(tmp_path))
  try:
    worker = cluster.start_worker(threads=2)
    # The run waits for it for less than it may take to start beside other tests.
    wait_for(lambda: 'Registered to' in worker.log.read_text(), worker)
    flags = [f'--{name}={value}' for name, value in cluster.tls().items()]
    command = f'--scheduler_file={cluster.file}', *flags
    child = run_all(there, *command, '--worker_start_timeout_secs=15')
    assert child.wait_for(there, 'store/fedavg-*/latest_*.npz')
    cluster.scheduler.kill()
    code, _, err = child.finish()
    assert code == 1, err
    lines = [line for line in err.splitlines() if line.startswith('error: ')]
    assert (
      len(lines) == 1 and f'the scheduler {cluster.address} was lost' in lines[0] and 'is saved' in lines[0]
    )
    assert 'Traceback' not in err and child.left_over() == []
    assert list(there.glob('store/fedavg-*/latest_*.npz'))
    for worker in cluster.workers:
      worker.kill()
    cluster.start_scheduler()
    cluster.start_worker()
    code, out, err = run_all(there, *command).finish()
    assert (code, err) == (0, '')
    asked, trained = map(
      int, re.search(r'^client-rounds: (\d+) asked for, (\d+) trained$', out, re.M).groups()
    )
    assert trained < asked
    assert digest(there) == digest(uninterrupted[0])
  finally:
    cluster.end()


def test_without_a_cluster_nothing_of_dask_is_imported(tmp_path, monkeypatch):
  for name in ('dask', 'distributed', 'tff_cluster.engine.cluster', 'tff_cluster.engine.dask_worker'):
    monkeypatch.setitem(sys.modules, name, None)
  for name in ('cluster', 'dask_worker'):
    monkeypatch.delattr(engine, name, raising=False)
  with no_report():
    assert run_small(tmp_path / 'run') == 0
  assert run_here('phases.run_all', '--help') == 0
