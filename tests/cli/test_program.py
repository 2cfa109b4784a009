"""Exit codes, and one line on stderr for whatever a person has to act on."""

import errno
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.cli import flags, program
from tff_cluster.storage import output_folders


def execute(main, *arguments):
  return program.execute(main, lambda: flags.define('run'), ['p', *arguments])


def raising(error):
  def main():
    raise error

  return main


@pytest.mark.parametrize(
  ('error', 'code', 'line'),
  [
    (InputError('--x=3: wrong'), 2, 'error: --x=3: wrong\n'),
    (InputError('two\nlines\r'), 2, 'error: two\\nlines\\r\n'),
    (EnvironmentFault('no worker'), 1, 'error: no worker\n'),
    (OSError(errno.ENOSPC, 'No space left', '/runs/a'), 1, 'error: /runs/a: No space left\n'),
    (PermissionError(errno.EACCES, 'Permission denied', 'c'), 1, 'error: c: Permission denied\n'),
    (OSError(errno.EDQUOT, 'Quota exceeded'), 1, 'error: cannot write the output: Quota exceeded\n'),
    (MemoryError(), 1, 'error: not enough memory: an allocation failed\n'),
  ],
  ids=repr,
)
def test_exit_codes(error, code, line, capsys):
  assert execute(raising(error)) == code
  assert capsys.readouterr() == ('', line)
  assert execute(lambda: 3) == 3 and execute(lambda: None) == 0


@pytest.mark.parametrize(
  'error', [ValueError('x'), FileNotFoundError(errno.ENOENT, 'x', 'y'), BrokenPipeError()], ids=repr
)
def test_our_own_faults_keep_their_traceback(error):
  with pytest.raises(type(error)):
    execute(raising(error))


@pytest.mark.parametrize('error', [KeyError('x'), InputError('x'), OSError(errno.ENOENT, 'x')], ids=repr)
def test_a_folder_that_was_taken_away_is_the_cause_whatever_fails(error, tmp_path, capsys):
  def main():
    output_folders.lock(tmp_path / 'run')
    shutil.rmtree(tmp_path / 'run')
    raise error

  assert execute(main) == 1
  assert capsys.readouterr().err.startswith(f'error: --output_dir={tmp_path}/run was removed or replaced')


SCRIPT = """'''A program.'''
import atexit, sys, time
from tff_cluster.cli import flags, program, signals
from tff_cluster.storage import output_folders

def main():
  output_folders.lock(sys.argv[1].split('=')[1])
  atexit.register(lambda: print('atexit', flush=True))
  try:
    print('ready', flush=True)
    {work}
  finally:
    print('finally', flush=True)

program.run(main, lambda: flags.define('run'))
"""


def start(tmp_path, work, **kwargs):
  arguments = [sys.executable, '-c', SCRIPT.format(work=work), f'--output_dir={tmp_path / "run"}']
  return subprocess.Popen(
    arguments,
    stderr=subprocess.PIPE,
    text=True,
    # Who runs the tests in the background may have had Ctrl-C ignored for all that they start.
    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    **({'stdout': subprocess.PIPE} | kwargs),
  )


# Python prints and drops whatever a destructor raises, and TensorFlow's run all the time.
IN_A_DESTRUCTOR = """import os, signal
    class Dying:
      def __del__(self):
        os.kill(os.getpid(), signal.{sent})
        for _ in range(10**5): pass
    Dying()
    time.sleep(60)"""


# The kernel gives a signal to any thread, and Python has the main one see it when it next does something.
IN_ANOTHER_THREAD = """import signal, threading
    lock = threading.Lock()
    lock.acquire()
    def send():
      time.sleep(0.2)
      signal.pthread_kill(threading.get_ident(), signal.{sent})
    threading.Thread(target=send).start()
    lock.acquire()"""


SIGNALS = pytest.mark.parametrize(
  ('sent', 'code', 'line'),
  [
    ('SIGINT', 130, 'interrupted; where it writes to a folder, the same command goes on\n'),
    ('SIGTERM', 143, 'terminated by SIGTERM\n'),
  ],
)


