"""SVG pictures that can be read on light and on dark pages: each brings its own ground, and follows the reader's colour scheme."""

import html
from collections.abc import Sequence

import numpy as np

# Okabe and Ito 2008: colours that most colour-blind readers tell apart.
COLORS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8b6bb1', '#7f7f7f')
_STYLE = """
  .ground { fill: #ffffff; stroke: #d0d7de } .line { stroke: #8c959f; fill: none } .hair { stroke: #d0d7de }
  text { fill: #1f2328; font: 14px system-ui, sans-serif } .dim { fill: #59636e } .head { font-weight: 600 } .small { font-size: 12px }
  .box { fill: #f6f8fa; stroke: #8c959f } .edge { stroke: #ffffff }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1c2128; stroke: #444c56 } .line { stroke: #909dab } .hair { stroke: #444c56 }
    text { fill: #e6edf3 } .dim { fill: #9da7b3 } .box { fill: #2d333b; stroke: #768390 } .edge { stroke: #1c2128 }
  }
"""


def picture(width: int, height: int, says: str, parts: Sequence[str]) -> str:
  """Returns a whole SVG file.

  Args:
    width: In pixels, at which text has the size of the page's.
    height: Likewise.
    says: What the picture says, for those who do not see it.
    parts: What it is made of.
  """
  ground = f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>'
  head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
  lines = [head, f'<title>{html.escape(says)}</title>', f'<style>{_STYLE}</style>', ground, *parts, '</svg>']
  return '\n'.join(lines) + '\n'


def text(x: float, y: float, words: str, kind: str = '', anchor: str = 'start') -> str:
  """Returns a line of text, whose baseline begins, ends or has its middle at a place."""
  return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(words)}</text>'


def disc(x: float, y: float, radius: float, shares: Sequence[float]) -> str:
  """Returns a disc with a slice for each share; a single share fills it."""
  whole, parts, begin = sum(shares), [], 0.0
  for k, share in enumerate(shares):
    part = share / whole if whole else 0.0
    if part > 0.999:
      parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color(k)}"/>')
    elif part > 0.001:
      parts.append(_slice(x, y, radius, begin, begin + part, color(k)))
    begin += part
  return ''.join(parts)


def _slice(x: float, y: float, radius: float, begin: float, end: float, fill: str) -> str:
  angles = 2 * np.pi * np.array([begin, end]) - np.pi / 2
  (x0, x1), (y0, y1) = x + radius * np.cos(angles), y + radius * np.sin(angles)
  large = int(end - begin > 0.5)
  return f'<path d="M{x:.1f} {y:.1f}L{x0:.1f} {y0:.1f}A{radius} {radius} 0 {large} 1 {x1:.1f} {y1:.1f}Z" fill="{fill}"/>'


def halo(points: np.ndarray, width: float, fill: str) -> str:
  """Returns a soft shape around float64[points, 2]."""
  if len(points) > 2:
    from scipy.spatial import ConvexHull

    points = points[ConvexHull(points).vertices]
  path = 'M' + 'L'.join(f'{x:.1f} {y:.1f}' for x, y in [*points, points[0]]) + 'Z'
  return f'<path d="{path}" fill="{fill}" stroke="{fill}" stroke-width="{width}" stroke-linejoin="round" opacity="0.22"/>'


def color(cluster: int) -> str:
  """Returns the colour of a cluster by its number."""
  return COLORS[cluster % len(COLORS)]
