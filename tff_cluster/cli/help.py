"""The text of --help: a program's own flags under their headings, and no others."""

import shutil
import textwrap
from collections.abc import Collection

from absl import flags

_HEADINGS = ('data', 'training', 'clustering', 'vectors', 'evaluation', 'run')
_SHORT = ('-h', '-help', '--help', '-helpshort', '--helpshort')
_FULL = ('-helpfull', '--helpfull')


def wanted(argv: list[str]) -> str | None:
  """Returns 'short', 'full' or None: the help that the arguments (without the program) ask for."""
  for argument in argv:
    if argument == '--':
      return None
    if argument in _SHORT:
      return 'short'
    if argument in _FULL:
      return 'full'
  return None


def render(program: str, doc: str, own: Collection[str], kind: str) -> str:
  """Returns the help text.

  Args:
    program: The module that is run, for instance 'phases.clustering'.
    doc: What the program says of itself.
    own: Names of the flags that the program defined.
    kind: 'short' for the program's own flags, 'full' for absl's as well.
  """
  lines = [doc.strip(), '', f'usage: python -m {program} --flag=value ...']
  by_heading: dict[str, list[str]] = {}
  for name in own:
    module = flags.FLAGS.find_module_defining_flag(name)
    by_heading.setdefault(module if module in _HEADINGS else 'program', []).append(name)
  for heading in ('program', *_HEADINGS):
    if heading in by_heading:
      lines += ['', f'{heading}:']
      for name in by_heading[heading]:
        lines += _flag_lines(flags.FLAGS[name])
  if kind == 'full':
    others = sorted(name for name in flags.FLAGS if name not in own)
    lines += ['', 'absl:']
    for name in others:
      lines += _flag_lines(flags.FLAGS[name])
  lines += ['', 'flags from a file:', '  --flagfile=FILE']
  lines.append('      Read flags from FILE, one on a line; flags that come later win.')
  if kind == 'short':
    lines += ['', "--helpfull also shows absl's flags, for instance --verbosity."]
  return '\n'.join(lines)


def _flag_lines(flag: flags.Flag) -> list[str]:
  width = min(shutil.get_terminal_size((100, 24)).columns, 120)
  shape = flag.parser.syntactic_help
  if not (shape.isupper() or '|' in shape):
    # absl's own parsers put a phrase here.
    shape = 'TEXT'
  name = f'  --[no]{flag.name}' if flag.boolean else f'  --{flag.name}={shape}'
  return [name, *textwrap.wrap(flag.help, max(width, 40), initial_indent=' ' * 6, subsequent_indent=' ' * 6)]
