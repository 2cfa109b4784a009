"""The worker process that TFF computations run in: started by us, watched, and never left behind.

Stock TFF starts the same binary lazily, with our standard output, and leaves it running at exit. Here
the kernel ends it with its parent, even when the parent is killed (PR_SET_PDEATHSIG); it writes to a
log of its own, a file without a name that vanishes with the processes that hold it; and it gets an
environment that suits many small clients side by side.
"""

import atexit
import contextlib
import dataclasses
import importlib.util
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
from typing import IO

from tff_cluster.errors import EnvironmentFault

# Run by a fresh interpreter instead of a preexec_fn: forking a process that has TensorFlow's threads can
# deadlock. Linux only has the parent-death signal; elsewhere `stop` at exit is what ends the worker.
_LAUNCHER = """
import os, sys
parent = int(sys.argv[1])
if sys.platform == 'linux':
  import ctypes
  ctypes.CDLL(None, use_errno=True).prctl(1, 9, 0, 0, 0)
  if os.getppid() != parent:
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""

# One thread inside an op: clients run side by side instead, and sums do not depend on the number of threads.
# glibc's malloc is kept from giving every freed tensor back to the kernel and asking for it again, and from spreading
# them over an arena a thread, in which what is freed piles up round by round.
_ENVIRONMENT = {
  'TF_NUM_INTRAOP_THREADS': '1',
  'OMP_NUM_THREADS': '1',
  'TF_CPP_MIN_LOG_LEVEL': '1',
  'TF_DETERMINISTIC_OPS': '1',
  'TF_ENABLE_ONEDNN_OPTS': '1',
  'CUDA_VISIBLE_DEVICES': '-1',
  'MALLOC_ARENA_MAX': '2',
  'MALLOC_MMAP_MAX_': '0',
  'MALLOC_TRIM_THRESHOLD_': str(1 << 29),
}


# Settings of somebody's shell that would change the bits of a result.
_NUMERIC_PREFIXES = ('TF_', 'OMP_', 'MKL_', 'KMP_', 'DNNL_', 'ONEDNN_', 'MALLOC_')


@dataclasses.dataclass(eq=False)
class Worker:
  """A running worker.

  Attributes:
    process: Its process.
    port: The TCP port of its gRPC service.
    clients_in_parallel: How many clients it works on at the same time.
    log: The file that it writes to; it has no name.
  """

  process: subprocess.Popen
  port: int
  clients_in_parallel: int
  log: IO[bytes]

  @property
  def alive(self) -> bool:
    return self.process.poll() is None

  def stop(self) -> None:
    """Ends the worker and waits for it; does nothing where it has ended."""
    if self.alive:
      self.process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
      self.process.wait(timeout=10)
    atexit.unregister(self.stop)


def start(clients_in_parallel: int) -> Worker:
  """Starts a worker on a free port of this machine, without waiting until it serves.

  Call it from a thread that outlives the worker: the kernel ends the child with the thread that started it.

  Args:
    clients_in_parallel: How many clients it works on at the same time.

  Raises:
    EnvironmentFault: if TFF's worker binary is not there.
  """
  binary = _binary()
  with socket.socket() as probe:
    probe.bind(('127.0.0.1', 0))
    port = probe.getsockname()[1]
  log = tempfile.TemporaryFile()  # noqa: SIM115 (the worker outlives this function)
  arguments = [
      sys.executable, '-S', '-E', '-c', _LAUNCHER, str(os.getpid()), str(binary),
      f'--port={port}', f'--max_concurrent_computation_calls={clients_in_parallel}',
  ]  # fmt: skip
  # Threads that run whole ops: more than one a client contend with each other, a single one serves one client only.
  inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NUMERIC_PREFIXES)}
  environment = inherited | _ENVIRONMENT | {'TF_NUM_INTEROP_THREADS': str(max(clients_in_parallel, 2))}
  process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
  worker = Worker(process, port, clients_in_parallel, log)
  atexit.register(worker.stop)
  return worker


def wait_until_serving(worker: Worker, timeout_secs: float) -> None:
  """Waits until the worker accepts connections.

  Raises:
    EnvironmentFault: if it ends or does not accept one within timeout_secs; the message has the last
      line of its log.
  """
  deadline = time.monotonic() + timeout_secs
  while time.monotonic() < deadline:
    if not worker.alive:
      message = (
        f'the TFF worker ended at start with exit code {worker.process.returncode}: {last_line(worker)}'
      )
      worker.stop()
      raise EnvironmentFault(message)
    with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', worker.port), timeout=1.0):
      return
    time.sleep(0.02)
  message = (
    f'the TFF worker did not come up within {timeout_secs:g} s: {last_line(worker)}; '
    'allow more with --worker_start_timeout_secs'
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
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
  except (OSError, ValueError):
    lines = []
  return lines[-1][:300] if lines else 'it logged nothing'


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
