"""Writes the table of docs/licences.md: version and licence of every package of requirements.lock.

  python -m docs.programs.licences

Run it in the environment that the lock makes, after every change of the lock (`make licences` does both). The text
above the table stays as it is.
"""

import argparse
import importlib.metadata
import pathlib
import re
import sys
from collections.abc import Iterable, Mapping
from email.message import Message
from typing import cast

from tff_cluster.base.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]
HEADER = '| package | version | licence field | licence classifiers |\n| --- | --- | --- | --- |\n'
_NOTHING = '–'
_CLASSIFIER = 'License :: '


def main() -> int:
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
  )
  parser.add_argument('--lock', type=pathlib.Path, default=ROOT / 'requirements.lock', help='default: ours')
  parser.add_argument('--page', type=pathlib.Path, default=ROOT / 'docs/licences.md', help='default: ours')
  flags = parser.parse_args()
  try:
    for name, path in (('--lock', flags.lock), ('--page', flags.page)):
      if not path.is_file():
        raise InputError(f'{name}={path}: there is no such file')
    pins = locked(flags.lock.read_text())
    found = {name: cast(Message, importlib.metadata.metadata(name)) for name in pins if _installed(name)}
    flags.page.write_text(with_table(flags.page.read_text(), table(pins, found)))
  except InputError as error:
    print(error, file=sys.stderr)
    return error.exit_code
  print(f'{len(pins)} packages in {flags.page}')
  return 0


def locked(lock: str) -> dict[str, str]:
  """Returns {package: version} of a lock's text, in its order."""
  return dict(re.findall(r'^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)', lock, re.M))


def stated(metadata: Message) -> tuple[str, str]:
  """Returns what a package says of its licence: one line of its licence field, and its licence classifiers.

  The field is License-Expression (PEP 639) where there is one, otherwise License. Some packages put the whole text of
  their licence there: of that the first line with letters is given, and an ellipsis.
  """
  field = metadata.get('License-Expression') or metadata.get('License') or ''
  lines = [line.strip() for line in field.splitlines() if re.search('[A-Za-z]', line)]
  first = lines[0] + (' …' if len(lines) > 1 else '') if lines else _NOTHING
  classifiers = [
    c.rpartition(' :: ')[2] for c in metadata.get_all('Classifier') or [] if c.startswith(_CLASSIFIER)
  ]
  return first, '; '.join(classifiers) or _NOTHING


def table(pins: Mapping[str, str], found: Mapping[str, Message]) -> str:
  """Returns the table, one row a package of the lock.

  Args:
    pins: {package: version} of the lock.
    found: {package: metadata} of those that are installed.

  Raises:
    InputError: if a package is not installed, or in another version.
  """
  rows = []
  for name, version in pins.items():
    installed = found[name]['Version'] if name in found else 'missing'
    if installed != version:
      raise InputError(
        f'{name} is {installed}, requirements.lock says {version}; make the environment anew: remove .venv, then give '
        'make licences'
      )
    rows.append(_row([name, version, *stated(found[name])]))
  return HEADER + ''.join(rows)


def with_table(page: str, new: str) -> str:
  """Returns the page with its table exchanged.

  Raises:
    InputError: if the page has no table.
  """
  text, header, _ = page.partition(HEADER)
  if not header:
    raise InputError(f'the page has no table to exchange; one line of it must be {HEADER.splitlines()[0]!r}')
  return text + new


def _row(cells: Iterable[str]) -> str:
  return '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |\n'


def _installed(name: str) -> bool:
  return any(True for _ in importlib.metadata.Distribution.discover(name=name))


if __name__ == '__main__':
  sys.exit(main())
