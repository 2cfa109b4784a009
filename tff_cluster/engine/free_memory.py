"""How much memory this process and those that it starts may still take, and what it keeps of it."""

import ctypes
import os
import pathlib
from collections.abc import Iterator

# Where the two generations of control groups keep limit, use and, in memory.stat, what can be given up at once.
_FILES = {
  'memory': ('memory.limit_in_bytes', 'memory.usage_in_bytes', 'total_inactive_file'),
  '': ('memory.max', 'memory.current', 'inactive_file'),
}
# Numbers of glibc's mallopt: the largest piece that it takes from what is freed, 32 MiB at most, and the bytes that it keeps.
_KEEP_FREED = {-3: 1 << 25, -1: 1 << 28}


def available(root: str | pathlib.Path = '/') -> int | None:
  """Returns bytes: what the machine has left, or what the control groups around this process leave of it, if less.

  Args:
    root: Where /proc and /sys are.

  Returns:
    None where the system does not tell.
  """
  root = pathlib.Path(root)
  try:
    lines = (root / 'proc/meminfo').read_text().splitlines()
    machine = next(1024 * int(line.split()[1]) for line in lines if line.startswith('MemAvailable:'))
  except (OSError, ValueError, IndexError, StopIteration):
    return None
  return min([machine, *_left_by_groups(root)])


def resident() -> int:
  """Returns the bytes of memory that this process has taken; 0 where the system does not tell."""
  try:
    pages = int(pathlib.Path('/proc/self/statm').read_text().split()[1])
  except (OSError, ValueError, IndexError):
    return 0
  return pages * os.sysconf('SC_PAGE_SIZE')


def keep_freed() -> None:
  """Has glibc's malloc keep up to 256 MiB that this process frees; elsewhere nothing changes.

  Each message to a worker is as large as what it holds, several times over. With malloc's defaults the kernel takes that memory
  back and clears it anew, call by call: half of what it takes to send four models of 6.6 MB (benchmarks/README.md).
  """
  mallopt = getattr(ctypes.CDLL(None), 'mallopt', None)
  if mallopt is not None:
    for name, value in _KEEP_FREED.items():
      mallopt(name, value)


def _left_by_groups(root: pathlib.Path) -> Iterator[int]:
  try:
    groups = (root / 'proc/self/cgroup').read_text().splitlines()
  except OSError:
    return
  for line in groups:
    _, controllers, path = (*line.split(':', 2), '', '')[:3]
    # A container may see itself as the root, whatever its path is outside.
    for kind in {'memory', ''} & set(controllers.split(',')):
      mounted = root / 'sys/fs/cgroup' / kind
      inside = mounted / path.lstrip('/')
      for folder in (inside, *inside.parents):
        left = _left(folder, *_FILES[kind])
        if left is not None:
          yield left
        if folder == mounted:
          break


def _left(folder: pathlib.Path, limit: str, used: str, idle: str) -> int | None:
  """Returns what a group leaves; None where it has no limit or does not tell."""
  try:
    most, now = (int((folder / name).read_text()) for name in (limit, used))
    statistics = dict(line.split(' ', 1) for line in (folder / 'memory.stat').read_text().splitlines())
    return max(most - now + int(statistics.get(idle, 0)), 0)
  except (OSError, ValueError):
    return None
