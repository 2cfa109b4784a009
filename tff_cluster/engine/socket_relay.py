"""Hands over bytes between two connected sockets, and lets gRPC of this process through to a socket that it holds."""

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable

_PIECE = 1 << 18
_BACKLOG = 64
_CREDENTIALS = struct.Struct('3i')


class Door:
  """An address on which this process calls what only this process can connect to.

  gRPC takes addresses, no sockets. This one is a Unix socket without a file: whatever ends this process leaves nothing
  behind, and no path can be too long. Others can find it, so the kernel is asked who comes, and whoever is not this very
  process is sent away. It admits once.

  Attributes:
    address: For grpc.insecure_channel.
  """

  def __init__(self, connect: Callable[[], socket.socket]):
    """Opens the door.

    Args:
      connect: Called when this process came through; returns a connected socket or raises OSError.
    """
    self._connect = connect
    self._listening = socket.socket(socket.AF_UNIX)
    self._listening.bind('')  # The kernel finds a free name.
    self._listening.listen(_BACKLOG)
    self.address = f'unix-abstract:{self._listening.getsockname()[1:].decode()}'
    threading.Thread(target=self._admit, daemon=True).start()

  def close(self) -> None:
    """Lets nobody in any more."""
    with contextlib.suppress(OSError):  # Somebody came through, and it is closed.
      self._listening.shutdown(socket.SHUT_RDWR)

  def _admit(self) -> None:
    with contextlib.suppress(OSError):
      with self._listening:
        caller, _ = self._listening.accept()
        while _process_of(caller) != os.getpid():
          caller.close()
          caller, _ = self._listening.accept()
      with caller, self._connect() as inner:
        join(caller, inner)


def join(caller: socket.socket, inner: socket.socket) -> None:
  """Hands over in both directions, until one of the two ends.

  Args:
    caller: A connected socket.
    inner: A connected TCP socket.
  """
  for each in (caller, inner):
    each.settimeout(None)
    if each.family != socket.AF_UNIX:
      each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
  back = threading.Thread(target=_pass_on, args=(inner, caller), daemon=True)
  back.start()
  _pass_on(caller, inner)
  back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
  """Hands over bytes until one side ends, and then ends the other, too."""
  buffer = memoryview(bytearray(_PIECE))
  with contextlib.suppress(OSError):
    while count := source.recv_into(buffer):
      target.sendall(buffer[:count])
  for each in (source, target):
    with contextlib.suppress(OSError):
      each.shutdown(socket.SHUT_RDWR)


def _process_of(caller: socket.socket) -> int:
  """Returns the process that connected."""
  found = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
  return _CREDENTIALS.unpack(found)[0]
