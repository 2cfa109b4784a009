"""Runs programs as child processes and finds what they leave behind; or here, which is faster where nothing can be left."""

import importlib
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

from tff_cluster.cli import program

ROOT = pathlib.Path(__file__).parents[2]


def run_here(name: str, *arguments: str) -> int:
  """Runs a program in this process, where TensorFlow may be imported already, and returns its exit code."""
  module = importlib.import_module(name)
  return program.execute(module.main, module.define_flags, ['p', *arguments])


class Child:
  """A program under test; every process that descends from it carries its mark in the environment."""

  def __init__(self, program: str, *arguments: str, **environment: str):
    self.mark = uuid.uuid4().hex
    self.process = subprocess.Popen(
      [sys.executable, '-m', program, *arguments],
      cwd=ROOT,
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
      env=os.environ | environment | {'TFF_CLUSTER_TEST_MARK': self.mark},
    )

  def finish(self, timeout: float = 300) -> tuple[int, str, str]:
    """Returns exit code, standard output and standard error."""
    out, err = self.process.communicate(timeout=timeout)
    return self.process.returncode, out, err

  def wait_for(self, folder: pathlib.Path, pattern: str, timeout: float = 120) -> bool:
    """Waits until a file matches or the program ends; returns whether it does."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and self.process.poll() is None:
      if any(folder.glob(pattern)):
        return True
      time.sleep(0.002)
    return any(folder.glob(pattern))

  def workers(self) -> list[int]:
    """Returns the ids of living processes with the mark, other than the program itself."""
    found = []
    for entry in pathlib.Path('/proc').glob('[0-9]*'):
      try:
        marked = self.mark.encode() in (entry / 'environ').read_bytes()
        state = (entry / 'stat').read_text().rpartition(')')[2].split()[0]
      except (OSError, IndexError):
        continue
      if marked and state != 'Z' and int(entry.name) != self.process.pid:
        found.append(int(entry.name))
    return found

  def left_over(self, patience: float = 10) -> list[int]:
    """Returns what is left of the program's processes once the kernel had time to end them."""
    deadline = time.monotonic() + patience
    while (found := self.workers()) and time.monotonic() < deadline:
      time.sleep(0.05)
    return found

  def kill(self) -> None:
    self.process.send_signal(signal.SIGKILL)
    self.process.communicate(timeout=30)
