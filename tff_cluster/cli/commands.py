"""The installed program `tff-cluster`: every program of a package is a subcommand, under its own name or what it says in COMMAND.

Nothing is imported to list them: what each is called, and what it does, is read from its text.
"""

import ast
import dataclasses
import difflib
import importlib
import pathlib
import sys
from collections.abc import Mapping, Sequence

from tff_cluster.base import errors
from tff_cluster.cli import signals

PROGRAM = 'tff-cluster'
COMPLETION = 'completion'
SHELLS = ('bash', 'zsh')
_OVERVIEW = ('-h', '-help', '--help', '--helpshort', '--helpfull')
_VERSION = ('-version', '--version')


@dataclasses.dataclass(frozen=True)
class Command:
  """A subcommand.

  Attributes:
    name: What it is called.
    module: The program that it runs, for instance 'phases.run_all'.
    about: The first sentence of the program's docstring.
  """

  name: str
  module: str
  about: str


def found(package: str, folder: pathlib.Path) -> dict[str, Command]:
  """Returns the programs of a package by the names of their subcommands.

  Args:
    package: Its name.
    folder: Where its modules are.
  """
  commands = [_read(package, path) for path in sorted(folder.glob('[a-z]*.py'))]
  return {command.name: command for command in commands}


def _read(package: str, path: pathlib.Path) -> Command:
  parsed = ast.parse(path.read_text(encoding='utf-8'))
  name = path.stem
  for node in parsed.body:
    if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ['COMMAND']:
      name = str(ast.literal_eval(node.value))
  about = ' '.join((ast.get_docstring(parsed) or '').partition('\n\n')[0].split())
  return Command(name, f'{package}.{path.stem}', about)


def main(package: str, folder: pathlib.Path, arguments: Sequence[str]) -> int:
  """Does what the arguments say, and returns the exit code; a subcommand ends the process itself.

  Args:
    package, folder: See `found`.
    arguments: A subcommand and its flags.
  """
  commands = found(package, folder)
  name, *rest = arguments or _OVERVIEW[:1]
  if name in _OVERVIEW:
    return _show(_overview(commands))
  if name in _VERSION:
    from tff_cluster.base import environment

    return _show(environment.version_lines())
  if name == COMPLETION:
    return _complete(commands, rest)
  if name not in commands:
    return _refuse(f'{name!r} is no command of {PROGRAM}{_hint(name, commands)}')
  _run(commands[name], rest)
  return 0


def _show(text: str) -> int:
  """Prints a text, and returns the exit code."""
  try:
    print(text, flush=True)
  except OSError as error:
    from tff_cluster.cli import program  # Imports more than a list of programs needs.

    return program.ended_by(error)
  return 0


def _overview(commands: Mapping[str, Command]) -> str:
  shells = '|'.join(SHELLS)
  lines = [(each.name, each.about) for each in commands.values()]
  lines += [
    (
      f'{COMPLETION} {shells}',
      'Prints what makes a shell complete commands and flags (docs/howto/install.md).',
    )
  ]
  width = max(len(name) for name, _ in lines)
  return '\n'.join(
    [
      f'usage: {PROGRAM} COMMAND --flag=value ...',
      '',
      *(f'  {name:<{width}}  {about}' for name, about in lines),
      '',
      f'{PROGRAM} COMMAND --help lists the flags of a command. {PROGRAM} COMMAND is python -m phases.PROGRAM.',
    ]
  )


def _run(command: Command, arguments: Sequence[str]) -> None:
  signals.take_early()
  from tff_cluster.cli import program

  sys.argv = [f'{PROGRAM} {command.name}', *arguments]
  module = importlib.import_module(command.module)
  program.run(module.main, module.define_flags)


def _complete(commands: Mapping[str, Command], arguments: Sequence[str]) -> int:
  if len(arguments) != 1 or arguments[0] not in SHELLS:
    return _refuse(f'{" ".join([COMPLETION, *arguments])}: give one shell, {" or ".join(SHELLS)}')
  from tff_cluster.cli import completion  # Imports every program.

  return _show(completion.script(arguments[0], PROGRAM, commands).rstrip('\n'))


def _hint(name: str, commands: Mapping[str, Command]) -> str:
  modules = {each.module.rpartition('.')[2]: each.name for each in commands.values()}
  close = difflib.get_close_matches(name, [*modules, *commands, COMPLETION], n=1)
  hint = f' (did you mean {modules.get(close[0], close[0])}?)' if close else ''
  return f'{hint}; there are {", ".join([*commands, COMPLETION])}'


def _refuse(message: str) -> int:
  print(f'error: {errors.one_line(message)}', file=sys.stderr)
  return 2
