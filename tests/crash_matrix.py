"""Kills every program at random moments, runs it again, and looks whether anything was lost, left or changed.

  python -m tests.crash_matrix --count=50 --seed=0
  python -m tests.crash_matrix --count=5 --target=phase2 --target=worker --json=matrix.json

A target is a phase, run_all, the worker alone (in run_all), two runs that share a store of which one is killed,
the pruning of a store, or signals, which end run_all by Ctrl-C or SIGTERM. Its program runs once without interruption; then each trial kills it between its first write
and its last, up to three times in a row, and runs it to its end. Trials are forks of a process that has imported
what programs import before their first write; that takes them as long as all the rest. Moments come from the seed,
but what they hit depends on the machine. Ends with exit code 1 at the first broken promise (crash_checks.py says what is promised).
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

import numpy as np

from tests.programs import crash_checks as checks
from tests.programs.children import Child, ForkedChild
from tff_cluster.base import seeding
from tff_cluster.storage import artifacts

EXPERIMENT = (
  '--dataset=digits', '--partition=label_swapped', '--num_clients=6', '--num_groups=2', '--model=logistic',
  '--phase1_rounds=4', '--phase2_rounds=4', '--clustering=kmeans,num_clusters=2',
  '--clustering=hierarchical,distance_threshold=quantile:0.5,signature=updates', '--cohort_fraction=0.7',
  '--learning_rate=0.5',
)  # fmt: skip
CHAIN = ('phase1', 'clustering', 'phase2', 'phase3', 'report')
TARGETS = (*CHAIN, 'run_all', 'worker', 'store', 'prune', 'signals')
_WITH_FLAGS = ('phase1', 'run_all')
# A moment that came after the end is drawn again, so often.
_TRIES = 4
# A program that got a signal ends in 15 seconds at most.
_PATIENCE_SECS = 25.0


@dataclasses.dataclass(frozen=True, eq=False)
class Reference:
  """An uninterrupted run of a program.

  Attributes:
    program: For instance 'phase2'.
    before: The folder as it was before.
    content: What it was afterwards, see crash_checks.content.
    client_rounds: (asked, trained) as the program printed them, or None.
    span: Seconds from its first write to its last.
    seconds: Seconds that it took.
  """

  program: str
  before: pathlib.Path
  content: dict[str, str]
  client_rounds: tuple[int, int] | None
  span: float
  seconds: float


@dataclasses.dataclass
class Tally:
  """What the trials of a target came to: trials, kills, moments that came too late, seconds."""

  trials: int = 0
  kills: int = 0
  late: int = 0
  seconds: float = 0.0


class Matrix:
  """Trials in a folder of its own, one after the other.

  Attributes:
    work: The folder.
    seed: Of the moments.
    experiment: Flags of the experiment that is killed.
    say: Called with a line for each kill and each end.
    child: How the programs of trials are started.
    whole: How those of uninterrupted runs are started; as users do, if nothing else is said.
  """

  def __init__(
    self,
    work: pathlib.Path,
    seed: int = 0,
    experiment: Sequence[str] = EXPERIMENT,
    say: Callable[[str], object] = print,
    child: type[Child] = Child,
    whole: type[Child] = Child,
  ):
    self.work, self.seed, self.experiment, self.say = work, seed, tuple(experiment), say
    self.child, self.whole = child, whole
    self._references: dict[str, Reference] = {}

  def reference(self, program: str) -> Reference:
    """Returns the uninterrupted run of a program, which is made once, on the one of the phase before it."""
    if program in self._references:
      return self._references[program]
    before, run = self.work / f'before_{program}', self.work / f'reference_{program}'
    position = CHAIN.index(program) if program in CHAIN else 0
    if position:
      self.reference(CHAIN[position - 1])
      self._copy(self.work / f'reference_{CHAIN[position - 1]}', before)
    else:
      before.mkdir(parents=True)
    self._copy(before, run)
    begun = time.monotonic()
    child = self._start(self.whole, program, run)
    untouched = checks.snapshot(run)
    code, out, err = child.finish()
    if (code, err) != (0, ''):
      raise checks.Broken(f'{program} does not run at all: exit code {code}, {err.strip()}')
    made = Reference(
      program,
      before,
      checks.content(run),
      checks.client_rounds(out),
      _span(untouched, checks.snapshot(run)),
      time.monotonic() - begun,
    )
    self.say(f'{program}: {made.seconds:.1f} s, of which {made.span:.1f} s from its first write to its last')
    return self._references.setdefault(program, made)

  def run(self, target: str, count: int) -> Tally:
    """Runs the trials of a target.

    Raises:
      crash_checks.Broken: at the first broken promise; the trial's folder is left as it is.
    """
    tally, begun = Tally(), time.monotonic()
    trial = {
      'worker': self._worker_trial,
      'store': self._store_trial,
      'prune': self._prune_trial,
      'signals': self._signal_trial,
    }
    for number in range(count):
      rng = seeding.generator(self.seed, 'crash matrix', target, number)
      try:
        if target in trial:
          line = trial[target](rng, tally)
        else:
          line = self._phase_trial(self.reference(target), rng, tally)
      except checks.Broken as error:
        raise checks.Broken(f'{target}, trial {number}: {error}') from error
      tally.trials += 1
      self.say(f'{target} trial {number}: {line}')
    tally.seconds = time.monotonic() - begun
    return tally

  def _phase_trial(self, reference: Reference, rng: np.random.Generator, tally: Tally) -> str:
    run = self.work / 'trial'
    self._copy(reference.before, run)
    before = checks.client_rounds_saved(run)
    kills = int(rng.choice([1, 1, 2, 3])) if reference.span > 1 else 1
    told, left = [], reference.span
    for _ in range(kills):
      spent = self._killed(reference.program, run, left, bool(rng.integers(2)), rng, tally)
      if spent is None:
        break
      told.append(f'{spent:.2f} s')
      checks.check_whole(run)
      left -= spent
      if left < 0.15 * reference.span:
        break  # The next moment would come after the end, over and over.
    at_the_kill = checks.client_rounds_saved(run)
    out = self._ends_well(reference.program, run)
    checks.check_same(reference.content, checks.content(run))
    checks.check_tidy(run)
    line = f'killed {", ".join(told) or "never"} after the first write'
    rounds = checks.client_rounds(out)
    if rounds is None or reference.client_rounds is None:
      return line
    allowed = checks.check_rounds(rounds[1], reference.client_rounds[1], before, at_the_kill)
    return f'{line}; trained {rounds[1]} of {allowed} missing client-rounds'

  def _worker_trial(self, rng: np.random.Generator, tally: Tally) -> str:
    """The worker alone is killed: the run goes on with another, or ends with a line and goes on when run again."""
    reference, run = self.reference('run_all'), self.work / 'trial'
    span = reference.span
    for _ in range(_TRIES):
      self._copy(reference.before, run)
      child = self._start(self.child, 'run_all', run)
      _wait_for_a_write(child, run)
      moment = rng.uniform(0, span)
      _sleep(child, moment)
      workers = child.workers()
      if workers:
        break
      # The run draws its pictures, or has ended.
      tally.late += 1
      span /= 2
      child.kill()
    else:
      return 'no worker lived at any of its moments'
    for worker in workers:
      with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
      tally.kills += 1
    code, _, err = child.finish()
    self._check_nothing_left(child)
    if err.count('\n') > 1 or 'Traceback' in err or code not in (0, 1):
      raise checks.Broken(f'a killed worker ended the run with code {code} and {err!r}')
    if code and 'TFF worker' not in err:
      raise checks.Broken(f'a killed worker is told as {err!r}')
    if code:
      checks.check_whole(run)
      self._ends_well('run_all', run)
    checks.check_same(reference.content, checks.content(run))
    checks.check_tidy(run)
    how = 'another one took over' if not code else 'the run ended and went on when run again'
    return f'{len(workers)} worker killed {moment:.2f} s after the first write; {how}'

  def _store_trial(self, rng: np.random.Generator, tally: Tally) -> str:
    """Two runs share a store, one is killed, the other ends well; then so does the first."""
    reference = self.reference('run_all')
    shared, one, other = self.work / 'trial', self.work / 'trial' / 'one', self.work / 'trial' / 'other'
    shutil.rmtree(shared, ignore_errors=True)
    flag = f'--store_dir={shared / "store"}'
    killed, child = (
      self._start(self.child, 'run_all', one, flag),
      self._start(self.child, 'run_all', other, flag),
    )
    try:
      _wait_for_a_write(killed, one)
      # Two runs at once take longer.
      moment = rng.uniform(0, 1.5 * reference.span)
      _sleep(killed, moment)
      tally.kills += killed.process.poll() is None
      tally.late += killed.process.poll() is not None
      _kill(killed, alone=True)
      self._check_nothing_left(killed)
      code, _, err = child.finish()
    finally:
      child.kill()
    if (code, err) != (0, ''):
      raise checks.Broken(f'the other run ended with code {code} and {err!r}')
    checks.check_whole(one)
    out = self._ends_well('run_all', one, flag)
    for run in (one, other):
      checks.check_same(reference.content, checks.content(run))
      checks.check_tidy(run)
    rounds = checks.client_rounds(out)
    if rounds is None or rounds[1]:
      raise checks.Broken(f'what the other run had finished was trained again: {rounds} client-rounds')
    return f'one of two runs killed {moment:.2f} s after its first write'

  def _signal_trial(self, rng: np.random.Generator, tally: Tally) -> str:
    """A signal, which may come twice, ends the program in one line and leaves nothing; run again it ends well."""
    reference, run = self.reference('run_all'), self.work / 'trial'
    self._copy(reference.before, run)
    child = self._start(self.child, 'run_all', run)
    _wait_for_a_write(child, run)
    number = signal.Signals(int(rng.choice([signal.SIGINT, signal.SIGTERM])))
    _sleep(child, moment := rng.uniform(0, reference.span))
    for pause in (0.0, float(rng.choice([0.001, 0.05])))[: int(rng.integers(1, 3))]:
      time.sleep(pause)
      child.process.send_signal(number)
    try:
      code, _, err = child.finish(timeout=_PATIENCE_SECS)
    except subprocess.TimeoutExpired:
      raise checks.Broken(f'goes on {_PATIENCE_SECS:g} s after {number.name}') from None
    self._check_nothing_left(child)
    came_late = (code, err) == (0, '')
    if not came_late and (code != 128 + number or err.count('\n') != 1 or 'Traceback' in err):
      raise checks.Broken(f'{number.name} ended the run with code {code} and {err!r}')
    tally.late += came_late
    tally.kills += not came_late
    checks.check_tidy(run)
    checks.check_whole(run)
    self._ends_well('run_all', run)
    checks.check_same(reference.content, checks.content(run))
    return f'{number.name} {moment:.2f} s after the first write'

  def _prune_trial(self, rng: np.random.Generator, tally: Tally) -> str:
    """The pruning of a store is killed: what is left is whole or not there, can be pruned, and is trained again."""
    reference, run = self.reference('phase1'), self.work / 'trial'
    self._copy(self.work / 'reference_phase1', run)
    for number in range(200):  # So that the removal takes a while.
      more = artifacts.Store(run / 'store').artifact('similarity', {'number': number})
      for part in range(20):
        (more / f'round_{part:05d}.npz.damaged').write_bytes(b'x')
    flags = (f'--store_dir={run / "store"}', '--prune_unused_days=0')
    child = self.child('phases.store', *flags)
    _wait_for_a_write(child, run)
    _sleep(child, moment := rng.uniform(0, 0.05))
    tally.kills += child.process.poll() is None
    tally.late += child.process.poll() is not None
    _kill(child, alone=True)
    checks.check_whole(run)
    left = len(list((run / 'store').iterdir()))
    if rng.integers(2):
      code, _, err = self.child('phases.store', *flags).finish()
      if (code, err) != (0, '') or list((run / 'store').iterdir()):
        raise checks.Broken(f'what was left was not pruned: exit code {code}, {err!r}')
    self._ends_well('phase1', run)
    for extra in sorted((run / 'store').glob('similarity-*')):
      shutil.rmtree(extra)
    checks.check_same(reference.content, checks.content(run))
    checks.check_tidy(run)
    return f'killed {moment:.3f} s after the first removal, {left} folders were left'

  def _killed(
    self, program: str, run: pathlib.Path, span: float, alone: bool, rng: np.random.Generator, tally: Tally
  ) -> float | None:
    """Kills a run of the program at a moment of its span, which is returned; None where it always came too late."""
    for _ in range(_TRIES):
      kept = self.work / 'kept'
      self._copy(run, kept)
      child, moment = self._start(self.child, program, run), float(rng.uniform(0, span))
      _wait_for_a_write(child, run)
      _sleep(child, moment)
      if child.process.poll() is None:
        _kill(child, alone)
        self._check_nothing_left(child)
        tally.kills += 1
        return moment
      code, _, err = child.finish()
      if (code, err) != (0, ''):
        raise checks.Broken(f'{program} ended by itself with code {code} and {err!r}')
      tally.late += 1
      span /= 2
      self._copy(kept, run)
    return None

  def _ends_well(self, program: str, run: pathlib.Path, *more: str) -> str:
    child = self._start(self.child, program, run, *more)
    code, out, err = child.finish()
    if (code, err) != (0, ''):
      raise checks.Broken(f'{program} run again ended with code {code} and {err!r}')
    self._check_nothing_left(child)
    return out

  def _check_nothing_left(self, child: Child) -> None:
    left = child.left_over()
    if left:
      raise checks.Broken(f'processes are left: {left}')

  def _start(self, child: type[Child], program: str, run: pathlib.Path, *more: str) -> Child:
    flags = self.experiment if program in _WITH_FLAGS else ()
    return child(f'phases.{program}', *flags, f'--output_dir={run}', *more)

  def _copy(self, source: pathlib.Path, target: pathlib.Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)


def _wait_for_a_write(child: Child, run: pathlib.Path) -> None:
  before = checks.snapshot(run)
  while child.process.poll() is None and checks.snapshot(run) == before:
    time.sleep(0.005)


def _span(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> float:
  """Returns the seconds between the first and the last change, by the times of the files."""
  times = [about[1] for name, about in after.items() if before.get(name) != about]
  return max((max(times) - min(times)) / 1e9, 0.05) if times else 0.05


def _sleep(child: Child, seconds: float) -> None:
  deadline = time.monotonic() + seconds
  while child.process.poll() is None and time.monotonic() < deadline:
    time.sleep(min(0.005, max(deadline - time.monotonic(), 0)))


def _kill(child: Child, alone: bool) -> None:
  """Kills the program alone, or all its processes at once."""
  others = [] if alone else child.workers()
  child.process.send_signal(signal.SIGKILL)
  for process in others:
    try:
      os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
      continue
  child.process.communicate(timeout=30)


def main() -> int:
  parser = argparse.ArgumentParser(prog='python -m tests.crash_matrix', description=__doc__.split('\n')[0])
  parser.add_argument('--count', type=int, default=3, help='trials of each target')
  parser.add_argument('--seed', type=int, default=0, help='of the moments')
  parser.add_argument('--target', action='append', choices=TARGETS, help='default: all')
  parser.add_argument('--json', type=pathlib.Path, metavar='FILE', help='writes the summary there, too')
  parser.add_argument('--work_dir', type=pathlib.Path, help='default: a temporary folder, removed at the end')
  options = parser.parse_args()
  work = options.work_dir or pathlib.Path(tempfile.mkdtemp(prefix='crash_matrix_'))
  matrix = Matrix(work, options.seed, say=lambda line: print(line, flush=True), child=ForkedChild)
  tallies: dict[str, Tally] = {}
  broken = None
  for target in options.target or TARGETS:
    try:
      tallies[target] = matrix.run(target, options.count)
    except checks.Broken as error:
      broken = str(error)
      break
  print(f'{"target":<12} {"trials":>7} {"kills":>7} {"too late":>9} {"seconds":>9}')
  for target, tally in tallies.items():
    print(f'{target:<12} {tally.trials:>7} {tally.kills:>7} {tally.late:>9} {tally.seconds:>9.0f}')
  if options.json:
    summary = {'seed': options.seed, 'broken': broken}
    summary['targets'] = {target: dataclasses.asdict(tally) for target, tally in tallies.items()}
    options.json.write_text(json.dumps(summary, indent=1) + '\n')
  if broken:
    print(f'broken: {broken} (folder: {work})', file=sys.stderr)
    return 1
  if options.work_dir is None:
    shutil.rmtree(work)
  return 0


if __name__ == '__main__':
  sys.exit(main())
