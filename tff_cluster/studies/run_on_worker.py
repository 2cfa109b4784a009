"""What a worker of a Dask cluster does with a whole run: a process of its own does it (run_process.py), and its files travel home.

The process works in a folder that is gone afterwards. Its store is the one of the run's home where the worker's machine has
that folder, too, and else a fresh one, whose artifacts travel home with the run.
"""

import dataclasses
import pathlib
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tff_cluster.base import environment, words
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine.machine import Machine
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import temporary_folder, travel
from tff_cluster.studies import run_process

if TYPE_CHECKING:
  import distributed

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
    files: Those of its folder that are new or not as they were sent, by path; a user may have changed the others at home meanwhile.
    artifacts: All files of its store, by path; none where it worked in the store of its home.
    answer: What came of it.
  """

  files: Mapping[str, bytes]
  artifacts: Mapping[str, bytes]
  answer: run_process.Answer


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
  with temporary_folder.made(pathlib.Path(tempfile.gettempdir()), 'run', [_RUN, _STORE]) as root:
    travel.put(root / _RUN, asked.files)
    mark = pathlib.Path(asked.mark)
    shared = mark.is_file()
    store = mark.parent if shared else root / _STORE
    travel.link(RunFolder(root / _RUN).store, store)
    answer = _done(root / _RUN, Machine(clients_in_parallel=asked.clients_in_parallel), here)
    artifacts = {} if shared else travel.contents(store)
    found = travel.contents(root / _RUN)
    changed = {name: each for name, each in found.items() if asked.files.get(name) != each}
    return Ran(changed, artifacts, answer)


def _done(folder: pathlib.Path, machine: Machine, here: 'distributed.Worker') -> run_process.Answer:
  """Has a process do a run as long as the task that asks for it is wanted; raises EnvironmentFault if it ends without an answer."""
  key = here.get_current_task()
  with tempfile.TemporaryFile('w+') as errors:
    process = run_process.RunProcess(machine, errors)
    try:
      process.begin(folder)
      while not run_process.ready([process], _TICK_SECS):
        task = here.state.tasks.get(key)
        if task is None or task.state == 'cancelled':
          raise EnvironmentFault('this run is not wanted any more')
      answer = process.answer()
    finally:
      run_process.stop([process])
    if answer is not None:
      return answer
    errors.seek(0)
    last = words.last_line(errors.read(), 'without a word')
    raise EnvironmentFault(
      f'a run ended on the worker {here.address} (exit code {process.returncode}): {last}'
    )
