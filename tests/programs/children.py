"""Runs programs as child processes and finds what they leave behind; or here, which is faster where nothing can be left."""

import atexit
import contextlib
import dataclasses
import importlib
import itertools
import json
import multiprocessing
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NoReturn

import pytest

from tests.engine import reach
from tests.phases import one_worker
from tff_cluster.cli import program

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = sorted(path.stem for path in ROOT.glob('phases/[a-z]*.py'))
# What a wrong call may take, and how long one waits for it.
SECONDS = 1.0
PATIENCE = 30.0


def run_here(name: str, *arguments: str) -> int:
  """Runs a program in this process, where TensorFlow may be imported already, and returns its exit code.

  It computes in the worker that programs run here share, unless its flags say how patient it is to be with its own.
  """
  module = importlib.import_module(name)
  with one_worker.kept():
    return program.execute(module.main, module.define_flags, ['p', *arguments])


# An experiment of three methods that trains for a second.
SMALL = (
  '--dataset=digits', '--partition=label_swapped', '--num_clients=4', '--num_groups=2', '--model=logistic',
  '--phase1_rounds=2', '--phase2_rounds=2', '--clustering=kmeans,num_clusters=2',
  '--clustering=hierarchical,distance_threshold=quantile:0.5',
  '--clustering=bipartition,stationary_norm=9,stopping_norm=0.001,rounds_before_split=1',
)  # fmt: skip


def run_small(folder: pathlib.Path | str, *flags: str) -> int:
  """Runs SMALL with phases.run_all in this process, and returns its exit code."""
  return run_here('phases.run_all', f'--output_dir={folder}', *SMALL, *flags)


@contextlib.contextmanager
def no_report() -> Iterator[None]:
  """While it lasts, runs write no report, which takes most of the time of a small one."""
  from tff_cluster.report import report

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(report, 'write_report', lambda folder, *_: folder / 'report.html')
    yield


def digest(folder: pathlib.Path) -> str:
  """Returns the digest of a finished run."""
  return json.loads((folder / 'results.json').read_bytes())['digest']


def nothing_done(out: str) -> bool:
  """Tells whether a program printed at most the line on memory that comes before training."""
  return all(line.startswith('memory: ') for line in out.splitlines())


# A line that tells of a finished phase ends with the time that it took.
_PHASE = re.compile(r'[^\n]+: ([^\n]+, )?([0-9.]+ s|[0-9]+ min [0-9]{2} s|[0-9]+ h [0-9]{2} min)\n')


def beside_phases(err: str) -> str:
  """Returns what a program wrote to standard error beside the lines of finished phases."""
  return ''.join(line for line in err.splitlines(keepends=True) if not _PHASE.fullmatch(line))


def left_in(folder: pathlib.Path) -> list[pathlib.Path]:
  """Returns the files in a run's folder that belong to a program at work; TensorBoard's logs have a list of theirs."""
  return [path for path in folder.rglob('.tff_cluster-*') if path.name != '.tff_cluster-events.json']


class Child:
  """A program under test; every process that descends from it carries its mark in the environment."""

  def __init__(self, program: str, *arguments: str, **environment: str):
    self.mark = uuid.uuid4().hex
    self._killed: list[int] = []
    self.process = self._start(program, arguments, environment | {'TFF_CLUSTER_TEST_MARK': self.mark})

  def _start(
    self, program: str, arguments: Sequence[str], environment: Mapping[str, str]
  ) -> 'subprocess.Popen[str] | ForkedProcess':
    return subprocess.Popen(
      [sys.executable, '-m', program, *arguments],
      cwd=ROOT,
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
      env=os.environ | dict(environment),
    )

  def finish(self, timeout: float = 300) -> tuple[int, str, str]:
    """Returns exit code, standard output, and standard error beside the lines of finished phases."""
    out, err = self.process.communicate(timeout=timeout)
    return self.process.returncode, out, beside_phases(err)

  def wait_for(self, folder: pathlib.Path, pattern: str, timeout: float = 120) -> bool:
    """Waits until a file matches or the program ends; returns whether it does."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and self.process.poll() is None:
      if any(folder.glob(pattern)):
        return True
      time.sleep(0.002)
    return any(folder.glob(pattern))

  def workers(self) -> list[int]:
    """Returns the ids of living processes with the mark, other than the program itself."""
    found = []
    for entry in pathlib.Path('/proc').glob('[0-9]*'):
      try:
        marked = self.mark.encode() in (entry / 'environ').read_bytes()
      except OSError:
        continue
      if marked and _lives(int(entry.name)) and int(entry.name) != self.process.pid:
        found.append(int(entry.name))
    return found

  def left_over(self, patience: float = 10) -> list[int]:
    """Returns what is left of the program's processes once the kernel had time to end them."""
    deadline = time.monotonic() + patience
    # A process that ends has no environment any more while it still has its files, and with them its locks.
    while ((found := self.workers()) or any(map(_lives, self._killed))) and time.monotonic() < deadline:
      time.sleep(0.05)
    return found

  def kill(self) -> None:
    self._killed = self.workers()
    self.process.send_signal(signal.SIGKILL)
    self.process.communicate(timeout=30)


