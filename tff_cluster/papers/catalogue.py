"""All published tables and figures that can be asked for by name."""

import difflib
import importlib
import pkgutil

from tff_cluster import papers
from tff_cluster.base.errors import InputError, argument
from tff_cluster.scorecard.published import Published


def collect() -> dict[str, Published]:
  """Returns the tables and figures of all papers that are there, by name; InputError where one is about rows that it lacks."""
  found = [module.name for module in pkgutil.iter_modules(papers.__path__) if module.ispkg]
  return {
    name: entry.checked()
    for paper in found
    for name, entry in importlib.import_module(f'{papers.__name__}.{paper}').PUBLISHED.items()
  }


PUBLISHED = collect()


def find(table: str | None, figure: str | None) -> Published:
  """Returns the table or the figure of a name.

  Raises:
    InputError: if none or both are given, or the name is unknown.
  """
  if (table is None) == (figure is None):
    raise InputError(
      f'give one of {argument("table")} and {argument("figure")}; there are {", ".join(PUBLISHED)}'
    )
  kind, name = ('table', table) if table is not None else ('figure', figure)
  assert name is not None
  if name not in PUBLISHED or (kind == 'figure') != PUBLISHED[name].is_figure:
    of_kind = [known for known, entry in PUBLISHED.items() if (kind == 'figure') == entry.is_figure]
    close = difflib.get_close_matches(name, of_kind, n=1)
    hint = f'did you mean {close[0]}?' if close else f'there are {", ".join(of_kind)}'
    if name in PUBLISHED:
      hint = f'did you mean {argument("table" if kind == "figure" else "figure", name)}?'
    raise InputError(f'{argument(kind, name)}: no such {kind}; {hint}')
  return PUBLISHED[name]
