"""The look that all figures share, and how they are saved. Matplotlib is imported when a figure is drawn."""

import contextlib
import io
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tff_cluster.base import words
from tff_cluster.scorecard import identical_clusterings

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_Drawing = TypeVar('_Drawing', bound='Callable[..., Figure]')
# Name, section, title and caption of a picture (report/pictures.py), and what is drawn.
Drawn = tuple[str, str, str, str, 'Figure']

# Okabe & Ito (2008) without its yellow, which is too pale for points on white; then Paul Tol's "muted".
_FEW = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#4D4D4D')
_MANY = (
    '#332288', '#88CCEE', '#117733', '#DDCC77', '#CC6677', '#882255', '#AA4499', '#44AA99', '#999933', '#4D4D4D',
)  # fmt: skip
MARKERS = ('o', 's', '^', 'D', 'v', 'P', 'X', '<', '>', 'p')
INK, GREY, PALE = '#222222', '#767676', '#D9D9D9'
MOST_COLOURS = len(_MANY)
# Of clusters: beyond, no line parts them in a matrix.
MOST_PARTED = 40
SEQUENTIAL = 'cividis'
# Rows or columns of a matrix that a picture shows one by one; no more than that can be seen.
MOST_PIXELS = 500

_STYLE: Any = {
    'font.family': 'DejaVu Sans', 'font.size': 10, 'axes.titlesize': 11, 'axes.titleweight': 'bold',
    'axes.titlelocation': 'left', 'axes.labelsize': 10, 'xtick.labelsize': 9, 'ytick.labelsize': 9,
    'legend.fontsize': 9, 'legend.frameon': False, 'figure.facecolor': 'white', 'axes.facecolor': 'white',
    'savefig.facecolor': 'white', 'axes.edgecolor': GREY, 'axes.labelcolor': INK, 'text.color': INK,
    'xtick.color': INK, 'ytick.color': INK, 'axes.spines.top': False, 'axes.spines.right': False,
    'axes.grid': False, 'grid.color': '#E6E6E6', 'grid.linewidth': 0.8, 'axes.axisbelow': True,
    # Client ids are anybody's text: a dollar sign in one must not start a formula.
    'text.parse_math': False, 'text.usetex': False, 'svg.hashsalt': 'tff_cluster', 'svg.fonttype': 'path',
}  # fmt: skip
_DPI = 150


def styled(draw: _Drawing) -> _Drawing:
  """Makes a drawing function draw in the style of the report, whatever the user's own settings are."""

  return _look()(draw)


@contextlib.contextmanager
def _look() -> Iterator[None]:
  import matplotlib

  with matplotlib.rc_context(), warnings.catch_warnings():
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(_STYLE)
    warnings.filterwarnings('ignore', message='Glyph .* missing from')
    yield


def new_figure(width: float, height: float) -> 'Figure':
  """Returns an empty figure, inches, that lays itself out and belongs to no global state."""
  from matplotlib.figure import Figure

  return Figure(figsize=(width, height), layout='constrained', dpi=_DPI)


def render(figure: 'Figure') -> tuple[bytes, bytes]:
  """Returns the figure as SVG and as PNG (150 dots an inch); equal figures give equal bytes."""
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.backends.backend_svg import FigureCanvasSVG

  svg, png = io.BytesIO(), io.BytesIO()
  with _look():
    # Not by savefig, which draws everything twice. The first drawing finds the layout, and both files get it.
    FigureCanvasAgg(figure).print_png(png, metadata={'Software': None})
    figure.set_layout_engine('none')
    FigureCanvasSVG(figure).print_svg(svg, metadata={'Date': None, 'Creator': None})
  return svg.getvalue(), png.getvalue()


def has_strip(groups: np.ndarray | None) -> bool:
  """Tells whether the planted groups of int64[clients] are drawn as a strip beside a matrix: where there are colours for all."""
  return groups is not None and len(np.unique(groups)) <= MOST_COLOURS