def _lives(pid: int) -> bool:
  """Returns whether there is such a process that has not ended, or waits for its parent only."""
  try:
    return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
  except (OSError, IndexError):
    return False


# A process that has imported what programs import, and does nothing but fork. It is started when it is first needed.
SERVER = multiprocessing.get_context('forkserver')
SERVER.set_forkserver_preload(['tests.programs.everything', 'tests.programs.children'])


class ForkedChild(Child):
  """The same in a fork of a process that has imported what programs import, which saves seconds."""

  inside: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext

  def _start(self, program: str, arguments: Sequence[str], environment: Mapping[str, str]) -> 'ForkedProcess':
    return ForkedProcess(program, arguments, environment, type(self).inside)


class UnreportedChild(ForkedChild):
  """The same without a report."""

  inside = no_report


@contextlib.contextmanager
def unconnected() -> Iterator[None]:
  """While it lasts, and afterwards, the system allows this process no private network; runs write no report."""
  reach.forbid_networks()
  with no_report():
    yield


class UnconnectedChild(ForkedChild):
  """The same on a system without private networks."""

  inside = unconnected


@contextlib.contextmanager
def jumping_clock() -> Iterator[None]:
  """While it lasts, the clock jumps; at the end the file JUMPED tells how often. Runs write no report."""
  jumps, real, asked = itertools.cycle([0.0, 3e8, -3e8, 5.0, 2e9]), time.time, itertools.count()

  def jumped() -> float:
    # gRPC hands times to its core, which has the machine's own clock.
    if sys._getframe(1).f_globals.get('__name__', '').startswith('grpc'):
      return real()
    next(asked)
    return real() + next(jumps)

  with pytest.MonkeyPatch.context() as patch, no_report():
    patch.setattr(time, 'time', jumped)
    try:
      yield
    finally:
      pathlib.Path(os.environ['JUMPED']).write_text(str(next(asked)))


class JumpingChild(ForkedChild):
  """The same under a clock that jumps."""

  inside = jumping_clock


class ForkedProcess:
  """What Child needs of subprocess.Popen, for a fork."""

  def __init__(
    self,
    program: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    inside: Callable[[], AbstractContextManager[None]],
  ):
    self._written = [tempfile.NamedTemporaryFile() for _ in range(2)]  # noqa: SIM115 (read at the end)
    names = [file.name for file in self._written]
    self._process = SERVER.Process(target=_become, args=(program, arguments, environment, names, inside))
    self._process.start()
    self.pid = self._process.pid

  @property
  def returncode(self) -> int | None:
    return self._process.exitcode

  def poll(self) -> int | None:
    return self._process.exitcode

  def send_signal(self, number: int) -> None:
    if self.poll() is None:
      os.kill(self.pid, number)

  def communicate(self, timeout: float) -> tuple[str, str]:
    self._process.join(timeout)
    if self.poll() is None:
      raise subprocess.TimeoutExpired(sys.argv, timeout)
    out, err = (pathlib.Path(file.name).read_text() for file in self._written)
    return out, err


def _become(
  name: str,
  arguments: Sequence[str],
  environment: Mapping[str, str],
  written: Sequence[str],
  inside: Callable[[], AbstractContextManager[None]],
) -> NoReturn:
  """Runs a program in this process, to its end."""
  code = 1
  try:
    os.chdir(ROOT)
    os.environ.update(environment)
    for number, file in enumerate(written, 1):
      os.dup2(os.open(file, os.O_WRONLY), number)
    sys.argv = [name, *arguments]
    module = importlib.import_module(name)
    with inside():
      program.run(module.main, module.define_flags)
  except SystemExit as ended:
    code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
  except BaseException:
    traceback.print_exc()
  finally:
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@dataclasses.dataclass(frozen=True)
class Answer:
  """What a program gave back.

  Attributes:
    code: Exit code.
    out, err: Standard output and standard error.
    seconds: Of the processor, so that what else the machine does meanwhile is not counted.
  """

  code: int
  out: str
  err: str
  seconds: float