@pytest.mark.parametrize(
  'work', ['time.sleep(60)', IN_A_DESTRUCTOR, IN_ANOTHER_THREAD], ids=['plain', 'destructor', 'thread']
)
@SIGNALS
def test_signals_clean_up(sent, code, line, work, tmp_path):
  process = start(tmp_path, work.format(sent=sent))
  assert process.stdout.readline() == 'ready\n'
  if work == 'time.sleep(60)':
    process.send_signal(getattr(signal, sent))
  out, err = process.communicate(timeout=20)
  assert (process.returncode, err, out) == (code, line, 'finally\natexit\n')
  assert not (tmp_path / 'run').exists()


SLOW_TO_LEAVE = """try:
      print('at work', flush=True)
      time.sleep(60)
    finally:
      for _ in range(50): time.sleep(0.01)"""
# As gRPC does whose lock was held when the signal came.
NEVER_LEAVING = """import threading
    signals._PATIENCE_SECS = 0.5
    lock = threading.Lock()
    lock.acquire()
    try:
      print('at work', flush=True)
      time.sleep(60)
    finally:
      lock.acquire()"""
# A fault on the way out is none of this software.
FAILING_TO_LEAVE = """try:
      print('at work', flush=True)
      time.sleep(60)
    finally:
      raise ValueError('left in the midst')"""
SWALLOWING = """signals._PATIENCE_SECS = 0.5
    left = ['at work']
    while True:
      try:
        while left: print(left.pop(), flush=True)
        time.sleep(60)
      except BaseException:
        pass"""


@pytest.mark.parametrize(
  ('work', 'leaves'),
  [(SLOW_TO_LEAVE, True), (FAILING_TO_LEAVE, True), (NEVER_LEAVING, False), (SWALLOWING, False)],
  ids=['slow', 'failing', 'never', 'swallowing'],
)
@SIGNALS
def test_several_signals_in_a_row_end_a_program_once_and_for_certain(
  sent, code, line, work, leaves, tmp_path
):
  process = start(tmp_path, work)
  assert [process.stdout.readline() for _ in range(2)] == ['ready\n', 'at work\n']
  begun = time.monotonic()
  for pause in np.random.default_rng(0).uniform(0.0, 0.1, size=8):
    process.send_signal(getattr(signal, sent))
    time.sleep(pause)
  out, err = process.communicate(timeout=20)
  assert (process.returncode, err) == (code, line)
  assert out == ('finally\natexit\n' if leaves else '') and time.monotonic() - begun < 5
  assert not leaves or not (tmp_path / 'run').exists()


def test_a_reader_that_is_gone_is_no_fault(tmp_path):
  process = start(tmp_path, 'sys.stdin.readline(); print("x" * 1_000_000)', stdin=subprocess.PIPE)
  process.stdout.readline()
  process.stdout.close()
  process.stdin.write('go\n')
  process.stdin.close()
  assert (process.wait(20), process.stderr.read()) == (141, '')


@pytest.mark.parametrize(
  ('line', 'code', 'error'),
  [
    ('--help | true', 141, ''),
    ('--help > /dev/full', 1, 'error: cannot write the output: No space left on device\n'),
    ('--help >&-', 0, ''),
    ('--nonsense >&- 2>&-', 2, ''),
  ],
)
@pytest.mark.parametrize('program_name', ['phases.clustering', 'phases'])
def test_output_that_nobody_takes(program_name, line, code, error):
  # The reader is gone before the program has anything to say; its code is that of the pipe's first part.
  command = f'set -o pipefail; {sys.executable} -m {program_name} {line}'
  done = subprocess.run(['bash', '-c', command], capture_output=True, text=True)
  assert (done.returncode, done.stderr) == (code, error)


@pytest.mark.parametrize(
  ('argument', 'code', 'error'), [('-m', 130, 'interrupted; '), ('-c', -2, 'KeyboardInterrupt')]
)
def test_ctrl_c_while_a_program_imports_what_it_needs(argument, code, error):
  lines = (
    f'import os, signal, sys; sys.argv = [{argument!r}]; import phases; os.kill(os.getpid(), signal.SIGINT)'
  )
  done = subprocess.run([sys.executable, '-c', lines], capture_output=True, text=True)
  assert done.returncode == code and done.stderr.rstrip().splitlines()[-1].startswith(error)
