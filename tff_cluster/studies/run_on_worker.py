"""What a worker of a Dask cluster does with a whole run: a process of its own that runs it, whose files then travel home.

The process works in a folder that is gone afterwards, on a TFF worker of its own. Its store is the one of the run's home where
the worker's machine has that folder, too, and else a fresh one, whose artifacts travel home with the run.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from tff_cluster.base import environment
from tff_cluster.base.errors import EnvironmentFault, Fault, InputError
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import travel

_TICK_SECS = 0.5
_RUN, _STORE = 'run', 'store'


@dataclasses.dataclass(frozen=True, eq=False)
class Asked:
  """A run that is to be done.

  Attributes:
    files: What its folder holds (configuration, clients, and what was done before), by path.
    mark: Path of a file in its store at home: who sees it sees the store.
    clients_in_parallel: Clients that train side by side.
    packages: {package: version} at home, which must be those of the worker.
  """

  files: Mapping[str, bytes]
  mark: str
  clients_in_parallel: int
  packages: Mapping[str, str]


@dataclasses.dataclass(frozen=True, eq=False)
class Ran:
  """What a run has left.

  Attributes:
    files: All files of its folder, by path.
    artifacts: All files of its store, by path; none where it worked in the store of its home.
    asked, trained: See main_job.Done.
    fault: What went wrong; None where nothing did.
  """

  files: Mapping[str, bytes]
  artifacts: Mapping[str, bytes]
  asked: int
  trained: int
  fault: Fault | None


def run(asked: Asked) -> Ran:
  """Does a run; the task of a cluster. Whoever does not want it any more cancels the task, which ends the process.

  Raises:
    EnvironmentFault: if this machine has other versions than the run's home, or the process ends before it could tell why.
  """
  import distributed

  here = distributed.get_worker()
  packages = environment.about_worker()['packages']
  if dict(packages) != dict(asked.packages):
    theirs, ours = (', '.join(f'{n} {v}' for n, v in each.items()) for each in (packages, asked.packages))
    raise EnvironmentFault(
      f'the worker {here.address} has {theirs}, the run {ours}; install both from the same requirements.lock'
    )
  key = here.get_current_task()
  with tempfile.TemporaryDirectory(prefix='tff_cluster-run-') as place:
    root = pathlib.Path(place)
    travel.put(root / _RUN, asked.files)
    mark = pathlib.Path(asked.mark)
    shared = mark.is_file()
    store = mark.parent if shared else root / _STORE
    travel.link(RunFolder(root / _RUN).store, store)
    with tempfile.TemporaryFile('w+') as output:
      told = [str(os.getpid()), str(root / _RUN), str(asked.clients_in_parallel)]
      process = subprocess.Popen(
        [sys.executable, '-m', __name__, *told], stdout=output, stderr=output, start_new_session=True
      )
      while process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
          process.wait(_TICK_SECS)
        task = here.state.tasks.get(key)
        if task is None or task.state == 'cancelled':
          os.killpg(process.pid, signal.SIGKILL)
      output.seek(0)
      lines = [line for line in output.read().splitlines() if line.strip()]
    answer = _answer(lines)
    if answer is None:
      last = lines[-1][:300] if lines else 'without a word'
      raise EnvironmentFault(
        f'a run ended on the worker {here.address} (exit code {process.returncode}): {last}'
      )
    artifacts = {} if shared else travel.contents(store)
    return Ran(travel.contents(root / _RUN), artifacts, answer['asked'], answer['trained'], _fault(answer))


def _answer(lines: list[str]) -> dict[str, Any] | None:
  """Returns what the process said in a line of JSON; libraries may write lines of theirs after it, when they end."""
  for line in reversed(lines):
    with contextlib.suppress(ValueError):
      answer = json.loads(line)
      if isinstance(answer, dict) and answer.keys() == {'asked', 'trained', 'input_error', 'machine_fault'}:
        return answer
  return None


def _fault(answer: Mapping[str, Any]) -> Fault | None:
  if answer['input_error'] is not None:
    return InputError(answer['input_error'])
  return None if answer['machine_fault'] is None else EnvironmentFault(answer['machine_fault'])


def main() -> None:
  """Does the run in a folder, and says in a line of JSON what came of it: PARENT FOLDER CLIENTS_IN_PARALLEL."""
  from tff_cluster.engine import worker_launcher

  parent, folder, parallel = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
  worker_launcher.end_with(parent)
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  from tff_cluster.engine.machine import Machine
  from tff_cluster.phases import failures, main_job, run_experiment

  place = RunFolder(pathlib.Path(folder))
  answer: dict[str, Any] = {'asked': 0, 'trained': 0, 'input_error': None, 'machine_fault': None}
  try:
    config = place.load_config()
    machine = Machine(clients_in_parallel=parallel)
    done = main_job.run(place, config, run_experiment.Silent(), machine, export_models=False)
    answer |= {'asked': done.asked, 'trained': done.trained}
    if done.failed:
      raise failures.ClusteringsFailed(done.failed, [c.label for c in place.load_config().clusterings])
  except InputError as error:
    answer['input_error'] = error.marked
  except EnvironmentFault as error:
    answer['machine_fault'] = error.marked
  print(json.dumps(answer), flush=True)


if __name__ == '__main__':
  main()
