"""A benchmark as users run it."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def run(module, *arguments):
  """Returns the lines that it prints, and what the last one holds in JSON."""
  done = subprocess.run([sys.executable, '-m', module, *arguments], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  assert done.stderr == ''
  *lines, last = done.stdout.splitlines()
  assert not any(line.startswith('{') for line in lines)
  return lines, json.loads(last)
