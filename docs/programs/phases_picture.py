"""Draws docs/pictures/three_phases.svg: what happens to clients and models from Phase 1 to Phase 3."""

import pathlib

import numpy as np

from docs.programs import drawing

PICTURE = pathlib.Path(__file__).parents[1] / 'pictures/three_phases.svg'
_PANEL, _HEIGHT = 190, 300
# Where clients stand in a panel, and in which of the two clusters they are; the one in the middle is in both.
_PLACES = np.array([[28, 205], [56, 235], [78, 200], [95, 238], [118, 202], [138, 236], [162, 208]], float)
_SHARES = np.array([[1, 0], [1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1]], float)
_SAYS = (
  'Phase 1 trains one model with all clients; clients are clustered by their own weights, and clusters may overlap; Phase 2 '
  'trains a model for each cluster; Phase 3 combines the cluster models for each client and for everybody.'
)


def draw() -> str:
  """Returns the picture."""
  titles = ('Phase 1', 'Clustering', 'Phase 2', 'Phase 3')
  words = (
    ('FedAvg over', 'all clients'),
    ('clients whose weights', 'are near each other'),
    ('FedAvg in every', 'cluster on its own'),
    ('own, average, weighted', 'and blended models'),
  )
  parts = []
  for k, panel in enumerate((_phase1(), _clustering(), _phase2(), _phase3())):
    lines = [drawing.text(95, 32, titles[k], 'head', 'middle')]
    lines += [drawing.text(95, 268 + 17 * j, line, 'dim small', 'middle') for j, line in enumerate(words[k])]
    parts.append(f'<g transform="translate({10 + _PANEL * k} 0)">{"".join([*lines, *panel])}</g>')
    if k:
      x = 10 + _PANEL * k
      parts.append(f'<path class="line" stroke-width="2" d="M{x - 8} 140h14m-5 -5l5 5l-5 5"/>')
  return drawing.picture(20 + 4 * _PANEL, _HEIGHT, _SAYS, parts)


def _model(x: float, y: float, fill: str, words: str = '') -> list[str]:
  box = f'<rect x="{x - 22}" y="{y - 14}" width="44" height="28" rx="5" fill="{fill}"/>'
  return [box, drawing.text(x, y + 34, words, 'small', 'middle')] if words else [box]


def _lines(x: float, y: float, clients: np.ndarray) -> list[str]:
  return [f'<path class="line" d="M{x} {y + 14}L{a} {b - 8}"/>' for a, b in clients]


def _clients(shares: np.ndarray | None = None) -> list[str]:
  grey = '<circle cx="{}" cy="{}" r="8" fill="' + drawing.COLORS[-1] + '"/>'
  if shares is None:
    return [grey.format(x, y) for x, y in _PLACES]
  return [drawing.disc(x, y, 8, column) for (x, y), column in zip(_PLACES, shares, strict=True)]


def _phase1() -> list[str]:
  return [*_lines(95, 90, _PLACES), *_model(95, 90, drawing.COLORS[-1]), *_clients()]


def _halos() -> list[str]:
  return [drawing.halo(_PLACES[row > 0], 30, drawing.color(k)) for k, row in enumerate(_SHARES.T)]


def _clustering() -> list[str]:
  return [*_halos(), *_clients(_SHARES)]


def _phase2() -> list[str]:
  parts = []
  for k, x in enumerate((55, 135)):
    parts += [*_lines(x, 90, _PLACES[_SHARES[:, k] > 0]), *_model(x, 90, drawing.color(k))]
  return [*parts, *_clients(_SHARES)]


def _phase3() -> list[str]:
  parts = []
  for x, y, words, shares in (
    (50, 80, 'own', (1, 0)),
    (140, 80, 'blended', (4, 1)),
    (50, 170, 'average', (1, 1)),
    (140, 170, 'weighted', (3, 2)),
  ):
    first = 44 * shares[0] / sum(shares)
    parts += _model(x, y, drawing.color(0), words)
    if shares[1]:
      parts.append(
        f'<rect x="{x - 22 + first:.1f}" y="{y - 14}" width="{44 - first:.1f}" height="28" rx="5" fill="{drawing.color(1)}"/>'
      )
  return parts
