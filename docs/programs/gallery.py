"""Draws each clustering method on one planted data set, and writes docs/gallery.md. Nothing is trained, and TensorFlow is not needed.

The clients are points in a plane, three groups of seven and one client between any two groups. What a client sends after local work is
its point, so methods that cluster once are handed these vectors. For methods that alternate, a client's loss is half the squared
distance of a model to its point (tests/clustering/methods/fake_federation.py): the method's own `step` is run on them for 15 rounds.
"""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from docs.programs import drawing
from tests.clustering.methods import fake_federation
from tff_cluster.base.words import plural
from tff_cluster.clustering import methods, recovery
from tff_cluster.clustering.method import Evidence, Method
from tff_cluster.clustering.signatures import Signatures

DOCS = pathlib.Path(__file__).parents[1]
ROUNDS = 15
# What a method is asked for, where its defaults would not do for three groups.
_ASKED: Mapping[str, Mapping[str, Any]] = {
  'dynamic_distance': {'distance_threshold': '0.7'},
  'hierarchical': {'distance_threshold': '2.0'},
  'pacfl': {'num_clusters': 3, 'num_vectors': 2},
}
_REMARKS = {
  'bipartition': 'The picture shows the first split. The halves go on training and are tested again; only training says whether they split '
  'once more.',
  'pacfl': 'It sees no vectors but the rows of the clients: those of a group lie in a plane of its own in six dimensions, and those of a '
  'client between two groups in both.',
  'planted': 'This is the truth, and no method.',
}
_SIDE, _UNIT, _MIDDLE = 300, 84, 188


@dataclasses.dataclass(frozen=True, eq=False)
class Clients:
  """The planted clients.

  Attributes:
    points: float64[clients, 2].
    shares: float64[groups, clients], columns sum to 1.
    rows: float64[rows, 6] of each, with one label.
  """

  points: np.ndarray
  shares: np.ndarray
  rows: tuple[np.ndarray, ...]

  @property
  def lone(self) -> np.ndarray:
    """bool[clients], those of one group."""
    return self.shares.max(axis=0) == 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
  """What a method made of them.

  Attributes:
    membership: float64[clusters, clients], columns sum to 1.
    ways: float64[rounds, models, 2] of the models of a method that alternates; None for others.
  """

  membership: np.ndarray
  ways: np.ndarray | None = None


def planted() -> Clients:
  """Returns three groups of seven clients, and a client between any two groups."""
  rng = np.random.default_rng(3)
  angles = np.pi / 2 + 2 * np.pi / 3 * np.arange(3)
  centers = 1.15 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
  shares = np.concatenate([np.repeat(np.eye(3), 7, axis=1), (1 - np.eye(3)) / 2], axis=1)
  points = shares.T @ centers + 0.15 * rng.normal(size=(24, 2))
  planes = [np.where(np.repeat(share > 0, 2), 1.0, 0.02) for share in shares.T]
  return Clients(points, shares, tuple(plane * rng.normal(size=(40, 6)) for plane in planes))


def _asked(method: Method[Any]) -> Mapping[str, Any]:
  number = {'num_clusters': 3} if 'num_clusters' in method.fields() else {}
  return _ASKED.get(method.name, number)


def run(method: Method[Any], clients: Clients) -> Found:
  """Returns what a method makes of the clients."""
  options = method.read(_asked(method))
  if method.alternates:
    return _alternated(method, options, clients)
  signatures = Signatures.numbered(clients.points)
  labels = np.zeros(40, np.int64)
  rows = {name: (x, labels) for name, x in zip(signatures.client_ids, clients.rows, strict=True)}
  truths = {'group': clients.shares}
  evidence = Evidence(signatures, 0, truths, signatures.client_ids, rows).seen_by(method)
  return Found(method.cluster(options, evidence).assignment.own)


def _alternated(method: Any, options: Any, clients: Clients) -> Found:
  """Runs the method's rounds from three random models."""
  features = np.zeros((24, fake_federation.FEATURES))
  features[:, :2] = clients.points
  starts = np.zeros((3, fake_federation.FEATURES))
  starts[:, :2] = 0.3 * np.random.default_rng(0).normal(size=(3, 2))
  federation, state = fake_federation.Fake(features), fake_federation.state_of(starts, clients=24)
  ways = [starts[:, :2]]
  for number in range(1, ROUNDS + 1):
    state = method.step(options, federation, state, number)
    ways.append(np.stack([fake_federation.vector_of(weights)[:2] for weights in state.weights]))
  return Found(state.own, np.stack(ways))


