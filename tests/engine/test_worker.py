"""The worker process: its own environment, its end with its parent, and what is told when it fails."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time
from concurrent import futures

import pytest

from tests.engine.reach import WITHOUT_PRIVATE_NETWORKS, listening, networks_can_be_forbidden
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine import worker as worker_lib

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def binary(tmp_path, monkeypatch):
  """Returns a function that puts a shell script in the place of TFF's binary."""

  def install(script):
    path = tmp_path / 'worker_binary'
    path.write_text('#!/bin/sh\n' + textwrap.dedent(script))
    path.chmod(0o755)
    monkeypatch.setattr(worker_lib, '_binary', lambda: path)

  return install


def alive(process):
  try:
    state = pathlib.Path(f'/proc/{process}/stat').read_text().rpartition(')')[2].split()[0]
  except OSError:
    return False
  return state != 'Z'


def gone(process, patience=10.0):
  deadline = time.monotonic() + patience
  while alive(process) and time.monotonic() < deadline:
    time.sleep(0.02)
  return not alive(process)


@pytest.mark.parametrize(
  ('script', 'told'),
  [
    ('echo first; echo "no such port" >&2; echo; exit 3', 'exit code 3: no such port$'),
    ('exit 0', 'exit code 0: it logged nothing$'),
    ('head -c 200000 /dev/zero | tr "\\0" "x"; echo; printf "%0400d\\n" 7; exit 1', 'exit code 1: 0{300}$'),
  ],
)
def test_a_worker_that_ends_at_start_is_told_with_its_code_and_last_line(script, told, binary):
  binary(script)
  started = worker_lib.start(2)
  with pytest.raises(EnvironmentFault, match=f'^the TFF worker ended at start with {told}'):
    worker_lib.wait_until_serving(started, 20)
  assert not started.alive
  started.stop()  # Stopping twice is harmless.


def test_a_worker_that_never_serves_is_given_up_in_time_and_ended(binary):
  binary('echo waiting for a licence; exec sleep 60')
  started = worker_lib.start(1)
  begun = time.monotonic()
  with pytest.raises(EnvironmentFault, match=r'did not come up within 0\.8 s: waiting for a licence'):
    worker_lib.wait_until_serving(started, 0.8)
  assert time.monotonic() - begun < 5
  assert gone(started.process.pid)


def test_a_worker_outlives_the_thread_that_starts_it_and_not_its_end(binary):
  binary('exec sleep 60')

  def started():
    found = worker_lib.start(1)
    assert found._meet(20)  # From here on the kernel ends it with the thread that made it.
    return found

  with futures.ThreadPoolExecutor(1) as pool:
    found = pool.submit(started).result()
  time.sleep(0.3)
  assert found.alive
  found.stop()
  assert gone(found.process.pid)


def told(binary, clients):
  """Returns the arguments and the environment that a worker gets."""
  binary('echo "$@"; env; echo done')
  started = worker_lib.start(clients)
  started.process.wait(timeout=20)
  lines = os.pread(started.log.fileno(), 1 << 20, 0).decode().splitlines()
  return lines[0].split(), dict(line.split('=', 1) for line in lines[1:] if '=' in line)


def test_the_worker_does_not_inherit_what_changes_bits(binary, monkeypatch):
  planted = {
    'TF_ENABLE_ONEDNN_OPTS': '0', 'TF_NUM_INTRAOP_THREADS': '64', 'TF_XLA_FLAGS': '--tf_xla_auto_jit=2', 'OMP_NUM_THREADS': '64',
    'MKL_NUM_THREADS': '64', 'KMP_AFFINITY': 'x', 'DNNL_MAX_CPU_ISA': 'SSE41', 'ONEDNN_MAX_CPU_ISA': 'SSE41', 'MALLOC_ARENA_MAX': '1',
    'CUDA_VISIBLE_DEVICES': '0', 'OF_MINE': 'kept',
  }  # fmt: skip
  arguments, clean = told(binary, 3)
  assert '--max_concurrent_computation_calls=3' in arguments
  assert int(clean['TF_NUM_INTEROP_THREADS']) >= 3
  assert 1024 <= int(next(a for a in arguments if a.startswith('--port='))[7:]) < 65536
  for name, value in planted.items():
    monkeypatch.setenv(name, value)
  changed = told(binary, 3)[1]
  assert changed.pop('OF_MINE') == 'kept'
  for name in ('PYTEST_CURRENT_TEST', '_'):
    clean.pop(name, None)
    changed.pop(name, None)
  assert changed == clean
  assert clean['TF_NUM_INTRAOP_THREADS'] == clean['OMP_NUM_THREADS'] == '1'
  assert clean['CUDA_VISIBLE_DEVICES'] == '-1'


