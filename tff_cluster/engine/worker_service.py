"""A worker for other machines: one port that passes calls to TFF's worker binary and tells how the worker is.

TFF's binary listens on all network interfaces and cannot be told otherwise. So it runs in a network of its own that
has no interface but loopback, and this process, which lives there too, hands over what arrives at a port that was
opened before it moved in; a run's own worker does without a process in its network (see worker_launcher.py), but is connected
to once, this one by any number of runs. Standard library only: this process must have one thread when it moves.

The port speaks gRPC, and beside it two words of ours, each alone on a line: STATUS is answered with a line of JSON
(see `_Service.status`); REVIVE ends the worker, so that a new one takes its place, and is answered likewise. Nothing is encrypted and nobody is asked
for a password: whoever reaches the port can read and write all files of the user that this process runs as.
"""

import contextlib
import ipaddress
import json
import os
import signal
import socket
import sys
import threading
from typing import Any

from tff_cluster.base.errors import EnvironmentFault, argument
from tff_cluster.engine import socket_relay, worker_launcher
from tff_cluster.engine import worker as worker_lib

# Of one length, and unlike gRPC's first bytes.
STATUS, REVIVE = b'STATUS\n', b'REVIVE\n'
_START_SECS = 60.0


def serve(address: str, port: int, clients_in_parallel: int, about: dict[str, Any]) -> None:
  """Serves until a signal ends the process.

  Args:
    address: What to listen on, an IPv4 address.
    port: The port.
    clients_in_parallel: Clients that the worker works on at the same time.
    about: What STATUS tells beside how the worker is, for instance the versions of packages.

  Raises:
    EnvironmentFault: if the port cannot be had, the worker does not come up, or it cannot be kept from listening on
      all interfaces while `address` is loopback.
  """
  listening = _listen(address, port)
  private = worker_launcher.enter_private_network()
  if not private and ipaddress.ip_address(listening.getsockname()[0]).is_loopback:
    raise EnvironmentFault(
      f'{argument("bind_address", address)}: this system allows no private network, and TFF has its worker listen on all interfaces; '
      f'run this as root, allow user namespaces, or accept it with {argument("bind_address", "0.0.0.0")}'
    )
  service = _Service(clients_in_parallel, about)
  print(f'serving on {address}:{listening.getsockname()[1]}', flush=True)
  threading.Thread(target=service.accept, args=(listening,), daemon=True).start()
  service.keep_alive()


class _Service:
  """A worker, started again whenever it ends, and the connections to it."""

  def __init__(self, clients_in_parallel: int, about: dict[str, Any]):
    self._about = about
    self._starts = 0
    self._worker = worker_lib.start(clients_in_parallel, private=False)
    worker_lib.wait_until_serving(self._worker, _START_SECS)

  def status(self) -> dict[str, Any]:
    """Returns what was given as `about`, and `alive`, `starts` (how often it was started again), `cpu_ticks`, `last_line`."""
    worker = self._worker
    return self._about | {
      'alive': worker.alive,
      'starts': self._starts,
      'cpu_ticks': worker_lib.cpu_ticks(worker),
      'last_line': worker_lib.last_line(worker),
    }

  def keep_alive(self) -> None:
    """Waits for the worker's end, and starts it again, for ever. Only the main thread may start workers."""
    while True:
      code = self._worker.process.wait()
      print(
        f'the TFF worker ended (exit code {code}): {worker_lib.last_line(self._worker)}; it is started again',
        flush=True,
      )
      self._starts += 1
      self._worker.stop()
      self._worker = worker_lib.start(self._worker.clients_in_parallel, private=False)
      worker_lib.wait_until_serving(self._worker, _START_SECS)

  def accept(self, listening: socket.socket) -> None:
    """Takes every connection in a thread of its own."""
    while True:
      try:
        caller, _ = listening.accept()
      except OSError:  # For instance too many open files: those who are served shall end theirs.
        continue
      threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

  def _answer(self, caller: socket.socket) -> None:
    with caller, contextlib.suppress(OSError):
      first = _read(caller, len(STATUS))
      if first == REVIVE:
        self._worker.process.kill()
      if first in (STATUS, REVIVE):
        caller.sendall(json.dumps(self.status()).encode() + b'\n')
        return
      with self._worker.connect() as inner:
        inner.sendall(first)
        socket_relay.join(caller, inner)


def _read(source: socket.socket, count: int) -> bytes:
  found = b''
  while len(found) < count and (more := source.recv(count - len(found))):
    found += more
  return found


def _listen(address: str, port: int) -> socket.socket:
  try:
    return socket.create_server((address, port), backlog=64)
  except OSError as error:
    raise EnvironmentFault(f'cannot listen on {address}:{port}: {os.strerror(error.errno or 0)}') from error


def main() -> None:
  """Serves as the JSON on the command line says: address, port, clients_in_parallel, about."""

  def end(number: int, frame: object) -> None:
    del frame
    os._exit(128 + number)  # The kernel ends the worker with this process.

  for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, end)
  try:
    serve(**json.loads(sys.argv[1]))
  except EnvironmentFault as fault:
    print(f'error: {fault.on_command_line()}', file=sys.stderr, flush=True)
    os._exit(1)


if __name__ == '__main__':
  main()
