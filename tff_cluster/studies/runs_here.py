"""Whole runs side by side on this machine: each is the work of a process of its own (run_process.py), on a share of the cores."""

import dataclasses
import time
from collections.abc import Mapping, Sequence

from tff_cluster.base import environment
from tff_cluster.base.errors import EnvironmentFault, InputError, argument
from tff_cluster.base.words import duration, plural
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.dataset import Outline
from tff_cluster.engine import free_memory
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import memory_need, run_claim
from tff_cluster.phases import cost_estimates, cross_validation, early_checks, session
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import output_folders
from tff_cluster.studies import run_process

_GB = 1e9


def how_many(runs: Sequence[cost_estimates.Run], machine: machine_lib.Machine, asked: int) -> int:
  """Returns how many runs are to be in flight at the same time, at least 1.

  A run is at work on two cores: its own process and its TFF worker take turns, and several clients train side by side.

  Args:
    runs: All runs; those that are finished do not count.
    machine: The machine; on a cluster it is the cluster that has runs side by side.
    asked: How many are wanted; 0: half as many as cores, as far as memory allows, where it is known how much a run needs.

  Raises:
    InputError: if so many are wanted that they do not fit into memory.
  """
  if machine.cluster is not None:
    return 1
  most = min(asked or environment.available_cores() // 2, len(runs))
  left = [run for run in runs if not cross_validation.is_done(run.folder, run.config)] if most > 1 else []
  most = min(most, len(left))
  available = free_memory.available()
  while most > 1:
    need = _memory_of_largest(left, share(machine, most))
    if not need or available is None:
      return most
    fit = int(max((available - memory_need.PROCESS) // need, 1))
    if fit >= most:
      return most
    if asked:
      raise InputError(
        f'{argument("runs_in_parallel", asked)}: {most} runs side by side need about {(most * need + memory_need.PROCESS) / _GB:.1f} GB '
        f'of memory, of which {available / _GB:.1f} GB are available; at most {fit} fit'
      )
    # Fewer runs have more cores each, and train more clients at once, which takes more memory.
    most = fit
  return 1


def share(machine: machine_lib.Machine, at_once: int) -> machine_lib.Machine:
  """Returns what each of so many runs may use of a machine: its share of the cores, if nothing else was said."""
  clients = max(environment.available_cores() // at_once, 1) if at_once > 1 else 0
  return dataclasses.replace(machine, clients_in_parallel=machine.clients_in_parallel or clients)


def do(
  names: Sequence[str],
  left: Mapping[int, run_claim.Claim],
  at_once: int,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine,
) -> dict[int, run_process.Answer]:
  """Does runs, so many side by side, and returns what came of each, by position.

  Two that need the same artifact, such as the same Phase 1, do as runs of two programs do: one trains it, the other waits.
  Where one fails, the others are ended; the same runs, given again, go on from what they had saved.

  Args:
    names: What all runs are called.
    left: Those that are to be done, by position; their folders are this process's before and afterwards.
    at_once, progress, machine: How many, where progress is shown, and the machine that they share.

  Raises:
    Fault: that of the first run that fails.
  """
  found: dict[int, run_process.Answer] = {}
  free: list[run_process.RunProcess] = []
  at_work: dict[run_process.RunProcess, tuple[int, float]] = {}
  waiting, own_share = list(left), share(machine, at_once)
  with progress.phase(f'{plural(len(left), "run")}, {at_once} side by side', len(left)):
    try:
      while waiting or at_work:
        while waiting and len(at_work) < at_once:
          process = free.pop() if free else run_process.RunProcess(own_share)
          at_work[process] = waiting.pop(0), time.monotonic()
          _begin(process, left[at_work[process][0]])
        for process in run_process.ready(at_work):
          number, begun = at_work[process]
          found[number] = _answer(process, names[number])
          output_folders.lock(left[number].folder.root)
          free.append(process)
          del at_work[process]
          progress.update()
          took = duration(time.monotonic() - begun)
          progress.note(f'{names[number]} ({len(found)} of {len(left)}): {took}')
    finally:
      run_process.stop([*at_work, *free])
  return found


def _begin(process: run_process.RunProcess, claim: run_claim.Claim) -> None:
  """Has a process do a run, whose clients are drawn here, so that data which is not there is downloaded once."""
  session.prepare(claim)
  output_folders.release(claim.folder.root)
  process.begin(claim.folder.root)


def _answer(process: run_process.RunProcess, name: str) -> run_process.Answer:
  answer = process.answer()
  if answer is None:
    raise EnvironmentFault(
      f'the process of {name} ended (exit code {process.returncode}); {machine_lib.SAVED}'
    )
  if answer.fault is not None:
    raise answer.fault
  return answer


def _memory_of_largest(runs: Sequence[cost_estimates.Run], machine: machine_lib.Machine) -> int:
  """Returns the bytes of memory that the largest run needs; 0 where that is not known before the data is there."""
  outlines: dict[DataConfig, Outline | None] = {}
  most = 0
  for run in runs:
    key = dataclasses.replace(run.config.data, data_seed=0)
    if key not in outlines:
      outlines[key] = early_checks.outline(run.config.data, run.folder)
    if (outline := outlines[key]) is not None:
      most = max(most, early_checks.needed(run.config, outline, machine))
  return most
