"""The colours of clusters and planted groups on the two grounds of an atlas, as names of its style sheet."""

from collections.abc import Sequence

from tff_cluster.report import pages

# The page of the dark scheme, see atlas.css.
DARK = '#16191d'
# What WCAG 2.1 (success criterion 1.4.11) asks of graphical objects.
LEAST_CONTRAST = 3.0
_STEPS = 100


def style(palette: Sequence[str]) -> str:
  """Returns a style sheet that names the colours of a palette by their places; on the dark page they are as bright as they must be.

  Args:
    palette: '#RRGGBB' each.
  """
  return pages.render('tones.css', light=palette, dark=[brightened(colour) for colour in palette])


def brightened(colour: str) -> str:
  """Returns a colour mixed with as little white as gives it LEAST_CONTRAST with DARK."""
  mixed = (_with_white(colour, step / _STEPS) for step in range(_STEPS + 1))
  return next(each for each in mixed if contrast(each, DARK) >= LEAST_CONTRAST)


def contrast(one: str, other: str) -> float:
  """Returns the contrast ratio of two colours, from 1 to 21 (WCAG 2.1)."""
  low, high = sorted((_luminance(one), _luminance(other)))
  return (high + 0.05) / (low + 0.05)


def _channels(colour: str) -> list[int]:
  return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]


def _with_white(colour: str, share: float) -> str:
  return '#' + ''.join(f'{round(255 * share + (1 - share) * value):02x}' for value in _channels(colour))


def _luminance(colour: str) -> float:
  parts = [value / 255 for value in _channels(colour)]
  linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
