"""What every program does around its own work: parse, run, and end with the right exit code.

Exit codes: 0; 1 the machine failed us, or this software did (then with a traceback); 2 wrong input, or a
damaged file in a folder that was given; 130 Ctrl-C; 141 the reader of our output is gone; 143 SIGTERM. Everything but
a fault of this software is told in one line on stderr; a reader that is gone is told nothing.
"""

import _thread
import atexit
import contextlib
import difflib
import faulthandler
import io
import os
import select
import signal
import sys
import time
import types
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from absl import flags, logging

from tff_cluster.base.errors import InputError
from tff_cluster.cli import commands, flagfile
from tff_cluster.cli import help as help_text
from tff_cluster.engine import stock_context
from tff_cluster.experiment import run_claim
from tff_cluster.storage import faults

# How long a program that got a signal may clean up; what it writes is whole at any moment, and the kernel ends its workers with it.
_PATIENCE_SECS = 15.0
# What a program says that such a signal ends, and its exit code.
_ENDINGS = {
  signal.SIGINT: ('interrupted; where it writes to a folder, the same command goes on', 130),
  signal.SIGTERM: ('terminated by SIGTERM', 143),
}


class _Stopped(SystemExit):
  """A signal came; a SystemExit, so that cleanup runs on the way out."""


class _Ending:
  """How far a process is with its end.

  Attributes:
    by: The signal that came first, of _ENDINGS.
    told: Whether the user knows how it ended.
  """

  by: int | None = None
  told = False


def run(main: Callable[[], int | None], define_flags: Callable[[], None]) -> None:
  """Runs a program and ends the process; see `execute`."""
  # TensorFlow reads this when it is imported; its start-up chatter would bury our one line.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  # TFF imports a package that warns about pkg_resources, which the lock pins on purpose.
  warnings.filterwarnings('ignore', message='pkg_resources is deprecated')
  if sys.stderr is not None:
    faulthandler.enable()
  logging.use_absl_handler()
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
      # A path that is not UTF-8 is shown escaped.
      stream.reconfigure(errors='backslashreplace')
  for number in _ENDINGS:
    # What a shell starts in the background has Ctrl-C ignored.
    if signal.getsignal(number) != signal.SIG_IGN:
      signal.signal(number, _stop)
  sys.unraisablehook = _raise_again
  stopped = False
  try:
    code = execute(main, define_flags, sys.argv)
  except _Stopped:
    code, stopped = _tell_of_signal(), True
  finally:
    _Ending.told = True
    stock_context.drop()
  if stopped:
    # What Python does after this waits for threads, and a second signal would be the exit code.
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
      _flush_stdout()
    os._exit(code)
  sys.exit(code)


def execute(main: Callable[[], int | None], define_flags: Callable[[], None], argv: Sequence[str]) -> int:
  """Parses the arguments, runs main, and returns the exit code.

  Args:
    main: The work; it returns None or an exit code. Its module's docstring is shown by --help. Where help or the version
      is asked for, it is not called, and the code is 0.
    define_flags: Defines the program's flags; they are gone again afterwards.
    argv: The program's name and its arguments.

  Raises:
    Exception: whatever main raises that is neither wrong input nor a failing machine.
  """
  try:
    with defined(define_flags) as own:
      kind = help_text.wanted(list(argv[1:]))
      if kind is not None:
        called, doc = _identity(main, argv)
        print(help_text.render(called, doc, own, kind))
        code = 0
      else:
        _parse(argv)
        code = main() or 0
      _flush_stdout()
      return code
  except Exception as error:
    if _Ending.by is not None:
      raise _Stopped(_ending()[1]) from None  # It came of leaving in the midst of something.
    if isinstance(error, BrokenPipeError) and _reader_is_gone():
      _silence_stdout()
      return 141
    fault = faults.of(error)
    if fault is None:
      raise
    if isinstance(error, OSError) and error.filename is None:
      _silence_stdout()
    return _end(fault.on_command_line(), fault.exit_code)
  finally:
    run_claim.release_output_dirs()


@contextlib.contextmanager
def defined(define_flags: Callable[[], None]) -> Iterator[Collection[str]]:
  """Yields the names of the flags that the program defines, in order."""
  before = set(flags.FLAGS)
  own: list[str] = []
  try:
    define_flags()
    own = [name for name in flags.FLAGS if name not in before]
    yield own
  finally:
    for name in own:
      delattr(flags.FLAGS, name)