def call(name: str, arguments: list[str], capsys) -> Answer:
  """Calls phases.NAME in this process."""
  module = importlib.import_module(f'phases.{name}')
  capsys.readouterr()
  started = time.process_time()
  code = program.execute(module.main, module.define_flags, [name, *arguments])
  return Answer(code, *capsys.readouterr(), time.process_time() - started)


def call_process(*arguments: str, patience: float = PATIENCE) -> Answer:
  """Calls Python in the repository's root. Who waits instead of working is stopped."""
  before = _seconds_of_children()
  done = subprocess.run(
    [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=patience
  )
  return Answer(done.returncode, done.stdout, done.stderr, _seconds_of_children() - before)


# Runs programs as they are run from a shell, one after the other. Nothing listens at the proxy: whoever wants to download is
# refused at once.
_ONE_BY_ONE = """
import contextlib, json, os, runpy, sys, tempfile, time
from absl import logging
folder, watched, lines = json.loads(sys.argv[1])
sys.path.insert(0, folder)
os.environ |= {'http_proxy': 'http://127.0.0.1:9', 'https_proxy': 'http://127.0.0.1:9'}
for name, *given in lines:
  sys.argv, begun = [name, *given], time.process_time()
  with tempfile.TemporaryFile('w+') as out, tempfile.TemporaryFile('w+') as err:
    logging.get_absl_handler().python_handler.stream = err
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
      try:
        runpy.run_module(f'phases.{name}', run_name='__main__', alter_sys=True)
      except SystemExit as ended:
        code = ended.code
    seconds, texts = time.process_time() - begun, []
    for file in (out, err):
      file.seek(0)
      texts.append(file.read())
  print(json.dumps([[code, *texts, seconds], [module for module in watched if module in sys.modules]]))
"""


def call_one_by_one(
  folder: pathlib.Path, watched: Sequence[str], lines: Sequence[Sequence[str]]
) -> list[tuple[Answer, list[str]]]:
  """Returns the answer of each (program, *arguments), and which of the watched modules have been imported by then.

  All run in one process. Modules of the folder can be imported.
  """
  answer = call_process('-c', _ONE_BY_ONE, json.dumps([str(folder), watched, lines]), patience=10 * PATIENCE)
  assert answer.code == 0, answer.err
  return [(Answer(*given), imported) for given, imported in map(json.loads, answer.out.splitlines())]


def check(answer: Answer, words: str) -> None:
  """Exit code 2, one line of a bearable length with these words, nothing else, no traceback, in less than a second."""
  assert answer.code == 2, answer
  assert words in answer.err
  assert answer.err.startswith('error: ') and answer.err.endswith('\n')
  # Also those that end a line on some terminals only (vertical tab, NEL, U+2028, ...).
  assert len(answer.err.splitlines()) == 1 and answer.err[:-1].isprintable()
  assert len(answer.err) < 2200 and 'Traceback' not in answer.err
  assert answer.out == ''
  assert answer.seconds < SECONDS


def check_text(code: int, err: str, expected: int, *words: str) -> None:
  """This exit code, one line of an error with these words, no traceback."""
  assert code == expected, err
  assert err.startswith('error: ') and err.count('\n') == 1 and err.endswith('\n'), err
  assert 'Traceback' not in err
  for word in words:
    assert word in err


def files(folder: pathlib.Path) -> dict[pathlib.Path, bytes]:
  """Returns what lies below a folder, so that a test can see that nothing was lost or left."""
  return {path: path.read_bytes() if path.is_file() else b'' for path in folder.rglob('*')}


def _seconds_of_children() -> float:
  usage = resource.getrusage(resource.RUSAGE_CHILDREN)
  return usage.ru_utime + usage.ru_stime


def import_what_is_slow() -> None:
  """Imports what programs import late, so that a row's seconds are those of its answer."""
  for name in ('phases.session', 'phases.assembly', 'studies.replay.study', 'clustering.methods'):
    importlib.import_module(f'tff_cluster.{name}')
  for name in ('data.populate', 'report.report', 'studies.partition_pictures', 'studies.replay.tables'):
    importlib.import_module(f'tff_cluster.{name}')
