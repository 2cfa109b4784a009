"""A process that does whole runs, one after the other, each on a TFF worker of its own: on this machine, or on a worker of a cluster.

It is told the folder of a run in a line of JSON on its standard input, and answers what came of it in a line of JSON on its
standard output. What libraries print goes to standard error. It imports TensorFlow once for all runs that it is given.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Collection, Iterator, Sequence
from multiprocessing import connection
from typing import IO

from tff_cluster.base import console_log
from tff_cluster.base.errors import EnvironmentFault, Fault, InputError
from tff_cluster.engine import machine as machine_lib
from tff_cluster.engine import stock_context, worker_launcher
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import faults, output_folders

# How long a process that is stopped may take to tidy up.
_PATIENCE_SECS = 10.0
_TERMINATED = 143


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
  """What came of a run.

  Attributes:
    asked, trained: See main_job.Done.
    fault: What went wrong; None where nothing did.
  """

  asked: int
  trained: int
  fault: Fault | None

  def to_line(self) -> str:
    """Returns the answer as a line of JSON."""
    told = None if self.fault is None else [self.fault.exit_code, self.fault.marked]
    return json.dumps({'asked': self.asked, 'trained': self.trained, 'fault': told})

  @classmethod
  def from_line(cls, line: str) -> 'Answer':
    """Reads what `to_line` gave; of a fault, kind and message are kept."""
    found = json.loads(line)
    if found['fault'] is None:
      return cls(found['asked'], found['trained'], None)
    code, told = found['fault']
    kind = InputError if code == InputError.exit_code else EnvironmentFault
    return cls(found['asked'], found['trained'], kind(told))


class RunProcess:
  """Such a process, from the side of the one that starts it; it ends with that one, however that one ends (on Linux).

  Attributes:
    returncode: Its exit code; None while it lives.
  """

  def __init__(self, machine: machine_lib.Machine, errors: IO[str] | None = None):
    """Starts it. Call this from a thread that outlives it: the kernel ends it with the thread that started it.

    Args:
      machine: What each of its runs may use; no cluster.
      errors: Where its standard error goes; None: to that of this process.
    """
    told = [str(os.getpid()), json.dumps(dataclasses.asdict(machine))]
    # It finds the modules that this process finds, a user's own among them.
    path = os.pathsep.join(os.path.abspath(each) for each in sys.path)
    with _interrupts_held_back():
      self._process = subprocess.Popen(
        [sys.executable, '-P', '-m', __name__, *told],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if errors is None and sys.stderr is None else errors,
        env=os.environ | {'PYTHONPATH': path},
        text=True,
      )

  @property
  def returncode(self) -> int | None:
    return self._process.returncode

  def begin(self, folder: pathlib.Path) -> None:
    """Has it do the run in a folder that has its configuration and clients, and that no process has locked."""
    assert self._process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # It ended; `answer` tells.
      print(json.dumps(os.path.abspath(folder)), file=self._process.stdin, flush=True)

  def fileno(self) -> int:
    """Returns the descriptor that can be read once it has answered, or ended."""
    assert self._process.stdout is not None
    return self._process.stdout.fileno()

  def answer(self) -> Answer | None:
    """Returns what came of the run that it was given last, once that is known; None where it ended without a word."""
    assert self._process.stdout is not None
    line = self._process.stdout.readline()
    if line.endswith('\n'):
      return Answer.from_line(line)
    self._process.wait()
    return None

  def end(self, deadline: float) -> None:
    """Waits until it has ended, and kills it once time.monotonic() has passed the deadline."""
    try:
      self._process.wait(max(deadline - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
      self._process.kill()
      self._process.wait()
    for pipe in (self._process.stdin, self._process.stdout):
      with contextlib.suppress(OSError):
        assert pipe is not None
        pipe.close()

  def terminate(self) -> None:
    """Asks it to end."""
    self._process.terminate()


def ready(processes: Collection[RunProcess], seconds: float | None = None) -> Sequence[RunProcess]:
  """Returns those of some processes that have answered or ended; waits for the first one, for so many seconds at most."""
  found = connection.wait([each.fileno() for each in processes], seconds)
  return [each for each in processes if each.fileno() in found]


def stop(processes: Collection[RunProcess]) -> None:
  """Ends processes, and the workers of their runs; what they have finished is saved, what they were writing is gone."""
  for each in processes:
    each.terminate()
  deadline = time.monotonic() + _PATIENCE_SECS
  for each in processes:
    each.end(deadline)


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
  """Has processes that the block starts, and theirs, not see Ctrl-C, which a terminal sends to all: this one ends them."""
  before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _do(folder: RunFolder, machine: machine_lib.Machine) -> Answer:
  """Does the run in a folder."""
  try:
    with output_folders.held(folder.root):
      return _run(folder, machine)
  except Fault as fault:
    return Answer(0, 0, fault)


def _run(folder: RunFolder, machine: machine_lib.Machine) -> Answer:
  """Does the run in a folder that this process holds; raises Fault for whatever a person has to act on."""
  from tff_cluster.phases import failures, run_experiment

  try:
    done = run_experiment.run_with_folds(
      folder, folder.load_config(), run_experiment.Silent(), machine, export_models=False
    )
  except Exception as error:
    raise faults.of(error) or error from None
  if not done.failed:
    return Answer(done.asked, done.trained, None)
  left = [clustering.label for clustering in folder.load_config().clusterings]
  return Answer(done.asked, done.trained, failures.ClusteringsFailed(done.failed, left))


def _terminate(signum: int, frame: types.FrameType | None) -> None:
  del signum, frame
  sys.exit(_TERMINATED)


def main() -> None:
  """Runs `run_process.py PARENT MACHINE`: the process that started this one, and a Machine as JSON."""
  parent, machine = int(sys.argv[1]), machine_lib.Machine(**json.loads(sys.argv[2]))
  worker_launcher.end_with(parent)
  signal.signal(signal.SIGTERM, _terminate)
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  warnings.filterwarnings('ignore', message='pkg_resources is deprecated')
  console_log.use()
  with os.fdopen(os.dup(1), 'w') as answers:
    os.dup2(2, 1)
    try:
      for line in sys.stdin:
        print(_do(RunFolder(pathlib.Path(json.loads(line))), machine).to_line(), file=answers, flush=True)
    finally:
      stock_context.drop()


if __name__ == '__main__':
  main()
