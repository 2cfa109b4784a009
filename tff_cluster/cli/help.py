"""What --help, --helpshort, --helpfull and --version print. None of it needs the flags to be right, or TensorFlow."""

import shutil
import textwrap
from collections.abc import Collection, Iterator

from absl import flags

from tff_cluster.base import environment

_HEADINGS = ('data', 'training', 'clustering', 'vectors', 'evaluation', 'run')
# What each flag prints, and what help says of it.
FLAGS = {
  'help': 'The flags of this program, with what they mean.',
  'helpshort': 'Their names only.',
  'helpfull': 'The flags of this program and those of absl.',
  'version': 'The versions of this package, of TensorFlow and of TensorFlow Federated.',
}
# absl reads these two itself, whatever a program defines.
_OF_ABSL = {
  'flagfile=FILE': 'Read flags from FILE, one on a line; flags that come later win, those that may be repeated add up.',
  'undefok=NAME,NAME': 'Pass over flags of these names where the program does not know them.',
}


def wanted(argv: list[str]) -> str | None:
  """Returns which of FLAGS the arguments (without the program) ask for; None where they ask for none."""
  for argument in argv:
    if argument == '--':
      return None
    if argument == '-h':
      return 'help'
    name = argument.removeprefix('-').removeprefix('-')
    if name in FLAGS and name != argument:
      return name
  return None


def render(called: str, doc: str, own: Collection[str], kind: str) -> str:
  """Returns what is printed.

  Args:
    called: How the program was called, for instance 'python -m phases.clustering'.
    doc: What the program says of itself.
    own: Names of the flags that the program defined.
    kind: One of FLAGS.
  """
  if kind == 'version':
    return environment.version_lines()
  lines = [doc.strip(), '', f'usage: {called} --flag=value ...']
  by_heading: dict[str, list[str]] = {}
  for name in own:
    module = flags.FLAGS.find_module_defining_flag(name)
    by_heading.setdefault(module if module in _HEADINGS else 'program', []).append(name)
  for heading in ('program', *_HEADINGS):
    found = by_heading.get(heading, [])
    lines += _section(heading, [(shape(flags.FLAGS[name]), flags.FLAGS[name].help) for name in found], kind)
  if kind == 'helpfull':
    others = sorted({flags.FLAGS[name].name for name in flags.FLAGS if name not in own})
    lines += _section('absl', [(shape(flags.FLAGS[name]), flags.FLAGS[name].help) for name in others], kind)
  lines += _section('absl, in every program', list(_OF_ABSL.items()), kind)
  return '\n'.join([*lines, *_section('help', list(FLAGS.items()), kind)])


def _section(heading: str, entries: list[tuple[str, str]], kind: str) -> Iterator[str]:
  """Yields the lines of the flags below a heading, (shape, meaning) each; nothing where there are none."""
  if not entries:
    return
  yield from ('', f'{heading}:')
  width = max(min(shutil.get_terminal_size((100, 24)).columns, 120), 40)
  for shape, meaning in entries:
    yield f'  --{shape}'
    if kind != 'helpshort':
      yield from textwrap.wrap(meaning, width, initial_indent=' ' * 6, subsequent_indent=' ' * 6)


def shape(flag: flags.Flag) -> str:
  """Returns how a flag is written: its name, and what value it takes."""
  if flag.boolean:
    return f'[no]{flag.name}'
  value = flag.parser.syntactic_help
  # absl's own parsers put a phrase here.
  return f'{flag.name}={value if value.isupper() or "|" in value else "TEXT"}'
