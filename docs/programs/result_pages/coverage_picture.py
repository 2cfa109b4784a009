"""A picture of coverage: a bar a table and scale, as plain SVG, so that a page is the same wherever it is made."""

from collections.abc import Sequence

from tff_cluster.studies.kept.coverage import Covered

_LINE, _LABEL, _BAR = 20, 270, 400
_COLOURS = {'run': '#0072b2', 'stale': '#e69f00', 'missing': '#d9d9d9'}
_WORDS = {'run': 'run with today’s engine', 'stale': 'run with an older engine: stale', 'missing': 'not run'}


def draw(covered: Sequence[Covered]) -> str:
  """Returns the picture of tables and figures that have rows; toy problems have none."""
  shown = [each for each in covered if each.rows]
  height = _LINE * (len(shown) + 2)
  parts = [
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LABEL + _BAR + 90} {height}" font-family="sans-serif" font-size="12">',
    '<rect width="100%" height="100%" fill="#ffffff"/>',
  ]
  for i, each in enumerate(shown):
    parts += _bar(each, _LINE * i)
  for i, (kind, words) in enumerate(_WORDS.items()):
    x, y = 10 + 250 * i, _LINE * (len(shown) + 1)
    parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{_COLOURS[kind]}"/>')
    parts.append(f'<text x="{x + 18}" y="{y + 11}">{words}</text>')
  return '\n'.join([*parts, '</svg>', ''])


def _bar(each: Covered, y: int) -> list[str]:
  stale = len(each.stale)
  sizes = {'run': len(each.seeds) - stale, 'stale': stale, 'missing': each.rows - len(each.seeds)}
  parts = [
    f'<text x="{_LABEL - 8}" y="{y + 15}" text-anchor="end">{each.published.name}, {each.scale}</text>'
  ]
  x = float(_LABEL)
  for kind, size in sizes.items():
    width = round(_BAR * size / each.rows, 2)
    if size:
      parts.append(
        f'<rect x="{x:g}" y="{y + 3}" width="{width:g}" height="{_LINE - 6}" fill="{_COLOURS[kind]}"/>'
      )
    x += width
  parts.append(f'<text x="{_LABEL + _BAR + 8}" y="{y + 15}">{len(each.seeds)} of {each.rows}</text>')
  return parts
