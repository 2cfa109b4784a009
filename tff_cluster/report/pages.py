"""Pages from templates: code makes plain data, a macro of a template draws it, and all that is put in is escaped.

Client ids, clustering names and notes can hold any text, so escaping is the default and cannot be forgotten.
"""

import base64
import dataclasses
import functools
import hashlib
import importlib.resources
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import jinja2
import markupsafe

from tff_cluster.base import words
from tff_cluster.report.latex_escapes import ESCAPES, LONGEST

_REPORT = 'tff_cluster.report'
# Control characters and lone surrogates are no legal HTML, escaped or not.
_ILLEGAL = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]')


@dataclasses.dataclass(frozen=True)
class Cell:
  """A cell of a table that is more than text.

  Attributes:
    words: What it says.
    notes: Small lines below; those that are empty are left out.
    look: Classes of the words ('chip good' for instance), empty for none.
    note_look: Classes of the notes.
    element: Of words with a look.
  """

  words: Any
  notes: Sequence[str | None] = ()
  look: str = ''
  note_look: str = 'note'
  element: str = 'span'


@dataclasses.dataclass(frozen=True)
class Table:
  """A table.

  Attributes:
    header: One text a column.
    rows: Cells: texts, numbers or `Cell`; None is an empty one.
    numeric: Positions of the columns that hold numbers; they are set right with tabular figures.
    caption: Text above the table, or None.
  """

  header: Sequence[str]
  rows: Sequence[Sequence[Any]]
  numeric: Collection[int] = ()
  caption: str | None = None


@dataclasses.dataclass(frozen=True)
class Section:
  """A section of a page.

  Attributes:
    heading: Above it.
    template: The file whose macro draws it.
    macro: The name of the macro.
    data: The macro's arguments by name.
  """

  heading: str
  template: str
  macro: str
  data: Mapping[str, Any]


def verdict_cell(verdict: str) -> Cell:
  """Returns a verdict as a coloured chip with what it was run on below it; the words alone suffice."""
  told, _, rest = verdict.partition(' (')
  # 'within 1 point' in another setting is no reproduction, so it stays neutral.
  look = (
    'good' if told in ('holds', 'reproduced', 'helps') else 'bad' if told in ('fails', 'harms') else 'none'
  )
  if told.startswith('differs'):
    look = 'warn'
  return Cell(told, (rest[:-1],), f'chip {look}')


def page(title: str, subtitle: str, sections: Iterable[Section | None], package: str = _REPORT) -> str:
  """Returns a page: the answer, which is the first section, the contents, and all other sections.

  Its script, which copies tables, and its style are texts of our own; the page's policy lets nothing else run or load.

  Args:
    title, subtitle: Above all.
    sections: At least one; None is left out.
    package: Whose templates are used, beside those of the report.
  """
  parts = [(section.heading, draw(section, package)) for section in sections if section]
  style, script = _style(), _script()
  return render(
    'page.html', package, title=title, subtitle=subtitle, parts=parts, style=style, script=script, policy=policy(style, script),
  )  # fmt: skip


def policy(style: str, script: str) -> str:
  """Returns the Content-Security-Policy of a page with this style and this script: no other is taken, whatever a client is called."""
  return f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'"


def _digest(text: str) -> str:
  return f'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")}'


def _style() -> str:
  return _source('style.css')


def _script() -> str:
  # In JSON `<` would be the only sign that could end the element.
  escapes = json.dumps(ESCAPES).replace('<', '\\u003c')
  return f"'use strict';\nconst ESCAPES = {escapes}, LONGEST = {LONGEST};\n{_source('copy.js')}"


def _source(name: str) -> str:
  return importlib.resources.files(_REPORT).joinpath('templates', name).read_text('utf-8')


def draw(section: Section, package: str = _REPORT) -> markupsafe.Markup:
  """Returns what stands below the heading of a section."""
  macros = _environment(package).get_template(section.template).module
  return getattr(macros, section.macro)(**section.data)


def render(template: str, package: str = _REPORT, **data: Any) -> str:
  """Returns a whole page from a template; what is no legal HTML is replaced."""
  return _ILLEGAL.sub('\ufffd', _environment(package).get_template(template).render(data))


@functools.cache
def _environment(package: str) -> jinja2.Environment:
  environment = jinja2.Environment(
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in dict.fromkeys((package, _REPORT))]),
  )
  environment.globals.update(plural=words.plural, percent=words.percent)
  environment.filters['base64'] = lambda content: base64.b64encode(content).decode('ascii')
  return environment
