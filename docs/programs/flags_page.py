"""Writes docs/reference/flags.md: the programs, and their flags as the fields of the options declare them. Imports no TensorFlow."""

import dataclasses
import importlib
import pathlib
import re
from collections.abc import Iterator

from absl.flags import FLAGS

import phases
from docs.programs.results_json_page import escaped
from tff_cluster.base import fields
from tff_cluster.cli import commands, flags, help, program
from tff_cluster.clustering import methods

PAGE = pathlib.Path(__file__).parents[1] / 'reference/flags.md'
# What absl appends to the help of a flag that takes a list.
_REPEATED = re.compile(r';\s*repeat this option to specify a list of values')
_INTRODUCTION = """# Programs and flags

Each program answers `--help`, `--helpshort` (names only), `--helpfull` (absl's flags too) and `--version`. What is on or off is given as
`--dry_run` or `--nodry_run`. Flags can stand in a file, one on a line (`--flagfile=FILE`); of a flag that is given twice the later one counts,
but `--clustering`, `--aggregation` and `--setting` add up: to leave out a clustering of a preset, copy the file without its line. A flag that has no effect on what
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


def programs() -> list[commands.Command]:
  """Returns the programs."""
  return [*commands.found('phases', pathlib.Path(phases.__path__[0])).values()]


def flags_of(module: str) -> list[Flag]:
  """Returns the flags of a program, in the order in which it defines them."""
  with program.defined(importlib.import_module(module).define_flags) as own:
    found = [(FLAGS.find_module_defining_flag(name), name, FLAGS[name]) for name in own]
    return [Flag(heading, name, help.shape(flag), flag.help) for heading, name, flag in found]


def page() -> str:
  """Returns the page."""
  users: dict[Flag, list[str]] = {}
  for each in programs():
    for flag in flags_of(each.module):
      users.setdefault(flag, []).append(each.module)
  lines = [_INTRODUCTION, *_programs(), *_clustering_keys()]
  for heading in sorted({flag.heading for flag in users}, key=_place):
    lines.append(f'## Flags: {heading.replace("_", " ")}\n\n{_section_words(heading)}')
    for flag in (flag for flag in users if flag.heading == heading):
      words = escaped(_REPEATED.sub(' May be given several times.', flag.help))
      lines.append(f'### --{flag.name}\n\n`--{flag.shape}`, of {_listed(users[flag])}\n\n{words}\n\n')
  return ''.join(lines).rstrip() + '\n'


def _programs() -> Iterator[str]:
  yield '## Programs\n\n| program | what it does |\n| --- | --- |\n'
  for each in programs():
    yield f'| `python -m {each.module}` | {escaped(each.about)} |\n'
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


def _section_words(heading: str) -> str:
  doc = (flags.SECTIONS[heading].__doc__ or '').partition('\n')[0] if heading in flags.SECTIONS else ''
  return f'{doc}\n\n' if doc and '(' not in doc else ''


def _listed(modules: list[str]) -> str:
  return ', '.join(f'`{module}`' for module in modules)
