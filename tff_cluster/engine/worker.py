"""The worker process that TFF computations run in: started by us, watched, and never left behind.

Stock TFF starts the same binary lazily, with our standard output, and leaves it running at exit. Here
the kernel ends it with its parent, even when the parent is killed (PR_SET_PDEATHSIG); it writes to a
log of its own, a file without a name that vanishes with the processes that hold it; and it gets an
environment that suits many small clients side by side. It lives in a network of its own where the system
allows one (see worker_launcher.py), because whoever reaches it can read and write the files of its user.
"""

import atexit
import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent import futures
from typing import IO

from tff_cluster.base import words
from tff_cluster.base.errors import EnvironmentFault, argument
from tff_cluster.engine import worker_launcher

_LAUNCHER = pathlib.Path(worker_launcher.__file__)
# One thread inside an op: clients run side by side instead, and sums do not depend on the number of threads.
# glibc's malloc is kept from giving every freed tensor back to the kernel and asking for it again, and from spreading
# them over an arena a thread, in which what is freed piles up round by round. Stacks of ended threads stay: pthread_detach of
# glibc may read one that has just been unmapped (SIGSEGV, seen once in a day of runs), and TFF detaches a thread a step.
_ENVIRONMENT = {
  'TF_NUM_INTRAOP_THREADS': '1',
  'OMP_NUM_THREADS': '1',
  'TF_CPP_MIN_LOG_LEVEL': '1',
  'TF_DETERMINISTIC_OPS': '1',
  'CUDA_VISIBLE_DEVICES': '-1',
  'MALLOC_ARENA_MAX': '2',
  'MALLOC_MMAP_MAX_': '0',
  'MALLOC_TRIM_THRESHOLD_': str(1 << 29),
  'GLIBC_TUNABLES': f'glibc.pthread.stack_cache_size={1 << 32}',
}

# Settings of somebody's shell that would change the bits of a result.
_NUMERIC_PREFIXES = ('TF_', 'OMP_', 'MKL_', 'KMP_', 'DNNL_', 'ONEDNN_', 'MALLOC_')

# What the kernel or the C library ends a process with whose own memory or code is wrong.
_OWN_FAULTS = (
  signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS,
)  # fmt: skip


@dataclasses.dataclass(eq=False)
class Worker:
  """A running worker.

  Attributes:
    process: Its process.
    clients_in_parallel: How many clients it works on at the same time.
    log: The file that it writes to; it has no name.
    private: Whether it lives in a network of its own, that of nobody else; known once it serves.
    port: The TCP port of its gRPC service in its network; known once it serves.
  """

  process: subprocess.Popen
  clients_in_parallel: int
  log: IO[bytes]
  _control: socket.socket
  _stopped: threading.Event
  private: bool = dataclasses.field(default=False, init=False)
  port: int = dataclasses.field(default=0, init=False)
  _sockets: list[socket.socket] = dataclasses.field(default_factory=list, init=False)

  @property
  def alive(self) -> bool:
    return self.process.poll() is None

  @property
  def died_of(self) -> str | None:
    """The name of the signal that a fault of its own ended it with; None where it lives or ended otherwise."""
    number = -(self.process.poll() or 0)
    return signal.Signals(number).name if number in _OWN_FAULTS else None

  def connect(self) -> socket.socket:
    """Returns a new connection to a worker that serves.

    To one in a network of its own it can be called once, since what connects there was made before it started.

    Raises:
      OSError: if it cannot be reached.
    """
    connection = self._socket()
    try:
      connection.connect(('127.0.0.1', self.port))
    except OSError:
      connection.close()
      raise
    return connection

  def stop(self) -> None:
    """Ends the worker and waits for it; does nothing where it has ended."""
    if self.alive:
      self.process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
      self.process.wait(timeout=10)
    self._stopped.set()
    for each in (self._control, *self._sockets):
      each.close()
    atexit.unregister(self.stop)

  def _socket(self) -> socket.socket:
    """Returns a socket of the worker's network that is not connected."""
    if not self.private:
      return socket.socket()
    if not self._sockets:
      raise OSError('the worker has been connected to')
    return self._sockets.pop()

  def _meet(self, timeout_secs: float) -> bool:
    """Takes what the launcher sends; returns whether it came in time."""
    self._control.settimeout(timeout_secs)
    try:
      told, descriptors, _, _ = socket.recv_fds(self._control, 1 << 10, worker_launcher.NUM_SOCKETS)
    except TimeoutError:
      return False
    self._sockets = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    for each in self._sockets:
      each.set_inheritable(False)
    if not told:
      return False  # It ended.
    found = json.loads(told)
    self.private, self.port = found['private'], found['port']
    return True


