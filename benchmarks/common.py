"""What the benchmarks share: the setting, rows made from a seed, contenders in processes of their own."""

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import psutil

from tff_cluster.base import seeding, words
from tff_cluster.base.errors import EnvironmentFault, InputError

ROOT = pathlib.Path(__file__).parents[1]
_SHAPE = (28, 28, 1)
_CLASSES = 10
_BUSY = 0.2
# Shares of template and noise, and of labels that are wrong: learnable, and never learnt to the end, where
# gradients vanish into denormal numbers and a round would cost something else.
_SIGNAL, _NOISE, _WRONG_LABELS = 60.0, 60.0, 0.1


@dataclasses.dataclass(frozen=True)
class Setting:
  """What every contender trains: the MNIST CNN of 1,663,370 parameters by plain SGD.

  Attributes:
    clients: Clients of a round; all of them take part.
    rows: Examples of a client.
    batch_size, local_epochs, learning_rate: Of the local SGD.
    seed: Of the rows and of whatever a contender draws.
  """

  clients: int = 8
  rows: int = 600
  batch_size: int = 10
  local_epochs: int = 3
  learning_rate: float = 0.1
  seed: int = 0


def parser(doc: str | None) -> argparse.ArgumentParser:
  """Returns a parser of flags that shows a program's docstring as it is written."""
  return argparse.ArgumentParser(
    description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
  )


def program(main: Callable[[], object]) -> Callable[[], int]:
  """Makes a program of a function that returns what the last line of the output says, as JSON; returns the exit code."""

  @functools.wraps(main)
  def run() -> int:
    try:
      print(json.dumps(main()))
    except (InputError, EnvironmentFault) as error:
      print(error, file=sys.stderr)
      return error.exit_code
    return 0

  return run


def of_process(module: str, flags: Mapping[str, object]) -> dict[str, Any]:
  """Returns what the last line of a program says, run in a process of its own.

  Raises:
    EnvironmentFault: if it fails.
  """
  done = subprocess.run(
    [sys.executable, '-m', module, *(f'--{name}={value}' for name, value in flags.items())],
    cwd=ROOT,
    env=os.environ | {'TF_CPP_MIN_LOG_LEVEL': '3'},
    capture_output=True,
    text=True,
  )
  if done.returncode:
    raise EnvironmentFault(f'{module}: {words.last_line(done.stderr, "it said nothing")}')
  return json.loads(done.stdout.splitlines()[-1])


def add_setting_flags(parser: argparse.ArgumentParser) -> None:
  """Adds one flag a field of Setting."""
  for field in dataclasses.fields(Setting):
    kind = float if field.name == 'learning_rate' else int
    parser.add_argument(f'--{field.name}', type=kind, default=field.default, help='default: %(default)s')


def setting_from(flags: argparse.Namespace) -> Setting:
  """Returns the setting that was given.

  Raises:
    InputError: if a size is not positive.
  """
  values = {field.name: getattr(flags, field.name) for field in dataclasses.fields(Setting)}
  for name, value in values.items():
    if name != 'seed' and value <= 0:
      raise InputError(f'--{name}={value}: must be above 0')
  return Setting(**values)


