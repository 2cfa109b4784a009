"""Writes docs/reference/flags.md: the programs, and their flags as the fields of the options declare them. Imports no TensorFlow."""

import dataclasses
import importlib
import pathlib
import pkgutil
import re
from collections.abc import Iterator

from absl import flags as absl_flags

import phases
from tff_cluster.base import fields
from tff_cluster.cli import flags, help, program
from tff_cluster.clustering import methods

PAGE = pathlib.Path(__file__).parents[1] / 'reference/flags.md'
# What absl appends to the help of a flag that takes a list.
_REPEATED = re.compile(r';\s*repeat this option to specify a list of values')
_INTRODUCTION = """# Programs and flags

Each program answers `--help`, `--helpshort` (names only), `--helpfull` (absl's flags too) and `--version`. What is on or off is given as
`--dry_run` or `--nodry_run`. Flags can stand in a file, one on a line (`--flagfile=FILE`); later flags win. A flag that has no effect on what
was chosen is an error, but for `phases.partition`, which takes a preset whole. Everything of a run lies in `--output_dir`.

Exit codes: 0 done, 1 the machine failed (one line) or this software did (a traceback), 2 wrong input, or a damaged file in a folder that was
given (one line), 130 Ctrl-C, 141 the reader of the output is gone, 143 SIGTERM.

This page is written by `make docs` from the fields that the configuration declares (`docs/programs/flags_page.py`).

"""


@dataclasses.dataclass(frozen=True)
class Flag:
  """A flag of one or several programs.

  Attributes:
    heading: The heading in `--help`.
    name: Its name.
    shape: How it is written, without dashes.
    help: What `--help` says of it.
  """

  heading: str
  name: str
  shape: str
  help: str


def program_names() -> list[str]:
  """Returns the names of the programs, without `phases.`."""
  names = sorted(module.name for module in pkgutil.iter_modules(phases.__path__))
  return [name for name in names if name != '__main__']


def flags_of(name: str) -> list[Flag]:
  """Returns the flags of a program, in the order in which it defines them."""
  known, found = set(absl_flags.FLAGS), list[Flag]()

  def read() -> None:
    for each in absl_flags.FLAGS:
      if each not in known:
        flag = absl_flags.FLAGS[each]
        heading = absl_flags.FLAGS.find_module_defining_flag(each)
        found.append(Flag(heading, each, help.shape(flag), flag.help))

  if program.execute(read, importlib.import_module(f'phases.{name}').define_flags, [name]):
    raise RuntimeError(f'the flags of phases.{name} could not be read')
  return found


def page() -> str:
  """Returns the page."""
  users: dict[Flag, list[str]] = {}
  for name in program_names():
    for flag in flags_of(name):
      users.setdefault(flag, []).append(name)
  lines = [_INTRODUCTION, *_programs(), *_clustering_keys()]
  for heading in sorted({flag.heading for flag in users}, key=_place):
    lines.append(f'## Flags: {heading.replace("_", " ")}\n\n{_section_words(heading)}')
    for flag in sorted((flag for flag in users if flag.heading == heading), key=_order_of(users)):
      words = _escaped(_REPEATED.sub(' May be given several times.', flag.help))
      lines.append(f'### --{flag.name}\n\n`--{flag.shape}`, of {_listed(users[flag])}\n\n{words}\n\n')
  return ''.join(lines).rstrip() + '\n'


def _programs() -> Iterator[str]:
  yield '## Programs\n\n| program | what it does |\n| --- | --- |\n'
  for name in program_names():
    doc = importlib.import_module(f'phases.{name}').__doc__ or ''
    yield f'| `python -m phases.{name}` | {_escaped(" ".join(doc.partition(chr(10) * 2)[0].split()))} |\n'
  yield '\n'


def _clustering_keys() -> Iterator[str]:
  """Yields what `--clustering=METHOD,KEY=VALUE,...` takes."""
  yield '## Keys of --clustering\n\n`--clustering=METHOD,KEY=VALUE,...` may be given several times. Every method also takes `name`, '
  yield 'what results call the clustering. The options are explained below, under the flags of the same names.\n\n'
  yield '| method | keys, with their defaults |\n| --- | --- |\n'
  for name, method in methods.METHODS.items():
    keys = (
      f'`{key}` ({"not given" if field.default is None else fields.as_text(field.default)})'
      for key, field in method.fields().items()
    )
    yield f'| `{name}` | {", ".join(keys) or "none"} |\n'
  yield '\n'


def _place(heading: str) -> int:
  order = [*flags.SECTIONS]
  return order.index(heading) if heading in order else len(order)


def _order_of(users: dict[Flag, list[str]]):
  """Returns the sort key that keeps flags in the order in which they were defined first."""
  order = {flag: k for k, flag in enumerate(users)}
  return order.__getitem__


def _section_words(heading: str) -> str:
  doc = (flags.SECTIONS[heading].__doc__ or '').partition('\n')[0] if heading in flags.SECTIONS else ''
  return f'{doc}\n\n' if doc and '(' not in doc else ''


def _listed(names: list[str]) -> str:
  return ', '.join(f'`phases.{name}`' for name in names)


def _escaped(words: str) -> str:
  """Returns words in which Markdown sees nothing but words."""
  for sign in ('\\', '|', '*', '_', '[', '<'):
    words = words.replace(sign, f'\\{sign}')
  return words