def start(clients_in_parallel: int, onednn: bool = True) -> Worker:
  """Starts a worker on this machine, without waiting until it serves.

  It gets a network of its own where the system allows that. Otherwise it listens on all interfaces of the network that this
  process lives in.

  Args:
    clients_in_parallel: How many clients it works on at the same time.
    onednn: Whether it uses oneDNN's kernels. Without them its bits are others.

  Raises:
    EnvironmentFault: if TFF's worker binary is not there.
  """
  binary = _binary()
  log = tempfile.TemporaryFile()  # noqa: SIM115 (the worker outlives this function)
  ours, control = socket.socketpair()
  arguments = [
      sys.executable, '-I', '-S', str(_LAUNCHER), str(os.getpid()), str(control.fileno()), str(binary),
      f'--max_concurrent_computation_calls={clients_in_parallel}',
  ]  # fmt: skip
  # Threads that run whole ops: more than one a client contend with each other, a single one serves one client only.
  inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NUMERIC_PREFIXES)}
  environment = inherited | _ENVIRONMENT | {'TF_NUM_INTEROP_THREADS': str(max(clients_in_parallel, 2))}
  environment['TF_ENABLE_ONEDNN_OPTS'] = str(int(onednn))
  begun: futures.Future[subprocess.Popen] = futures.Future()
  stopped = threading.Event()

  def parent() -> None:
    try:
      process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=environment,
        pass_fds=(control.fileno(),),
      )
    except BaseException as error:
      begun.set_exception(error)
    else:
      begun.set_result(process)
      stopped.wait()

  # The kernel ends a child with the thread that started it, and a caller's may end before.
  threading.Thread(target=parent, name='parent of a worker', daemon=True).start()
  with control:
    process = begun.result()
  worker = Worker(process, clients_in_parallel, log, ours, stopped)
  atexit.register(worker.stop)
  return worker


def wait_until_serving(worker: Worker, timeout_secs: float) -> None:
  """Waits until the worker accepts connections.

  Raises:
    EnvironmentFault: if it ends or does not accept one within timeout_secs; the message has the last
      line of its log.
  """
  deadline = time.monotonic() + timeout_secs
  with contextlib.ExitStack() as opened:
    probe: socket.socket | None = None
    while time.monotonic() < deadline:
      if not worker.alive:
        message = (
          f'the TFF worker ended at start with exit code {worker.process.returncode}: {last_line(worker)}'
        )
        worker.stop()
        raise EnvironmentFault(message)
      if probe is None and worker._meet(0.1):
        probe = opened.enter_context(worker._socket())
        probe.settimeout(1.0)
      with contextlib.suppress(OSError):
        if probe is not None:
          probe.connect(('127.0.0.1', worker.port))
          return
      time.sleep(0.02)
  message = (
    f'the TFF worker did not come up within {timeout_secs:g} s: {last_line(worker)}; '
    f'allow more with {argument("worker_start_timeout_secs")}'
  )
  worker.stop()
  raise EnvironmentFault(message)


def cpu_ticks(worker: Worker) -> int | None:
  """Returns the processor time that the worker has used, in clock ticks; None where the system does not tell."""
  try:
    fields = pathlib.Path(f'/proc/{worker.process.pid}/stat').read_text().rpartition(')')[2].split()
    return int(fields[11]) + int(fields[12])
  except (OSError, ValueError, IndexError):
    return None


def last_line(worker: Worker) -> str:
  """Returns the last line that the worker logged."""
  try:
    size = os.fstat(worker.log.fileno()).st_size
    tail = os.pread(worker.log.fileno(), 1 << 16, max(size - (1 << 16), 0)).decode(errors='replace')
  except (OSError, ValueError):
    tail = ''
  return words.last_line(tail, 'it logged nothing')


def _binary() -> pathlib.Path:
  # Found without importing the package, which takes seconds: the worker starts meanwhile.
  spec = importlib.util.find_spec('tensorflow_federated')
  places = spec.submodule_search_locations if spec else None
  binary = pathlib.Path(next(iter(places or ['.']))) / 'data' / 'worker_binary'
  if not binary.is_file():
    raise EnvironmentFault(
      f'TFF has no worker binary at {binary}; install tensorflow-federated from requirements.lock'
    )
  return binary
