"""What is left of the memory, from files as the kernel writes them, and what a process keeps of it."""

import ctypes
import subprocess
import sys

import pytest

from tff_cluster.engine import free_memory

MEMINFO = 'MemTotal:  8 kB\nMemFree:  1 kB\nMemAvailable:  4000 kB\n'
LEFT = 4000 * 1024


def system(root, groups='', files=None, meminfo=MEMINFO):
  written = {'proc/meminfo': meminfo, 'proc/self/cgroup': groups} | (files or {})
  for name, text in written.items():
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
  return root


def group(folder, limit, used, idle, old=False):
  older = ('limit_in_bytes', 'usage_in_bytes', 'total_inactive_file')
  names = older if old else ('max', 'current', 'inactive_file')
  folder = f'sys/fs/cgroup/{folder}'.rstrip('/')
  return {
    f'{folder}/memory.{names[0]}': f'{limit}\n',
    f'{folder}/memory.{names[1]}': f'{used}\n',
    f'{folder}/memory.stat': f'anon 5\n{names[2]} {idle}\n',
  }


OLD = '4:memory:/outer/1234\n0::/\n'


@pytest.mark.parametrize(
  ('groups', 'files', 'left'),
  [
    ('0::/\n', {}, LEFT),
    # A container that does not see its own path.
    (OLD, group('memory', 2_000_000, 500_000, 0, old=True), 1_500_000),
    # No limit, and one wider than the machine.
    ('0::/a\n', group('a', 'max', 5, 0), LEFT),
    (OLD, group('memory', 2**63 - 4096, 5, 0, old=True), LEFT),
    # More used than allowed.
    ('0::/a\n', group('a', 1000, 2000, 10), 0),
  ],
)
def test_what_groups_leave(groups, files, left, tmp_path):
  assert free_memory.available(system(tmp_path, groups, files)) == left


@pytest.mark.parametrize('old', [False, True])
@pytest.mark.parametrize('inside', ['a/b', 'a', ''])
def test_the_tightest_group_around_counts(inside, old, tmp_path):
  kind = 'memory' if old else ''
  files = group(f'{kind}/{inside}'.strip('/'), 1_000_000, 700_000, 50_000, old)
  line = '7:cpu,memory:/a/b\n1:cpuset:/\n' if old else '0::/a/b\n'
  assert free_memory.available(system(tmp_path, line, files)) == 350_000


@pytest.mark.parametrize('meminfo', ['', 'MemAvailable:\n', 'MemAvailable: x kB\n'])
def test_a_system_that_does_not_tell(meminfo, tmp_path):
  assert free_memory.available(system(tmp_path, meminfo=meminfo)) is None
  assert free_memory.available(tmp_path / 'nothing') is None


def test_here():
  assert free_memory.available() > 2**20
  assert 2**20 < free_memory.resident() < 2**40


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), 'mallopt'), reason='the C library has no mallopt')
@pytest.mark.parametrize('keeps', [False, True])
def test_freed_memory_is_kept_where_asked(keeps):
  # A process of its own: what malloc was told holds until its end.
  program = f"""
import numpy as np
from tff_cluster.engine import free_memory
if {keeps}:
  free_memory.keep_freed()
before = free_memory.resident()
arrays = [np.ones(8 << 20, np.uint8) for _ in range(16)]
full = free_memory.resident()
del arrays
print((free_memory.resident() - before) / (full - before))
"""
  found = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True)
  assert (float(found.stdout) > 0.9) == keeps
