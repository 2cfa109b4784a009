"""Who can reach what: the sockets that a process listens on in the network of this one, and strangers that try."""

import ctypes
import os
import pathlib
import re
import subprocess
import sys

NOBODY = 65534


def listening(process):
  """Returns the entries of /proc/net on which a process listens here, TCP (state 0A) and Unix (flag 00010000)."""
  held = set()
  for descriptor in pathlib.Path(f'/proc/{process}/fd').iterdir():
    try:
      held.update(re.findall(r'socket:\[(\d+)\]', str(descriptor.readlink())))
    except OSError:
      continue  # Closed meanwhile.
  found = []
  for table, state, inode in (('tcp', 3, 9), ('tcp6', 3, 9), ('unix', 3, 6)):
    for line in pathlib.Path(f'/proc/net/{table}').read_text().splitlines()[1:]:
      words = line.split()
      if words[state] in ('0A', '00010000') and words[inode] in held:
        found.append(f'{table} {line.strip()}')
  return found


STRANGER = """
import os, socket, sys
if not os.geteuid():
  os.setgroups([])
  os.setresgid(*[int(sys.argv[2])] * 3)
  os.setresuid(*[int(sys.argv[2])] * 3)
caller = socket.socket(socket.AF_UNIX)
caller.settimeout(20)
try:
  caller.connect(chr(0) + sys.argv[1])
  caller.sendall(b'let me in')
  print('answered', caller.recv(100))
except OSError as error:
  print('refused', type(error).__name__)
"""


def as_a_stranger(name):
  """Calls an abstract Unix socket from another process, another user's where this one is root; returns what it got."""
  command = [sys.executable, '-c', STRANGER, name, str(NOBODY)]
  return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


# A user namespace in which no network may be made stands for a system that allows none.
WITHOUT_PRIVATE_NETWORKS = [
  'unshare', '--user', '--map-root-user', 'sh', '-c', 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"', 'sh',
]  # fmt: skip


_NEW_USER = 0x10000000  # CLONE_NEWUSER of sched.h.


def forbid_networks():
  """Does to this process, which has one thread, what WITHOUT_PRIVATE_NETWORKS does to a program."""
  user, group = os.geteuid(), os.getegid()
  if ctypes.CDLL(None, use_errno=True).unshare(_NEW_USER):
    raise OSError(ctypes.get_errno(), 'unshare')
  for name, words in (('setgroups', 'deny'), ('uid_map', f'0 {user} 1'), ('gid_map', f'0 {group} 1')):
    pathlib.Path('/proc/self', name).write_text(words)
  pathlib.Path('/proc/sys/user/max_net_namespaces').write_text('0')


def networks_can_be_forbidden():
  """Tells whether WITHOUT_PRIVATE_NETWORKS works here."""
  try:
    return not subprocess.run([*WITHOUT_PRIVATE_NETWORKS, 'true'], capture_output=True).returncode
  except FileNotFoundError:
    return False
