"""Exit codes, and one line on stderr for whatever a person has to act on."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.cli import flags, program
from tff_cluster.experiment import run_claim


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
    (
      OSError(errno.ENOSPC, 'No space left on device', '/runs/a'),
      1,
      'error: /runs/a: No space left on device\n',
    ),
    (OSError(errno.EROFS, 'Read-only file system', 'b'), 1, 'error: b: Read-only file system\n'),
    (PermissionError(errno.EACCES, 'Permission denied', 'c'), 1, 'error: c: Permission denied\n'),
    (
      OSError(errno.EDQUOT, 'Disk quota exceeded'),
      1,
      'error: cannot write the output: Disk quota exceeded\n',
    ),
    (MemoryError(), 1, 'error: not enough memory: an allocation failed\n'),
    (KeyboardInterrupt(), 130, 'interrupted\n'),
  ],
  ids=repr,
)
def test_exit_codes(error, code, line, capsys):
  assert execute(raising(error)) == code
  assert capsys.readouterr() == ('', line)


@pytest.mark.parametrize(
  'error', [ValueError('x'), FileNotFoundError(errno.ENOENT, 'x', 'y'), BrokenPipeError()], ids=repr
)
def test_our_own_faults_keep_their_traceback(error):
  with pytest.raises(type(error)):
    execute(raising(error))


def test_mains_exit_code_is_kept():
  assert execute(lambda: 3) == 3
  assert execute(lambda: None) == 0


def test_folders_are_given_back_whatever_happens(tmp_path):
  def main():
    run_claim.lock_output_dir(tmp_path)
    assert (tmp_path / '.tff_cluster-lock').exists()
    raise InputError('x')

  assert execute(main) == 2
  assert not (tmp_path / '.tff_cluster-lock').exists()


@pytest.mark.parametrize('error', [KeyError('x'), InputError('x'), OSError(errno.ENOENT, 'x')], ids=repr)
def test_a_folder_that_was_taken_away_is_the_cause_whatever_fails(error, tmp_path, capsys):
  def main():
    run_claim.lock_output_dir(tmp_path / 'run')
    shutil.rmtree(tmp_path / 'run')
    raise error

  assert execute(main) == 1
  assert capsys.readouterr().err.startswith(f'error: --output_dir={tmp_path}/run was removed or replaced')


SCRIPT = """'''A program.'''
import atexit, sys, time
from tff_cluster.experiment import run_claim
from tff_cluster.cli import flags, program

def main():
  run_claim.lock_output_dir(sys.argv[1].split('=')[1])
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


@pytest.mark.parametrize(
  ('sent', 'code', 'line'),
  [(signal.SIGINT, 130, 'interrupted\n'), (signal.SIGTERM, 143, 'terminated by SIGTERM\n')],
)
def test_signals_clean_up(sent, code, line, tmp_path):
  process = start(tmp_path, 'time.sleep(60)')
  assert process.stdout.readline() == 'ready\n'
  started = time.monotonic()
  process.send_signal(sent)
  out, err = process.communicate(timeout=20)
  assert (process.returncode, err) == (code, line)
  assert out == 'finally\natexit\n'
  assert time.monotonic() - started < 10
  assert not (tmp_path / 'run').exists()


@pytest.mark.parametrize(
  ('sent', 'code', 'line'),
  [('SIGINT', 130, 'interrupted\n'), ('SIGTERM', 143, 'terminated by SIGTERM\n')],
)
def test_a_signal_that_comes_in_a_destructor_is_not_lost(sent, code, line, tmp_path):
  # Python prints and drops whatever a destructor raises, and TensorFlow's run all the time.
  work = f"""import os, signal
    class Dying:
      def __del__(self):
        os.kill(os.getpid(), signal.{sent})
        for _ in range(10**5): pass
    Dying()
    time.sleep(60)"""
  process = start(tmp_path, work)
  out, err = process.communicate(timeout=20)
  assert (process.returncode, err) == (code, line)
  assert out == 'ready\nfinally\natexit\n'


def test_a_reader_that_is_gone_is_no_fault(tmp_path):
  process = start(tmp_path, 'sys.stdin.readline(); print("x" * 1_000_000)', stdin=subprocess.PIPE)
  process.stdout.readline()
  process.stdout.close()
  process.stdin.write('go\n')
  process.stdin.close()
  assert (process.wait(20), process.stderr.read()) == (141, '')


def test_help_to_a_reader_that_is_gone(tmp_path):
  reader, writer = os.pipe()
  os.close(reader)
  arguments = [sys.executable, '-m', 'phases.clustering', '--help']
  done = subprocess.run(arguments, stdout=writer, stderr=subprocess.PIPE)
  os.close(writer)
  assert (done.returncode, done.stderr) == (141, b'')


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='needs /dev/full')
def test_output_that_cannot_be_written():
  with open('/dev/full', 'wb') as full:
    done = subprocess.run(
      [sys.executable, '-m', 'phases.clustering', '--help'], stdout=full, stderr=subprocess.PIPE
    )
  assert (done.returncode, done.stderr) == (1, b'error: cannot write the output: No space left on device\n')


def test_closed_streams(tmp_path):
  for streams in ('>&-', '2>&-', '>&- 2>&-'):
    for flag, code in (('--help', 0), ('--nonsense', 2)):
      command = f'{sys.executable} -m phases.clustering {flag} {streams}'
      done = subprocess.run(command, shell=True, capture_output=True, text=True)
      assert done.returncode == code, (command, done.stderr)
      assert 'Traceback' not in done.stderr


def test_a_fault_of_ours_ends_with_its_traceback(tmp_path):
  process = start(tmp_path, 'raise RuntimeError("ours")')
  _, err = process.communicate(timeout=20)
  assert process.returncode == 1
  assert 'Traceback' in err and err.endswith('RuntimeError: ours\n')
