"""Work on a thread that is wanted no more, because other work that it belongs to failed. Whatever waits asks."""

import threading


class Cancelled(Exception):
  """Another piece of the same work failed, so this one is not wanted any more."""


class _Thread(threading.local):
  cancelled: threading.Event | None = None


_thread = _Thread()


def watch(cancelled: threading.Event) -> None:
  """Has `check` look at an event, in this thread and from now on."""
  _thread.cancelled = cancelled


def check() -> None:
  """Raises Cancelled in a thread whose work is not wanted any more."""
  if _thread.cancelled is not None and _thread.cancelled.is_set():
    raise Cancelled
