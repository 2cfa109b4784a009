"""Planted signatures from a seed, and how much memory this process takes."""

import pathlib
import threading
import time
from collections.abc import Iterator

import numpy as np

from tff_cluster.base import seeding

_STATUS = pathlib.Path('/proc/self/status')


def groups(clients: int, count: int) -> np.ndarray:
  """Returns int64[clients], each client's group; groups are of equal size, up to one, and lie mixed."""
  return np.arange(clients) % count


def vectors(
  clients: int, features: int, num_groups: int, separation: float, seed: int
) -> Iterator[np.ndarray]:
  """Yields one float32[features] a client: its group's centre, of spread `separation`, plus noise of spread 1."""
  centres = [
    seeding.generator(seed, 'planted centre', g).standard_normal(features, np.float32)
    * np.float32(separation)
    for g in range(num_groups)
  ]
  for client, group in enumerate(groups(clients, num_groups)):
    noise = seeding.generator(seed, 'planted noise', client).standard_normal(features, np.float32)
    yield centres[group] + noise


def memory_mb(name: str) -> float:
  """Returns a size of this process from /proc, MiB: 'VmHWM' (peak), 'VmRSS', or 'RssAnon' (without mapped files)."""
  for line in _STATUS.read_text().splitlines():
    if line.startswith(f'{name}:'):
      return int(line.split()[1]) / 1024
  raise KeyError(name)


class AnonymousPeak:
  """Measures in a `with` block by how much this process grew at most, without the pages of mapped files.

  Attributes:
    mb: MiB, once the block has ended; looked at every two milliseconds.
  """

  def __enter__(self) -> 'AnonymousPeak':
    self._before, self.mb, self._done = memory_mb('RssAnon'), 0.0, threading.Event()
    self._thread = threading.Thread(target=self._watch)
    self._thread.start()
    return self

  def __exit__(self, *error: object) -> None:
    self._done.set()
    self._thread.join()

  def _watch(self) -> None:
    while not self._done.is_set():
      self.mb = max(self.mb, memory_mb('RssAnon') - self._before)
      time.sleep(0.002)
