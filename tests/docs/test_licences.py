"""The list of licences is whole and of this lock; what the text above it says of copyleft follows from the list."""

import importlib.metadata
import pathlib
import re
from email.message import Message

import pytest

from docs.programs import licences
from tff_cluster.base.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / 'docs/licences.md').read_text()
GNU = r'\b[AL]?GPL|General Public License'
WEAK = r'\bMPL|Mozilla|\bEPL|Eclipse Public|\bCDDL|\bEUPL|CC-BY-SA'


def rows():
  """Returns {package: [version, field, classifiers]} of the page."""
  cells = [re.split(r'(?<!\\) ?\| ?', line)[1:-1] for line in PAGE.splitlines() if line.startswith('| ')]
  return {name: rest for name, *rest in cells[2:]}


def made_up(**fields):
  metadata = Message()
  for name, value in fields.items():
    for each in value if isinstance(value, list) else [value]:
      metadata[name.replace('_', '-')] = each
  return metadata


def test_the_page_is_what_the_program_would_write(tmp_path, capsys, monkeypatch):
  page = tmp_path / 'licences.md'
  page.write_text(PAGE.replace('| MIT |', '| none |'))
  assert page.read_text() != PAGE
  monkeypatch.setattr('sys.argv', ['licences', f'--page={page}'])
  assert licences.main() == 0
  assert page.read_text() == PAGE
  assert capsys.readouterr().out == f'{len(rows())} packages in {page}\n'
  monkeypatch.setattr('sys.argv', ['licences', f'--page={tmp_path / "other.md"}'])
  assert licences.main() == 2
  assert capsys.readouterr().err == f'--page={tmp_path / "other.md"}: there is no such file\n'


def test_the_text_names_every_package_with_copyleft():
  text = PAGE.partition('## Copyleft')[2].partition('##')[0].partition('Some wheels')[0]
  weak = {name for name, cells in rows().items() if re.search(WEAK, ' '.join(cells))}
  assert weak == set(re.findall(r'^\* `([^`]+)`', text, re.M))
  assert 'no package is under the GPL' in text
  assert not [name for name, cells in rows().items() if re.search(GNU, ' '.join(cells))]


def test_the_wheels_that_carry_parts_of_gcc_are_those_that_the_text_names():
  carrying = {
    distribution.metadata['Name']
    for distribution in importlib.metadata.distributions()
    for file in distribution.files or []
    if re.match(r'lib(gfortran|gomp|quadmath|stdc\+\+|gcc_s)\b', file.name)
  }
  text = PAGE.partition('Some wheels')[2].partition('##')[0]
  assert carrying == set(re.findall(r'`([^`]+)`', text.partition('* `grpcio`')[0]))


@pytest.mark.parametrize(
  ('fields', 'expected'),
  [
    ({'License_Expression': 'MIT OR X', 'License': 'old'}, ('MIT OR X', '–')),
    ({'License': 'Apache 2.0', 'Classifier': 'License :: OSI Approved :: Y'}, ('Apache 2.0', 'Y')),
    ({'License': '\n =====\n The Licence\n of it\n'}, ('The Licence …', '–')),
    ({'Classifier': ['License :: A', 'Topic :: B', 'License :: OSI Approved :: C']}, ('–', 'A; C')),
    ({}, ('–', '–')),
  ],
)
def test_what_is_taken_from_the_metadata(fields, expected):
  assert licences.stated(made_up(**fields)) == expected


def test_a_package_that_is_missing_or_in_another_version_is_an_error():
  found = {'one': made_up(Version='1.0', License='A|B')}
  assert licences.table({'one': '1.0'}, found) == licences.HEADER + '| one | 1.0 | A\\|B | – |\n'
  with pytest.raises(InputError, match=r'one is 1\.0, requirements\.lock says 1\.1'):
    licences.table({'one': '1.1'}, found)
  with pytest.raises(InputError, match=r'two is missing, requirements\.lock says 3'):
    licences.table({'one': '1.0', 'two': '3'}, found)
  with pytest.raises(InputError, match='no table'):
    licences.with_table('a page', licences.table({'one': '1.0'}, found))