def draw(title: str, clients: Clients, found: Found) -> str:
  """Returns the picture: a disc a client, coloured by cluster; shapes around clusters; and the ways of models."""
  places = np.stack(
    [_SIDE / 2 + _UNIT * clients.points[:, 0], _MIDDLE - _UNIT * clients.points[:, 1]], axis=1
  )
  order = np.argsort([row.argmax() for row in found.membership > 0], kind='stable')
  membership = found.membership[order]
  parts = [drawing.text(14, 24, title, 'head')]
  soft = (membership.max(axis=0) < 0.999).mean() > 0.5
  members = membership >= membership.max(axis=0) - 1e-9 if soft else membership > 0
  parts += [drawing.halo(places[row], 26, drawing.color(k)) for k, row in enumerate(members) if row.any()]
  if found.ways is not None:
    parts += [_way(found.ways[:, model]) for model in order]
  parts += [drawing.disc(x, y, 6, column) for (x, y), column in zip(places, membership.T, strict=True)]
  clusters = int(members.any(axis=1).sum())
  words = plural(clusters, 'cluster')
  parts.append(drawing.text(_SIDE - 14, 24, words, 'dim small', 'end'))
  return drawing.picture(_SIDE, _SIDE, f'{title} finds {words} among 24 clients', parts)


def _way(places: np.ndarray) -> str:
  """Returns the line of a model over the rounds, with a cross at its end."""
  x, y = _SIDE / 2 + _UNIT * places[:, 0], _MIDDLE - _UNIT * places[:, 1]
  line = 'L'.join(f'{a:.1f} {b:.1f}' for a, b in zip(x, y, strict=True))
  cross = f'M{x[-1] - 5:.1f} {y[-1] - 5:.1f}l10 10m0 -10l-10 10'
  return (
    f'<path class="line" stroke-width="1.5" d="M{line}"/><path class="line" stroke-width="2.5" d="{cross}"/>'
  )


def score(method: Method[Any], clients: Clients, found: Found) -> str:
  """Returns how well the clients of one group are told apart, by the score that goes with the kind of clusters."""
  truth, shares = clients.shares[:, clients.lone], found.membership[:, clients.lone]
  members = shares > 0
  if not method.overlaps:
    return f'ARI {recovery.ari(truth.argmax(axis=0), shares.argmax(axis=0)):.2f}'
  if np.allclose(shares, members / members.sum(axis=0)):
    return f'Omega {recovery.omega_index(members, truth > 0):.2f}'
  return f'share error {recovery.share_error(shares, truth):.2f}'


_HEAD = """# Gallery

Each clustering method meets the same 24 planted clients here: three groups of seven, and one client between any two groups. A disc
is a client, its colour the cluster that it is in, its slices the shares of one in several clusters; a soft shape lies around each cluster. Clients
are points in a plane, so that everything can be seen; models have thousands of dimensions, and what is easy here is not easy there. `make docs` draws
the pictures anew (`docs/programs/gallery.py`), and [Clustering methods](methods.md) says what each method is and costs. Where the 21
clients of one group are told apart exactly, ARI is 1, so is the Omega index of methods whose clusters overlap, and the share error of those with soft
memberships is 0.

"""
_ONCE = """## Once, after Phase 1

Clients send a vector each, which is their point.

"""
_IN_TURN = f"""## In turn with training

A client's loss is half the squared distance of a model to its point, and its local work goes two fifths of the way. Three random models start near the
middle; the lines are their ways over {ROUNDS} rounds of the method's own step, and the crosses where they end. No network is trained, so this
shows what a method does, and not how well it does on data; another start can end in other clusters.

"""


def section(method: Method[Any], clients: Clients, found: Found) -> str:
  """Returns a method's part of the page."""
  asked = ','.join([method.name, *(f'{key}={value}' for key, value in _asked(method).items())])
  remark = f' {_REMARKS[method.name]}' if method.name in _REMARKS else ''
  picture = f'![{method.title} on the planted clients](gallery/{method.name}.svg)'
  about = (type(method).__doc__ or '').partition('\n')[0].partition('; see `')[0].partition(': `')[0].rstrip(
    '.'
  ) + '.'
  told = f'{about} `--clustering={asked}`: {score(method, clients, found)}.{remark}'
  return f'<div markdown>\n\n### {method.name}\n\n{picture}\n\n{told}\n\n</div>\n\n'


def _grid(words: str, sections: str) -> str:
  """Returns a part of the page, whose sections stand side by side where there is room."""
  return f'{words}<div class="grid" markdown>\n\n{sections}</div>\n\n'


def write(folder: pathlib.Path = DOCS) -> list[pathlib.Path]:
  """Writes the pictures and the page, and returns their paths."""
  clients, written = planted(), []
  pages = {False: '', True: ''}
  (folder / 'gallery').mkdir(exist_ok=True)
  for name, method in methods.METHODS.items():
    found = run(method, clients)
    pages[method.alternates] += section(method, clients, found)
    written.append(folder / 'gallery' / f'{name}.svg')
    written[-1].write_text(draw(method.title, clients, found))
  written.append(folder / 'gallery.md')
  written[-1].write_text((_HEAD + _grid(_ONCE, pages[False]) + _grid(_IN_TURN, pages[True])).rstrip() + '\n')
  return written
