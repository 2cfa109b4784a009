"""A small HTML builder that escapes everything that was not built by itself.

Client ids, clustering names and notes can hold any text, so escaping is the default and cannot be
forgotten: only `Markup`, which only `tag` and `raw` make, goes into a page as it is.
"""

import html
import re
from collections.abc import Iterable
from typing import Any

# Control characters and lone surrogates are no legal HTML, escaped or not.
_ILLEGAL = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]')
_VOID = frozenset({'br', 'hr', 'img', 'meta', 'col'})


class Markup(str):
  """Text that is HTML already."""

  __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
  """Returns an element.

  Args:
    name: The element's name.
    *children: Markup goes in as it is, None is left out, lists and tuples are flattened, and all else
      is escaped text.
    **attributes: Values are escaped; None leaves the attribute out; `class_` is written `class`.
  """
  written = ''.join(
    f' {key.rstrip("_").replace("_", "-")}="{html.escape(_clean(str(value)))}"'
    for key, value in attributes.items()
    if value is not None
  )
  if name in _VOID:
    return Markup(f'<{name}{written}>')
  return Markup(f'<{name}{written}>{"".join(_text(child) for child in children)}</{name}>')


def raw(text: str) -> Markup:
  """Marks text of our own (a style sheet) as HTML."""
  return Markup(text)


def table(
  header: Iterable[Any], rows: Iterable[Iterable[Any]], numeric: Iterable[int] = (), caption: Any = None
) -> Markup:
  """Returns a table.

  Args:
    header: One cell a column.
    rows: Cells, as children of `tag`.
    numeric: Positions of the columns that hold numbers; they are set right with tabular figures.
    caption: Text above the table.
  """
  right = frozenset(numeric)

  def cells(kind: str, row: Iterable[Any]) -> list[Markup]:
    scope = 'col' if kind == 'th' else None
    return [tag(kind, cell, class_='n' if i in right else None, scope=scope) for i, cell in enumerate(row)]

  return tag(
    'div',
    tag(
      'table',
      tag('caption', caption) if caption is not None else None,
      tag('thead', tag('tr', cells('th', header))),
      tag('tbody', [tag('tr', cells('td', row)) for row in rows]),
    ),
    class_='scroll',
  )


def verdict_chip(verdict: str) -> Markup:
  """Returns a verdict as a coloured chip with what it was run on behind it; the words alone suffice."""
  words, _, rest = verdict.partition(' (')
  # 'within 1 point' in another setting is no reproduction, so it stays neutral.
  look = 'good' if words in ('holds', 'reproduced') else 'bad' if words == 'fails' else 'none'
  if words.startswith('differs'):
    look = 'warn'
  return tag(
    'div', tag('span', words, class_=f'chip {look}'), tag('div', rest[:-1], class_='note') if rest else None
  )


def _text(child: Any) -> str:
  if child is None:
    return ''
  if isinstance(child, Markup):
    return child
  if isinstance(child, list | tuple):
    return ''.join(_text(part) for part in child)
  return html.escape(_clean(str(child)))


def _clean(text: str) -> str:
  return _ILLEGAL.sub('\ufffd', text)