def made_rows(clients: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns random but learnable rows: uint8[clients, rows, 28, 28, 1] and int32[clients, rows] in 0 .. 9."""
  templates = seeding.generator(seed, 'benchmark templates').normal(size=(_CLASSES, *_SHAPE))
  x = np.empty((clients, rows, *_SHAPE), np.uint8)
  y = np.empty((clients, rows), np.int32)
  for k in range(clients):
    rng = seeding.generator(seed, 'benchmark rows', k)
    labels = rng.integers(_CLASSES, size=rows)
    noise = rng.normal(size=(rows, *_SHAPE)) * _NOISE
    x[k] = np.clip(templates[labels] * _SIGNAL + noise, 0, 255)
    wrong = rng.random(rows) < _WRONG_LABELS
    y[k] = np.where(wrong, rng.integers(_CLASSES, size=rows), labels)
  return x, y


def mnist_rows(data_dir: str, clients: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns rows of real MNIST in the form of `made_rows`, shared out at random."""
  from tff_cluster.data import sources
  from tff_cluster.experiment.config import DataConfig

  source = sources.load(DataConfig(dataset='mnist', data_dir=data_dir))
  if clients * rows > len(source.train_y):
    raise InputError(f'MNIST has {len(source.train_y)} training rows, {clients} x {rows} were asked for')
  chosen = seeding.generator(seed, 'benchmark rows').permutation(len(source.train_y))[: clients * rows]
  x = source.train_x[chosen].reshape(clients, rows, *_SHAPE)
  return x, source.train_y[chosen].reshape(clients, rows).astype(np.int32)


@contextlib.contextmanager
def rows_file(setting: Setting, data_dir: str | None) -> Iterator[pathlib.Path]:
  """Yields an .npz with the x and y that all contenders train on; it is removed afterwards."""
  size = (setting.clients, setting.rows, setting.seed)
  x, y = mnist_rows(data_dir, *size) if data_dir else made_rows(*size)
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'rows.npz'
    np.savez(path, x=x, y=y)
    yield path


class Contender:
  """A process that runs one round whenever it is told to; see turns.py."""

  def __init__(
    self,
    name: str,
    module: str,
    setting: Setting,
    rows: pathlib.Path,
    python: str | pathlib.Path = sys.executable,
    form: str = '',
    launcher: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
  ):
    """Starts it, without waiting until it is set up.

    Args:
      name: How people call it.
      module: Its module below the repository root.
      setting: What to train.
      rows: See rows_file.
      python: The interpreter of its environment.
      form: Which of its forms it takes.
      launcher: Arguments of the interpreter before `-m module`.
      environment: Variables beside ours.
    """
    self.name = name
    self._log = tempfile.TemporaryFile()  # noqa: SIM115 (the process outlives this function)
    training = [
      f'--{n}={getattr(setting, n)}' for n in ('batch_size', 'local_epochs', 'learning_rate', 'seed')
    ]
    others = [f'--rows_file={rows}', f'--cores={os.cpu_count()}', f'--form={form}']
    variables = os.environ | {'TF_CPP_MIN_LOG_LEVEL': '3', 'PYTHONPATH': str(ROOT)} | dict(environment or {})
    self._process = subprocess.Popen(
      [str(python), *launcher, '-m', module, *others, *training],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=self._log,
      env=variables,
      cwd=ROOT,
      text=True,
      start_new_session=True,
    )

  def ready(self) -> dict[str, Any]:
    """Waits until it is set up, and returns what it says about itself."""
    return self._answer()['ready']

  def round(self) -> float:
    """Runs one round, and returns its seconds."""
    return self._ask('round')['seconds']

  def accuracy(self) -> float:
    """Returns the accuracy of its model on the rows of all clients."""
    return self._ask('check')['accuracy']

  def cpu_seconds(self) -> float:
    """Returns the processor time that its processes have taken so far."""
    total = 0.0
    for process in process_tree(self._process.pid):
      with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        total += times.user + times.system
    return total

  def peak_bytes(self) -> int:
    """Returns the sum of its processes' own peaks (VmHWM), which the peak of the tree cannot exceed."""
    return sum(memory_of(process.pid, 'VmHWM') for process in process_tree(self._process.pid))

  def stop(self) -> None:
    """Ends the process, its children, and whatever else is left of its process group."""
    children = process_tree(self._process.pid)
    with contextlib.suppress(OSError):
      assert self._process.stdin is not None
      self._process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
      self._process.wait(timeout=20)
    with contextlib.suppress(ProcessLookupError):
      os.killpg(self._process.pid, signal.SIGKILL)
    for child in children:
      with contextlib.suppress(psutil.NoSuchProcess):
        child.kill()
    self._process.wait()
    self._log.close()

  def _ask(self, command: str) -> dict[str, Any]:
    with contextlib.suppress(BrokenPipeError):
      assert self._process.stdin is not None
      print(command, file=self._process.stdin, flush=True)
    return self._answer()

  def _answer(self) -> dict[str, Any]:
    assert self._process.stdout is not None
    line = self._process.stdout.readline()
    if line:
      return json.loads(line)
    size = os.fstat(self._log.fileno()).st_size
    tail = os.pread(self._log.fileno(), 1 << 14, max(size - (1 << 14), 0)).decode(errors='replace')
    raise EnvironmentFault(f'{self.name} ended: {words.last_line(tail, "it logged nothing")}')


def process_tree(pid: int) -> list[psutil.Process]:
  """Returns a process and all that it started; nothing where it has ended."""
  children: dict[int, list[psutil.Process]] = {}
  found: list[psutil.Process] = []
  for process in psutil.process_iter(['ppid']):
    if process.pid == pid:
      found.append(process)
    children.setdefault(process.info['ppid'], []).append(process)
  for process in found:
    # The list grows while it is walked: children, then their children.
    found.extend(children.get(process.pid, []))
  return found


def memory_of(pid: int, kind: str) -> int:
  """Returns VmRSS (now) or VmHWM (peak) of a process in bytes; 0 where it has ended."""
  with contextlib.suppress(OSError), open(f'/proc/{pid}/status') as status:
    for line in status:
      if line.startswith(f'{kind}:'):
        return int(line.split()[1]) * 1024
  return 0


@contextlib.contextmanager
def stopped_at_exit(contenders: Sequence[Contender]) -> Iterator[None]:
  """Stops the contenders when the block ends, however it ends."""
  try:
    yield
  finally:
    for contender in contenders:
      contender.stop()


@dataclasses.dataclass(frozen=True)
class Timing:
  """Medians of one contender, per client and round.

  Attributes:
    seconds: By the clock.
    cpu_seconds: Of processor time; it tells contenders apart where other programs keep the machine busy.
  """

  seconds: float
  cpu_seconds: float


def interleaved(
  contenders: Sequence[Contender], rounds: int, clients: int, on_round: Callable[[str, int, float], None]
) -> dict[str, Timing]:
  """Gives every contender one round in turn, after a round that is not counted.

  Args:
    contenders: Each of them has said that it is ready.
    rounds: Rounds that count.
    clients: Clients of a round.
    on_round: Called with (name, number of the round, seconds), number 0 for the one that does not count.

  Returns:
    The timing of each contender, by name.
  """
  seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
  cpu: dict[str, list[float]] = {contender.name: [] for contender in contenders}
  for number in range(rounds + 1):
    # Nobody always comes after the same one.
    first = number % len(contenders)
    for contender in [*contenders[first:], *contenders[:first]]:
      before = contender.cpu_seconds()
      taken = contender.round()
      on_round(contender.name, number, taken)
      if number:
        seconds[contender.name].append(taken)
        cpu[contender.name].append(contender.cpu_seconds() - before)
  return {
    name: Timing(statistics.median(seconds[name]) / clients, statistics.median(cpu[name]) / clients)
    for name in seconds
  }


def load() -> float:
  """Returns the processes that ran or wanted to in the last minute, per core; above 0.2 others disturb a timing."""
  value = os.getloadavg()[0] / (os.cpu_count() or 1)
  if value > _BUSY:
    print(
      f'this machine is busy ({value:.1f} running processes a core): compare cpu_seconds only', flush=True
    )
  return round(value, 2)


def print_round(clients: int) -> Callable[[str, int, float], None]:
  """Returns a function for `interleaved` that prints a line a round."""

  def show(name: str, number: int, seconds: float) -> None:
    which = f'round {number}' if number else 'warm-up'
    print(f'{which:9} {name:10} {seconds:8.2f} s {seconds / clients:8.3f} s a client', flush=True)

  return show
