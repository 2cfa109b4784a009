"""Becomes TFF's worker binary, in a network of its own that nobody else reaches.

Run by a fresh interpreter instead of a preexec_fn, because forking a process that has TensorFlow's threads can deadlock;
by one in isolated mode, so standard library only. The binary listens on all interfaces and cannot be told otherwise.
Here there is none but loopback, and what connects to it was made here before: a socket belongs to the network that it was
made in, whoever holds it. So the process that started this one gets sockets, and no process stands between the two.
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys

# What the starting process gets: one to see whether the worker serves, one to call it.
NUM_SOCKETS = 2
# Nothing else listens in a new network, and it is no port that connecting sockets are given.
_PRIVATE_PORT = 7000
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_SET_PARENT_DEATH_SIGNAL, _KILL = 1, 9


def enter_private_network() -> bool:
  """Moves this process into a network of its own with a loopback interface; False where the system forbids it.

  As root a network is enough; others need a user namespace around it, which asks for a process of one thread.
  """
  if sys.platform != 'linux':
    return False
  unshare = ctypes.CDLL(None, use_errno=True).unshare
  if unshare(_NEW_NETWORK) and unshare(_NEW_USER | _NEW_NETWORK):
    return False
  with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack('16sh14x', b'lo', _UP_AND_RUNNING))
  return True


def end_with(parent: int) -> None:
  """Has the kernel kill this process, and what it becomes, with its parent; only Linux can."""
  if sys.platform != 'linux':
    return
  ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, _KILL, 0, 0, 0)
  if os.getppid() != parent:
    sys.exit(1)


def _free_port() -> int:
  with socket.socket() as probe:
    probe.bind(('127.0.0.1', 0))
    return probe.getsockname()[1]


def main() -> None:
  """Runs `worker_launcher.py PARENT CONTROL BINARY ARGUMENT...`.

  PARENT is the process that started this one, CONTROL the descriptor of a Unix socket to it. The parent is sent a JSON object
  {private, port}, and sockets of a private network where the system allows one.
  """
  parent, descriptor = map(int, sys.argv[1:3])
  private = enter_private_network()
  # Not before: the kernel may forget it when a process changes its rights.
  end_with(parent)
  port = _PRIVATE_PORT if private else _free_port()
  sockets = [socket.socket() for _ in range(NUM_SOCKETS if private else 0)]
  told = json.dumps({'private': private, 'port': port}).encode()
  with socket.socket(fileno=descriptor) as control:
    socket.send_fds(control, [told], [each.fileno() for each in sockets])
  os.execv(sys.argv[3], [*sys.argv[3:], f'--port={port}'])


if __name__ == '__main__':
  main()
