"""What a worker of a Dask cluster does for a run: it keeps a TFF worker of its own, and computes there what a task asks for.

  python -m dask worker tls://HOST:8786 --preload tff_cluster.engine.dask_worker ...

With the preload the TFF worker is there before the scheduler knows of this worker; without it the first task starts it. It
is that of a run on one machine (worker.py, one_machine.py): in a network of its own, ended by the kernel with this process,
replaced where it dies or hangs. How patient to be is said by Dask's configuration of this machine, tff_cluster, with the
names of engine/machine.py. The scheduler imports this module, too, so it imports little.
"""

import dataclasses
import functools
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base import environment, fields
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine import jobs as jobs_lib
from tff_cluster.engine import machine as machine_lib
from tff_cluster.engine import side_by_side
from tff_cluster.engine import worker as worker_lib

# Computations that are kept, as a run has about ten and several runs may use a cluster.
_COMPUTATIONS = 64
_PATIENCE = ('worker_start_timeout_secs', 'worker_stall_timeout_secs', 'worker_retries')


@dataclasses.dataclass(frozen=True, eq=False)
class Shared:
  """What all tasks of a call have in common.

  Attributes:
    computation: The computation, serialized.
    values: What it takes beside the clients, with arrays as leaves.
    adds_up: Whether it gives one total, instead of a result for each client.
    packages: {package: version} of the run, which must be those of the worker.
  """

  computation: bytes
  values: Sequence[Any]
  adds_up: bool
  packages: Mapping[str, str]


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
  """What a task gives.

  Attributes:
    results: A result for each client, or one total, with arrays as leaves.
    worker: The address of the worker that computed it.
    instructions: The instruction sets of its processor; see environment.about_worker.
  """

  results: Sequence[Any]
  worker: str
  instructions: Sequence[str]

  @property
  def num_bytes(self) -> int:
    """Bytes of the results."""
    import tensorflow as tf

    return sum(array.nbytes for array in tf.nest.flatten(list(self.results)))


class _Engine:
  """The TFF worker of this process, and what computes in it."""

  def __init__(self, clients_in_parallel: int):
    self.workers = jobs_lib.OneMachine(side_by_side.Slots(clients_in_parallel))
    started = worker_lib.start(clients_in_parallel)
    try:
      # Imported while it comes up.
      from tff_cluster.engine import one_machine

      self.context = one_machine.LocalContext(started, _patience())
    except BaseException:
      started.stop()
      raise


_starting = threading.Lock()
_engine: _Engine | None = None


def dask_setup(worker: Any) -> None:
  """Starts the TFF worker; called by Dask, in the main thread, before the scheduler is told of this worker."""
  _started(worker.state.nthreads)


def dask_teardown(worker: Any) -> None:
  """Ends the TFF worker; called by Dask."""
  del worker
  global _engine
  with _starting:
    if _engine is not None:
      _engine.context.close()
    _engine = None


def has_dashboard() -> bool:
  """Tells whether the scheduler that calls this shows a dashboard, which takes a package that not everybody has."""
  return 'distributed.dashboard.scheduler' in sys.modules and 'bokeh' in sys.modules


def work(shared: Shared, rows: Sequence[Mapping[str, Any]], beside: Sequence[Mapping[str, Any]]) -> Answer:
  """Computes with some clients; the task of a cluster.

  Args:
    shared: What is computed.
    rows: Each client's rows.
    beside: What each client is sent beside them.

  Raises:
    EnvironmentFault: if this worker has other versions than the run, or its TFF worker fails again and again. It names
      this worker.
  """
  import distributed

  here = distributed.get_worker()
  try:
    about = environment.about_worker()
    if dict(about['packages']) != dict(shared.packages):
      raise EnvironmentFault(
        f'it has {_told(about["packages"])}, the run {_told(shared.packages)}; install both from the same requirements.lock'
      )
    results = _computed(_started(here.state.nthreads), shared, rows, beside)
  except EnvironmentFault as fault:
    raise EnvironmentFault(f'the worker {here.address}: {fault}') from None
  return Answer(results, here.address, about['instructions'])


def _computed(
  engine: _Engine, shared: Shared, rows: Sequence[Mapping[str, Any]], beside: Sequence[Mapping[str, Any]]
) -> list[Any]:
  import tensorflow as tf
  import tensorflow_federated as tff

  jobs = [jobs_lib.Job(own, sent) for own, sent in zip(rows, beside, strict=True)]
  computation = _deserialized(shared.computation)
  with tff.framework.get_context_stack().install(engine.context):
    if shared.adds_up:
      results = engine.workers.totals(computation, shared.values, [jobs])
    else:
      results = engine.workers.each(computation, shared.values, jobs)
    found = list(results)
  return [tf.nest.map_structure(np.asarray, each) for each in found]


@functools.lru_cache(_COMPUTATIONS)
def _deserialized(serialized: bytes) -> Any:
  """Returns a computation, the same one for equal bytes: what it is compiled to is kept with it."""
  import tensorflow_federated as tff
  from tensorflow_federated.proto.v0 import computation_pb2

  return tff.framework.deserialize_computation(computation_pb2.Computation.FromString(serialized))


def _started(clients_in_parallel: int) -> _Engine:
  global _engine
  with _starting:
    # A TFF worker that died of a fault of its own ended the run that it computed for, not those that come later.
    if _engine is None or _engine.context.is_over:
      _engine = _Engine(clients_in_parallel)
    return _engine


def _patience() -> machine_lib.Machine:
  import dask

  given = {name: dask.config.get(f'tff_cluster.{name}', None) for name in _PATIENCE}
  return fields.make_section(
    machine_lib.Machine, {name: value for name, value in given.items() if value is not None}
  )


def _told(packages: Mapping[str, Any]) -> str:
  return ', '.join(f'{name} {version}' for name, version in packages.items())
