"""What the tests of wrong input share: how a program is called, and what a good answer is."""

import dataclasses
import importlib
import resource
import subprocess
import sys
import time
from pathlib import Path

from tff_cluster.cli import program

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(path.stem for path in ROOT.glob('phases/*.py') if path.stem != '__init__')
SECONDS = 1.0
PATIENCE = 30.0


@dataclasses.dataclass(frozen=True)
class Answer:
  """What a program gave back.

  Attributes:
    code: Exit code.
    out, err: Standard output and standard error.
    seconds: Of the processor, so that what else the machine does meanwhile is not counted.
  """

  code: int
  out: str
  err: str
  seconds: float


def call(name: str, arguments: list[str], capsys) -> Answer:
  """Calls phases.NAME in this process."""
  module = importlib.import_module(f'phases.{name}')
  capsys.readouterr()
  started = time.process_time()
  code = program.execute(module.main, module.define_flags, [name, *arguments])
  return Answer(code, *capsys.readouterr(), time.process_time() - started)


def call_process(*arguments: str) -> Answer:
  """Calls Python in the repository's root. Who waits instead of working is stopped."""
  before = _seconds_of_children()
  done = subprocess.run(
    [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
  )
  return Answer(done.returncode, done.stdout, done.stderr, _seconds_of_children() - before)


def check(answer: Answer, words: str) -> None:
  """Exit code 2, one line of a bearable length with these words, nothing else, no traceback, in less than a second."""
  assert answer.code == 2, answer
  assert words in answer.err
  assert answer.err.startswith('error: ') and answer.err.endswith('\n')
  # Also those that end a line on some terminals only (vertical tab, NEL, U+2028, ...).
  assert len(answer.err.splitlines()) == 1 and answer.err[:-1].isprintable()
  assert len(answer.err) < 2200 and 'Traceback' not in answer.err
  assert answer.out == ''
  assert answer.seconds < SECONDS


def files(folder: Path) -> dict[Path, bytes]:
  """Returns what lies below a folder, so that a test can see that nothing was lost or left."""
  return {path: path.read_bytes() if path.is_file() else b'' for path in folder.rglob('*')}


def _seconds_of_children() -> float:
  usage = resource.getrusage(resource.RUSAGE_CHILDREN)
  return usage.ru_utime + usage.ru_stime


def import_what_is_slow() -> None:
  """Imports what programs import late, so that a row's seconds are those of its answer."""
  for name in ('phases.session', 'phases.assembly', 'studies.replay.study', 'clustering.methods'):
    importlib.import_module(f'tff_cluster.{name}')
  for name in ('data.populate', 'report.report', 'studies.partition_pictures', 'studies.replay.tables'):
    importlib.import_module(f'tff_cluster.{name}')
