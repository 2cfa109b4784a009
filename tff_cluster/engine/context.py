"""Installs the TFF context that computations of this process run in: a worker of this machine."""

import atexit
import contextlib
from collections.abc import Iterator

import tensorflow_federated as tff

from tff_cluster.engine import machine as machine_lib
from tff_cluster.engine import one_machine, stock_context
from tff_cluster.engine import worker as worker_lib

atexit.register(stock_context.drop)


@contextlib.contextmanager
def connected(
  worker: worker_lib.Worker, machine: machine_lib.Machine = machine_lib.ONE_WORKER, model: str | None = None
) -> Iterator[None]:
  """Installs a TFF execution context; the worker has ended when the block has.

  Args:
    worker: A worker of this machine, as worker.start returned it.
    machine: How patient to be.
    model: What is trained, for the line that tells of a worker that died of a fault of its own.

  Raises:
    EnvironmentFault: if the worker does not come up.
  """
  try:
    here = one_machine.LocalContext(worker, machine, model)
  except BaseException:
    worker.stop()
    raise
  try:
    with tff.framework.get_context_stack().install(here):
      yield
  finally:
    here.close()
