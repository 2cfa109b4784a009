"""Draws docs/pictures/answer.svg, what the demo answers, from the kept results of the demo."""

import pathlib

from docs.programs import drawing
from tff_cluster.studies.kept import results

_DOCS = pathlib.Path(__file__).parents[1]
PICTURE = _DOCS / 'pictures/answer.svg'
_WIDTH, _LEFT, _RIGHT, _TOP, _STEP = 560, 205, 420, 108, 44


def rows() -> list[tuple[str, float, str]]:
  """Returns (contender, mean accuracy of the clients in percent, its clusters) of each line of the kept table."""
  lines = results.read(_DOCS / 'results/data/demo').lines()
  return [
    (
      line['label'],
      round(float(line['accuracy']), 1),
      line['clusters'] + (', overlapping' if line['kind'] == 'overlapping' else ''),
    )
    for line in lines
  ]


def draw(found: list[tuple[str, float, str]]) -> str:
  """Returns the picture: a line for each contender, and how far it is from the model without clusters."""
  name, base, _ = found[0]
  says = f'Clients have {base}% without clusters; ' + ', '.join(
    f'{each} {value}%' for each, value, _ in found[1:]
  )
  parts = [
    drawing.text(20, 32, 'Does clustering help these clients?', 'head'),
    drawing.text(20, 54, 'Mean accuracy of 20 clients on their own test rows,', 'dim small'),
    drawing.text(20, 70, 'after as many rounds (make demo)', 'dim small'),
  ]
  for percent in (70, 80, 90, 100):
    parts.append(f'<path class="hair" d="M{_x(percent)} {_TOP - 20}V{_TOP + _STEP * len(found) - 22}"/>')
    parts.append(
      drawing.text(_x(percent), _TOP + _STEP * len(found) - 6, f'{percent}%', 'dim small', 'middle')
    )
  for k, (name, value, clusters) in enumerate(found):
    y, fill = _TOP + _STEP * k, drawing.color(0) if k else drawing.COLORS[-1]
    parts.append(drawing.text(20, y, name if k else 'without clusters'))
    parts.append(
      drawing.text(20, y + 16, 'FedAvg, one model' if not k else f'clusters: {clusters}', 'dim small')
    )
    if k:
      parts.append(f'<path d="M{_x(base)} {y}H{_x(value)}" stroke="{fill}" stroke-width="6" opacity="0.55"/>')
    parts.append(f'<circle cx="{_x(value)}" cy="{y}" r="7" fill="{fill}"/>')
    parts.append(drawing.text(_x(value) + 14, y + 5, f'{value}%', 'head' if k else ''))
  return drawing.picture(_WIDTH, _TOP + _STEP * len(found) + 14, says, parts)


def _x(percent: float) -> float:
  return round(_LEFT + (percent - 70) / 30 * (_RIGHT - _LEFT), 1)
