"""A picture of differences with their intervals, in groups, as plain SVG."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence

_LINE, _LABEL, _PLOT, _RIGHT = 22, 230, 420, 20
_COLOURS = ('#0072b2', '#e69f00', '#009e73', '#cc79a7')
# Marks of an axis are 1, 2 or 5 times a power of ten apart, and at most so many.
_MOST_MARKS = 7


def draw(lines: Sequence[Mapping[str, str]], group: str, kind: str, axis: str) -> str:
  """Returns a picture with a group of marks for each text of one column, and a colour for each of another one.

  Args:
    lines: The columns difference, low and high, in points, and these two; low and high may be empty.
    group, kind: Names of the columns.
    axis: What the differences are.
  """
  groups, kinds = ([*dict.fromkeys(line[key] for line in lines)] for key in (group, kind))
  colours = dict(zip(kinds, _COLOURS, strict=False))
  values = [float(line[key]) for line in lines for key in ('difference', 'low', 'high') if line[key]]
  step = _step(max(*values, 0.0) - min(*values, 0.0))
  first, last = math.floor(min(*values, 0.0) / step), math.ceil(max(*values, 0.0) / step)
  last = max(last, first + 1)  # All may be 0.

  def x(value: float) -> float:
    return round(_LABEL + _PLOT * (value / step - first) / (last - first), 1)

  bottom = _LINE * (len(lines) + len(groups)) + 10
  width, height = _LABEL + _PLOT + _RIGHT, bottom + 70
  parts = [
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
    '<rect width="100%" height="100%" fill="#ffffff"/>',
  ]
  for mark in range(first, last + 1):
    stroke = '#000000' if mark == 0 else '#d9d9d9'
    parts.append(f'<path d="M{x(mark * step)} 6V{bottom}" stroke="{stroke}"/>')
    parts.append(_text(x(mark * step), bottom + 16, f'{mark * step:g}'.replace('-', '−'), 'middle'))
  parts.append(_text(_LABEL + _PLOT / 2, bottom + 36, axis, 'middle'))
  y = 10
  for name in groups:
    own = [line for line in lines if line[group] == name]
    parts.append(_text(_LABEL - 12, y + _LINE * len(own) / 2 + 4, name, 'end'))
    for line in own:
      ends = [x(float(line[key])) for key in ('low', 'high') if line[key]]
      parts += _mark(x(float(line['difference'])), ends, y + _LINE / 2, colours[line[kind]])
      y += _LINE
    y += _LINE
  for i, (name, colour) in enumerate(colours.items()):
    parts.append(f'<circle cx="{_LABEL + 150 * i}" cy="{bottom + 54}" r="5" fill="{colour}"/>')
    parts.append(_text(_LABEL + 150 * i + 12, bottom + 58, name, 'start'))
  return '\n'.join([*parts, '</svg>', ''])


def _mark(x: float, ends: Sequence[float], y: float, colour: str) -> Iterator[str]:
  if ends:
    yield f'<path d="M{ends[0]} {y:g}H{ends[1]}" stroke="{colour}" stroke-width="2"/>'
  yield f'<circle cx="{x}" cy="{y:g}" r="5" fill="{colour}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
  return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{html.escape(words)}</text>'


def _step(span: float) -> float:
  """Returns how far apart the marks of an axis are that spans so much."""
  power = 10.0 ** math.floor(math.log10(span or 1.0) - 1)
  return next(
    power * factor for factor in (1, 2, 5, 10, 20, 50, 100) if span / (power * factor) <= _MOST_MARKS
  )
