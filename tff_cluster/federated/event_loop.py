"""Completes what is asynchronous in TFF for callers that are not, whatever their own thread is doing.

asyncio.run refuses to work in a thread whose event loop is running, and the thread in which a notebook runs its cells is
one. TFF's own synchronous contexts have a loop in a thread of their own, and so has this.
"""

import asyncio
from collections.abc import Coroutine
from concurrent import futures
from typing import TypeVar

_T = TypeVar('_T')


def complete(coroutine: Coroutine[object, None, _T]) -> _T:
  """Returns a coroutine's result, or raises what it raises; an interrupted caller waits until it has ended."""
  with futures.ThreadPoolExecutor(max_workers=1) as beside:
    return beside.submit(lambda: asyncio.run(coroutine)).result()