def draw_strip(axes: Any, groups: np.ndarray, kinds: Sequence[int], above: float, height: float) -> None:
  """Draws the planted groups of clients as a strip above a matrix whose columns are these clients.

  Args:
    axes: Of the matrix.
    groups: int64[clients], the group of each column.
    kinds: All groups, ascending.
    above, height: Where the strip begins and how high it is, in parts of the axes.
  """
  from matplotlib.colors import ListedColormap

  strip = axes.inset_axes((0.0, above, 1.0, height))
  strip.imshow(
    np.searchsorted(kinds, groups)[None, :], cmap=ListedColormap(colours(len(kinds))), vmin=0, vmax=max(len(kinds) - 1, 1),
    aspect='auto', interpolation='nearest',
  )  # fmt: skip
  strip.set_axis_off()


def group_entries(kinds: Sequence[int]) -> list[Any]:
  """Returns the entries of a legend for all planted groups, in the colours of `draw_strip`."""
  from matplotlib.patches import Patch

  tones = colours(len(kinds))
  return [Patch(color=tone, label=f'planted group {kind}') for tone, kind in zip(tones, kinds, strict=True)]


def colours(count: int) -> list[str]:
  """Returns colours for `count` kinds; beyond MOST_COLOURS they repeat, so callers group the rest."""
  palette = _FEW if count <= len(_FEW) else _MANY
  return [palette[i % len(palette)] for i in range(count)]


def short(text: Any, length: int = 14) -> str:
  """Returns text that fits beside an axis: printable, at most `length` characters, its end kept."""
  plain = ''.join(c if c.isprintable() else '?' for c in str(text))
  return (
    plain if len(plain) <= length else f'{plain[: (length - 1) // 2]}…{plain[len(plain) - length // 2 :]}'
  )


def wrapped(name: str, length: int = 38) -> str:
  """Returns a name that may be several joined ones (scorecard.identical_clusterings) on one line or two."""
  labels = [short(label, length - 4) for label in name.split(identical_clusterings.JOINT)]
  text = identical_clusterings.joined(labels)
  return '\n'.join(textwrap.wrap(text, length, max_lines=2, placeholder=' …', break_on_hyphens=False))


def client(client_id: str, length: int = 14) -> str:
  """Returns a client's id as it stands beside an axis: shortened, and in quotes where words.client has them."""
  shown = short(client_id, length)
  return shown if words.client(client_id) == client_id else f'“{shown}”'


def block(count: int) -> int:
  """Returns how many of `count` rows or columns of a picture share a pixel, 1 where there is room for all."""
  return -(-count // MOST_PIXELS)


def draw_matrix(axes: Any, values: np.ndarray, pool: 'Callable[..., np.ndarray]', **look: Any) -> Any:
  """Draws a matrix, one unit of the axes an entry, and returns the image.

  Args:
    axes: Where.
    values: float[rows, columns].
    pool: How entries that share a pixel become one, such as np.nanmean; called with an axis. See `block`.
    **look: Of imshow.
  """
  rows, columns = values.shape
  pixels = _pooled(_pooled(values, pool).T, pool).T
  right, bottom = pixels.shape[1] * block(columns) - 0.5, pixels.shape[0] * block(rows) - 0.5
  image = axes.imshow(pixels, interpolation='nearest', extent=(-0.5, right, bottom, -0.5), **look)
  axes.set_xlim(-0.5, columns - 0.5)
  axes.set_ylim(rows - 0.5, -0.5)
  return image


def _pooled(values: np.ndarray, pool: 'Callable[..., np.ndarray]') -> np.ndarray:
  size = block(len(values))
  if size == 1:
    return values
  with warnings.catch_warnings():
    warnings.filterwarnings('ignore', message='Mean of empty slice')
    return np.stack([pool(values[i : i + size], axis=0) for i in range(0, len(values), size)])


def labels_of(membership: np.ndarray) -> np.ndarray | None:
  """Returns int64[clients], each client's only group, or None where a client has several.

  Args:
    membership: float[groups, clients].
  """
  present = np.asarray(membership) > 0
  return np.argmax(present, axis=0) if (present.sum(axis=0) == 1).all() else None
