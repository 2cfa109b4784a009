"""Pieces of work side by side on threads, in one TFF context; the cores that their calls share.

A piece, such as the training of a cluster, makes one call after the other. A call of many clients fills the cores by itself,
one of a single client leaves most of them idle; so calls of several pieces are in flight at the same time, as many as there
are cores for. What a piece computes does not depend on what runs beside it.
"""

import collections
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from typing import TypeVar

from tff_cluster.base import cancelling

_Item = TypeVar('_Item')
_Result = TypeVar('_Result')


class Slots:
  """Clients that may be worked on at the same time; calls take slots for theirs, in the order in which they come.

  There are twice as many slots as cores, and a call takes at most one a core: while the last clients of a call leave cores
  idle, the next call has its first ones at work.

  Attributes:
    count: Cores.
  """

  def __init__(self, count: int):
    self.count = count
    self._free = 2 * count
    self._changed = threading.Condition()
    self._waiting: collections.deque[object] = collections.deque()

  @contextlib.contextmanager
  def taken(self, clients: int) -> Iterator[None]:
    """Takes a slot for each client, at most one a core; waits until they are free.

    Raises:
      Cancelled: in a thread of `each`, once another piece has failed.
    """
    wanted, ticket = min(max(clients, 1), self.count), object()
    with self._changed:
      self._waiting.append(ticket)
      try:
        self._changed.wait_for(lambda: self._waiting[0] is ticket and self._free >= wanted)
      finally:
        self._waiting.remove(ticket)
        self._changed.notify_all()
      cancelling.check()
      self._free -= wanted
    try:
      yield
    finally:
      with self._changed:
        self._free += wanted
        self._changed.notify_all()


def each(
  work: Callable[[_Item], _Result], items: Iterable[_Item], at_once: int
) -> list[tuple[_Item, _Result]]:
  """Does work on every item, several at a time, in the TFF context of the caller.

  Args:
    work: Called in threads of its own; its calls take slots.
    items: Asked for the next one whenever a thread is free.
    at_once: Threads; with one, nothing is done beside the caller.

  Returns:
    Items and results, in the order in which items were begun.

  Raises:
    What the first piece that fails raises; the others have ended by then.
  """
  if at_once < 2:
    return [(item, work(item)) for item in items]
  import tensorflow_federated as tff

  stack = tff.framework.get_context_stack()
  context, cancelled = stack.current, threading.Event()
  found: list[tuple[_Item, futures.Future[_Result]]] = []
  lock, left = threading.Lock(), iter(items)

  def serve() -> None:
    cancelling.watch(cancelled)
    with stack.install(context):
      while not cancelled.is_set():
        with lock:
          try:
            item = next(left)
          except StopIteration:
            return
          except BaseException:
            cancelled.set()
            raise
          promise: futures.Future[_Result] = futures.Future()
          found.append((item, promise))
        try:
          promise.set_result(work(item))
        except BaseException as error:
          cancelled.set()
          promise.set_exception(error)

  with futures.ThreadPoolExecutor(at_once) as pool:
    threads = [pool.submit(serve) for _ in range(at_once)]
    try:
      futures.wait(threads)
    except BaseException:
      # An interrupted caller: its calls end with the worker.
      cancelled.set()
      close = getattr(context, 'close', None)
      if close is not None:
        close()
      raise
  for thread in threads:
    thread.result()
  failed = [error for _, promise in found if (error := promise.exception()) is not None]
  if failed:
    raise next((error for error in failed if not isinstance(error, cancelling.Cancelled)), failed[0])
  return [(item, promise.result()) for item, promise in found]
