"""Ctrl-C and SIGTERM end a program once, for certain, and in one line.

An exception that a signal handler raises gets lost in four ways. A destructor drops it: it is raised again. A library makes an
error of its own of it: who asks `came` knows better. The main thread waits for a lock and is not woken, since the kernel gave the
signal to another thread, or it came just before the wait: it is sent again. The cleanup does not end: the process does.
"""

import _thread
import contextlib
import os
import signal
import sys
import time
import types
from typing import Any

# What is said of a signal that ended the program, and the exit code.
_ENDINGS = {
  signal.SIGINT: ('interrupted; where it writes to a folder, the same command goes on', 130),
  signal.SIGTERM: ('terminated by SIGTERM', 143),
}
# How long the program may clean up; what it writes is whole at any moment, and the kernel ends its workers with it.
_PATIENCE_SECS = 15.0
_UNSEEN_SECS = 0.2


class Stopped(SystemExit):
  """A signal came; a SystemExit, so that cleanup runs on the way out."""

  def __init__(self) -> None:
    super().__init__(_ending()[1])


class _Ending:
  """How far the process is with its end.

  Attributes:
    by: The signal that came first.
    told: Whether the user knows how it ended.
  """

  by: int | None = None
  told = False


def take_early() -> None:
  """Has Ctrl-C end a program that is still importing what it needs, in the same line; `take` puts its own in the place."""
  if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end_early)


def take() -> None:
  """Has signals raise Stopped in this thread, which is the main one."""
  for number in _ENDINGS:
    # What a shell starts in the background has Ctrl-C ignored.
    if signal.getsignal(number) != signal.SIG_IGN:
      signal.signal(number, _stop)
  sys.unraisablehook = _raise_again
  ours, theirs = os.pipe()
  os.set_blocking(theirs, False)
  signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
  # Not by threading, which would wait for it at the end.
  _thread.start_new_thread(_send_again, (ours, _thread.get_ident()))


def came() -> bool:
  """Tells whether a signal ends the program."""
  return _Ending.by is not None


def leave() -> None:
  """Has a signal that comes from now on end the process at once: there is nothing left to clean up."""
  _Ending.told = True


def tell() -> int:
  """Says once which signal ended the program, and returns the exit code; not by a stream, which another thread may have locked."""
  line, code = _ending()
  if not _Ending.told:
    _Ending.told = True
    if sys.stderr is not None:
      with contextlib.suppress(OSError):
        os.write(2, f'{line}\n'.encode())
  return code


def _ending() -> tuple[str, int]:
  assert _Ending.by is not None
  return _ENDINGS[signal.Signals(_Ending.by)]


def _stop(number: int, frame: types.FrameType | None) -> None:
  """Ends the program once, whatever it is at: a second signal does not disturb the cleanup, which may not last for ever."""
  del frame
  if came():
    return
  _Ending.by = number
  if _Ending.told:
    _end_at_once()
  # Not by threading, whose locks this thread may hold just now.
  _thread.start_new_thread(_end_at_last, ())
  raise Stopped


def _end_early(number: int, frame: types.FrameType | None) -> None:
  del frame
  _Ending.by = number
  _end_at_once()


def _send_again(pipe: int, thread: int) -> None:
  """Sends signals to a thread that has not seen them though they came to the process."""
  while True:
    # Python writes the signal's number there as soon as it comes, in whatever thread.
    (number,) = os.read(pipe, 1)
    if number in _ENDINGS:
      time.sleep(_UNSEEN_SECS)
      if not came():
        signal.pthread_kill(thread, number)


def _raise_again(swallowed: Any) -> None:
  """Raises what ends the program once more where Python dropped it: what a destructor raises goes nowhere."""
  if not isinstance(swallowed.exc_value, Stopped):
    sys.__unraisablehook__(swallowed)
    return
  signal.signal(signal.SIGALRM, _raise)
  signal.setitimer(signal.ITIMER_REAL, 0.05)


def _raise(number: int, frame: types.FrameType | None) -> None:
  del number, frame
  raise Stopped


def _end_at_last() -> None:
  time.sleep(_PATIENCE_SECS)
  _end_at_once()


def _end_at_once() -> None:
  os._exit(tell())
