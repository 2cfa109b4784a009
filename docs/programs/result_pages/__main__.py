"""Writes the pages of docs/results/ from their templates and kept results, or checks them.

  python -m docs.programs.result_pages
  python -m docs.programs.result_pages --check

`make docs` and `make docs-check` are these. The check fails, with a line each, on a page that is not what its files give, on a
page or picture that no template makes, on a result that is typed into prose (docs/programs/result_pages/prose.py has the rule) and
on an opening of more than three sentences or without its one picture. It names kept results that are stale, which pages show as
such.
"""

import argparse
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping

from docs.programs.result_pages import pages, prose
from tff_cluster.base.environment import ENGINE
from tff_cluster.base.errors import Fault
from tff_cluster.studies.kept import results

FOLDER = pathlib.Path(__file__).parents[2] / 'results'
MOST_SENTENCES = 3
# What ends no sentence.
_DOTS = re.compile(r'\bet al\.|\bvs\.|\be\.g\.|\d\.\d|!\[[^]]*\]\([^)]*\)')


def main() -> int:
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
  )
  parser.add_argument(
    '--check', action='store_true', help='write nothing; fail where a page is not as it should be'
  )
  parser.add_argument(
    '--folder', type=pathlib.Path, default=FOLDER, help='of data/, templates/ and the pages'
  )
  flags = parser.parse_args()
  try:
    kept = results.read_all(flags.folder / 'data')
    made = pages.render(kept, flags.folder / 'templates')
    faults = list(check(flags.folder, made)) if flags.check else []
  except Fault as error:
    print(error, file=sys.stderr)
    return error.exit_code
  for name, each in kept.items():
    if each.stale:
      print(f'stale: {name} (engine {each.provenance.engine}, today {ENGINE})')
  if not flags.check:
    for name, text in made.items():
      (flags.folder / name).write_text(text)
    print(f'{len(made)} files in {flags.folder}')
  for fault in faults:
    print(fault, file=sys.stderr)
  return 1 if faults else 0


def check(folder: pathlib.Path, made: Mapping[str, str]) -> Iterator[str]:
  """Yields a line for each fault of the pages in a folder.

  Args:
    folder: Of the pages, with templates/.
    made: What they should be, by file name.
  """
  for name, text in made.items():
    path = folder / name
    if not path.exists() or path.read_text() != text:
      yield f'{path} is not what its template and kept files give; run make docs'
    if path.suffix == '.md':
      yield from _opening(path, pages.opening(text))
  for path in sorted(folder.iterdir()):
    if path.is_file() and path.name not in made:
      yield f'{path} is made by no template'
  for path in sorted((folder / 'templates').glob('*.jinja')):
    for line, found in prose.typed_results(path.read_text()):
      yield f'{path}:{line}: {found} is typed; write an expression over a kept file, or published(...)'


def _opening(path: pathlib.Path, text: str) -> Iterator[str]:
  pictures = text.count('![')
  sentences = len(re.findall(r'[.?!](?=\s|$)', _DOTS.sub('', text)))
  if pictures != 1:
    yield f'{path}: its opening has {pictures} pictures, expected one'
  if not 1 <= sentences <= MOST_SENTENCES:
    yield f'{path}: its opening has {sentences} sentences, expected 1 to {MOST_SENTENCES}'


if __name__ == '__main__':
  sys.exit(main())