def _parse(argv: Sequence[str]) -> None:
  for name in flags.FLAGS:
    flags.FLAGS[name].unparse()
  try:
    rest = flags.FLAGS([*argv[:1], *flagfile.expanded(argv[1:])])
  except RecursionError:
    # absl looks for a similar flag, letter by letter, or follows one flagfile into the next.
    raise InputError(
      'unknown flag with a very long name, or flagfiles that include one another without end'
    ) from None
  except InputError:
    raise
  except flags.Error as error:
    raise InputError(_absl_message(error)) from None
  except ValueError as error:
    raise InputError(str(error)) from None
  if len(rest) > 1:
    raise InputError(f'unexpected argument {rest[1]!r}; flags are written --name=value (--help lists them)')


def _absl_message(error: flags.Error) -> str:
  if isinstance(error, flags.UnrecognizedFlagError):
    close = difflib.get_close_matches(error.flagname, [*flags.FLAGS, *help_text.FLAGS], n=1)
    hint = f'did you mean --{close[0]}?' if close else '--help lists the flags'
    return f'unknown flag --{error.flagname}; {hint}'
  return str(error).removeprefix('flag ').replace('Missing value for flag', 'missing value for')


def _identity(main: Callable, argv: Sequence[str]) -> tuple[str, str]:
  """Returns how the program was called, and what it says of itself."""
  module = sys.modules[main.__module__]
  spec = getattr(module, '__spec__', None)
  if argv[0].startswith(f'{commands.PROGRAM} '):
    called = argv[0]
  else:
    called = f'python -m {spec.name if spec else os.path.basename(argv[0])}'
  return called, module.__doc__ or ''


def _end(message: str, code: int) -> int:
  if sys.stderr is not None:
    line = message.replace('\r', '\\r').replace('\n', '\\n')
    with contextlib.suppress(OSError):
      print(f'error: {line}' if code in (1, 2) else line, file=sys.stderr, flush=True)
  return code


def _flush_stdout() -> None:
  if sys.stdout is not None:
    sys.stdout.flush()


def _reader_is_gone() -> bool:
  """Tells whether standard output is a pipe that nobody reads; other pipes break for worse reasons."""
  try:
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
  except (AttributeError, OSError, ValueError):
    return False


def _silence_stdout() -> None:
  # What is still buffered would fail again, with a message, when the interpreter ends.
  with contextlib.suppress(OSError, ValueError):
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _raise_again(swallowed: Any) -> None:
  """Raises what ends the program once more where Python dropped it: what a destructor raises goes nowhere."""
  if not isinstance(swallowed.exc_value, _Stopped):
    sys.__unraisablehook__(swallowed)
    return
  signal.signal(signal.SIGALRM, _raise_stopped)
  signal.setitimer(signal.ITIMER_REAL, 0.05)


def _stop(number: int, frame: types.FrameType | None) -> None:
  """Ends the process once, whatever it is at: a second signal does not disturb the cleanup, which may not last for ever."""
  if _Ending.by is not None:
    return
  _Ending.by = number
  if _Ending.told:
    _end_at_once()  # There is nothing left to clean up.
  # Not by threading, whose locks this thread may hold just now.
  _thread.start_new_thread(_end_at_last, ())
  _raise_stopped(number, frame)


def _raise_stopped(number: int, frame: types.FrameType | None) -> None:
  del number, frame
  raise _Stopped(_ending()[1])


def _ending() -> tuple[str, int]:
  """Returns what is said of the signal that came, and the exit code."""
  assert _Ending.by is not None
  return _ENDINGS[signal.Signals(_Ending.by)]


def _end_at_last() -> None:
  time.sleep(_PATIENCE_SECS)
  _end_at_once()


def _end_at_once() -> None:
  os._exit(_tell_of_signal())


def _tell_of_signal() -> int:
  """Says once which signal ended the program, and returns the exit code; not by a stream, which another thread may have locked."""
  line, code = _ending()
  if not _Ending.told:
    _Ending.told = True
    if sys.stderr is not None:
      with contextlib.suppress(OSError):
        os.write(2, f'{line}\n'.encode())
  return code