def test_a_missing_binary_is_one_line(monkeypatch):
  monkeypatch.setattr(worker_lib.importlib.util, 'find_spec', lambda name: None)
  with pytest.raises(EnvironmentFault, match=r'^TFF has no worker binary at data/worker_binary; install '):
    worker_lib.start(1)


PARENT = """
import sys, time
from tff_cluster.engine import worker
from pathlib import Path
if sys.argv[2]:
  worker._binary = lambda: Path(sys.argv[2])
started = worker.start(1)
if sys.argv[2]:
  while not Path(sys.argv[2]).with_name('ready').exists():
    time.sleep(0.01)
else:
  worker.wait_until_serving(started, 60)
print(started.process.pid, flush=True)
if sys.argv[1] == 'waits':
  time.sleep(60)
if sys.argv[1] == 'fails':
  raise RuntimeError('planted')
"""


@pytest.mark.parametrize(
  ('end', 'own'),
  [('killed', False), ('terminated', False), ('returns', False), ('fails', False), ('killed', True)],
)
def test_the_worker_ends_with_its_parent_however_that_ends(end, own, tmp_path):
  # It ignores what a polite parent could send.
  script = tmp_path / 'worker_binary'
  script.write_text(
    f'#!/bin/sh\ntrap "" TERM INT HUP PIPE\n: > {tmp_path}/ready\nwhile true; do sleep 1; done\n'
  )
  script.chmod(0o755)
  kind = 'waits' if end in ('killed', 'terminated') else end
  command = [sys.executable, '-c', PARENT, kind, '' if own else str(script)]
  parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
  child = int(parent.stdout.readline())
  try:
    if end in ('killed', 'terminated'):
      assert alive(child)
      parent.send_signal(signal.SIGKILL if end == 'killed' else signal.SIGTERM)
    parent.communicate(timeout=20)
    assert gone(child)
  finally:
    if alive(child):
      os.kill(child, signal.SIGKILL)


WATCHED = """
import json, os
from tests.engine.reach import listening
from tff_cluster.engine import worker
started = worker.start(1)
worker.wait_until_serving(started, 60)
with started.connect():
  print(json.dumps([started.private, len(listening(started.process.pid))]))
started.stop()
"""
# Root without the right to make networks; it must make a user namespace first, as others must.
AS_OTHERS_ARE = ['setpriv', '--bounding-set=-sys_admin', '--inh-caps=-sys_admin']


@pytest.mark.tensorflow
@pytest.mark.parametrize(
  ('system', 'expected'),
  [('as it is', [True, 0]), ('user namespace', [True, 0]), ('without private networks', [False, 1])],
)
def test_tffs_own_binary_listens_where_nobody_else_reaches_it(system, expected):
  prefix = {'as it is': [], 'user namespace': AS_OTHERS_ARE}.get(system, WITHOUT_PRIVATE_NETWORKS)
  if system == 'user namespace' and os.geteuid():
    pytest.skip('other users than root make a user namespace anyway')
  if system == 'without private networks' and not networks_can_be_forbidden():
    pytest.skip('no user namespace can be made, in which networks could be forbidden')
  done = subprocess.run([*prefix, sys.executable, '-c', WATCHED], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  assert json.loads(done.stdout) == expected


@pytest.mark.tensorflow
def test_a_private_worker_is_connected_to_once():
  started = worker_lib.start(1)
  worker_lib.wait_until_serving(started, 60)
  if not started.private:
    pytest.skip('this system allows no private network')
  with started.connect() as connection:
    assert connection.getpeername() == ('127.0.0.1', started.port)
    assert listening(started.process.pid) == []
    with pytest.raises(OSError, match='has been connected to'):
      started.connect()
  started.stop()
  assert gone(started.process.pid)
