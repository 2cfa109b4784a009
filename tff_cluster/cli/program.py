"""What every program does around its own work: parse, run, and end with the right exit code.

Exit codes: 0; 1 the machine failed us, or this software did (then with a traceback); 2 wrong input, or a
damaged file in a folder that was given; 130 Ctrl-C; 141 the reader of our output is gone; 143 SIGTERM. Everything but
a fault of this software is told in one line on stderr; a reader that is gone is told nothing.
"""

import atexit
import contextlib
import difflib
import faulthandler
import io
import os
import select
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence

from absl import flags

from tff_cluster.base import console_log
from tff_cluster.base.errors import InputError
from tff_cluster.cli import commands, flagfile, signals
from tff_cluster.cli import help as help_text
from tff_cluster.clustering import methods
from tff_cluster.engine import stock_context
from tff_cluster.storage import faults, output_folders


def run(main: Callable[[], int | None], define_flags: Callable[[], None]) -> None:
  """Runs a program and ends the process; see `execute`."""
  # TensorFlow reads this when it is imported; its start-up chatter would bury our one line.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  # TFF imports a package that warns about pkg_resources, which the lock pins on purpose.
  warnings.filterwarnings('ignore', message='pkg_resources is deprecated')
  if sys.stderr is not None:
    faulthandler.enable()
  console_log.use()
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
      # A path that is not UTF-8 is shown escaped.
      stream.reconfigure(errors='backslashreplace')
  signals.take()
  stopped = False
  try:
    code = execute(main, define_flags, sys.argv)
  except signals.Stopped:
    code, stopped = signals.tell(), True
  finally:
    signals.leave()
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
    return ended_by(error)
  finally:
    output_folders.release_all()


def ended_by(error: Exception) -> int:
  """Tells why a program ends, and returns its exit code; raises the error again where it is neither wrong input nor a failing machine."""
  if signals.came():
    raise signals.Stopped from None  # It came of leaving in the midst of something.
  if isinstance(error, BrokenPipeError) and _reader_is_gone():
    _silence_stdout()
    return 141
  fault = faults.of(error)
  if fault is None:
    raise error
  if isinstance(error, OSError) and error.filename is None:
    _silence_stdout()
  if sys.stderr is not None:
    with contextlib.suppress(OSError):
      print(f'error: {fault.on_command_line()}', file=sys.stderr, flush=True)
  return fault.exit_code


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
    if error.flagname in help_text.FLAGS:
      return f'--{error.flagname} is for the command line itself, and takes no value'
    is_of_method = error.flagname == 'method' or methods.with_option(error.flagname)
    if is_of_method and 'clustering' in flags.FLAGS:
      return f'--{error.flagname} is no flag here: a clustering and its options are one flag, for instance --clustering=kmeans,num_clusters=2'
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
