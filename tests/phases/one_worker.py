"""One TFF worker for the runs of a test session: one of its own would compile anew, for every run, what this one has compiled."""

import contextlib
import dataclasses
import threading
import types
from collections.abc import Iterator

import pytest

from tff_cluster.engine import worker
from tff_cluster.engine.machine import ONE_WORKER

# The contexts that are kept, by how many clients they work on side by side.
_contexts = {}


@dataclasses.dataclass(frozen=True)
class _Wanted:
  """Stands for the worker of a run, until it is known whether the one that is kept will do."""

  clients_in_parallel: int

  def stop(self) -> None:
    """Nothing was started."""


def _context(clients_in_parallel: int):
  """Returns a context that is kept. One that a run has closed, as where it was interrupted, is replaced."""
  from tff_cluster.engine import one_machine

  found = _contexts.get(clients_in_parallel)
  if found is None or found._is_over:
    found = one_machine.LocalContext(worker.start(clients_in_parallel), ONE_WORKER)
    _contexts[clients_in_parallel] = found
  return found


@contextlib.contextmanager
def kept() -> Iterator[None]:
  """While it lasts, runs share a worker, which outlives them; one that is to be patient, or in a thread, has its own."""
  from tff_cluster.phases import session

  owner, own = threading.current_thread(), []

  def start(clients_in_parallel: int):
    # Imported by the first run, because what starts none is quick.
    from tff_cluster.engine import context

    if not own:
      own.append(context.connected)
      patch.setattr(context, 'connected', connected)
    # The kernel ends a worker with the thread that started it.
    shares = threading.current_thread() is owner
    return _Wanted(clients_in_parallel) if shares else worker.start(clients_in_parallel)

  @contextlib.contextmanager
  def connected(given, how=ONE_WORKER, model=None):
    if isinstance(given, _Wanted) and how == ONE_WORKER:
      import tensorflow_federated as tff

      with tff.framework.get_context_stack().install(_context(given.clients_in_parallel)):
        yield
      return
    started = worker.start(given.clients_in_parallel) if isinstance(given, _Wanted) else given
    with own[0](started, how, model):
      yield

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(session, 'worker_lib', types.SimpleNamespace(start=start))
    yield
