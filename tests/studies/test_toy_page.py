"""The page of CFL's toy problems: what it shows, and claims that fail when they are fed with wrong results."""

import dataclasses
import json

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.made_up.written_page import WrittenPage
from tff_cluster.papers import sattler2019
from tff_cluster.papers.sattler2019.toys import clients as toy_clients
from tff_cluster.papers.sattler2019.toys import risks as toy_problems
from tff_cluster.papers.sattler2019.toys.results import ClientsToy, RisksToy
from tff_cluster.report.figures import base
from tff_cluster.scorecard.published import PAPER
from tff_cluster.studies.reproduction import page as page_lib
from tff_cluster.studies.reproduction import toy_figures as figures

CLAIMS = {name: sattler2019.PUBLISHED[name].claims for name in ('cfl/figure1', 'cfl/figure2')}
_FACTS = {'command': 'python -m phases.reproduce', 'seed': '0'}


def _clients_toy(name='xor', **changes):
  """Two clients of either cluster, exactly as the paper has it."""
  richer = name.endswith('richer')
  up = np.array([0.0, 0.5, 0.0, 0.0][: 4 if richer else 3])
  congruent = name == 'xor_richer'
  axis = np.linspace(-2.0, 2.0, 21)
  x, y = np.meshgrid(axis, axis)
  fields = {
      'name': name, 'points': np.arange(24.0).reshape(4, 3, 2) / 12 - 1, 'labels': np.arange(12).reshape(4, 3) % 2,
      'planted': np.array([0, 1, 0, 1]), 'features': ('x₁', 'x₂', 'x₁x₂', '1') if richer else ('x₁', 'x₂', '1'),
      'weights': up * 0, 'gradients': np.array([up, -up, up, -up]) * (0.01 if congruent else 1),
      'similarity': np.array([[1.0, -1, 1, -1], [-1, 1, -1, 1]] * 2),
      'groups': np.zeros(4, int) if congruent else np.array([0, 1, 0, 1]),
      'group_weights': np.array([up] if congruent else [up, -up]), 'group_gradients': np.full((4, len(up)), 1e-4),
      'accuracy': 1.0 if congruent else 0.5, 'alone': np.ones(2), 'client_accuracy': np.ones(4),
      'ceiling': 1.0 if name.startswith('xor') else 0.5, 'rounds': 12, 'eps_1': 1e-3, 'eps_2': 1e-2, 'axis': axis,
      'scores': np.stack([x * y] if congruent else [x + y - 0.5, y, -y]),
  }  # fmt: skip
  return ClientsToy(**(fields | changes))


_CLIENT_TOYS = tuple(_clients_toy(p + r) for r in ('', '_richer') for p in ('xor', 'conditionals'))


def _risks_toy(name='incongruent', **changes):
  """Three rounds by hand: clients at weights ¾ and ¼, the second's gradient three times the first's at the end."""
  end = [[1.0, 0.0], [-3.0, 0.0]] if name == 'incongruent' else [[1e-5, 0.0], [0.0, 1e-5]]
  axis = np.linspace(-2.0, 2.0, 41)
  x, y = np.meshgrid(axis, axis)
  flat = 0.0 if name == 'incongruent' else 1.3
  risks = [0.5 * np.maximum(0.0, np.hypot(x - c, y - 0.03) - flat) ** 2 for c in (-1.03, 1.03)]
  fields = {
      'name': name, 'formulas': ('R₁ in words', 'R₂ in words'), 'shares': np.array([0.75, 0.25]),
      'path': np.array([[-1.5, -1.5], [-1.0, -0.5], [0.0, 0.0]]),
      'gradients': np.array([[[0.0, -2.0], [-1.0, -1.0]], [[0.0, -1.0], [-2.0, -0.5]], end]),
      'eps_1': 1e-4, 'eps_2': 1e-2, 'axis': axis, 'risks': np.stack(risks),
  }  # fmt: skip
  return RisksToy(**(fields | changes))


_RISK_TOYS = (_risks_toy('incongruent'), _risks_toy('congruent'))
_TOYS = {'cfl/figure1': _CLIENT_TOYS, 'cfl/figure2': _RISK_TOYS}


# --- Claims ---


def _verdicts(name, toys):
  by_name = {toy.name: toy for toy in toys}
  return {claim.words: claim.check(by_name).verdict for claim in CLAIMS[name]}


@pytest.mark.parametrize(
  ('name', 'ours'), [('cfl/figure1', toy_clients.run_figure1), ('cfl/figure2', toy_problems.run_figure2)]
)
def test_what_the_paper_describes_and_our_own_figures_hold_every_claim(name, ours):
  for toys in (_TOYS[name], ours()):
    verdicts = _verdicts(name, toys)
    assert verdicts == {words: _fulfilled(words) for words in verdicts}


_EASILY = 'In both cases the data of clients of one cluster can be separated easily'
_NO_LINE = 'Left: a linear model cannot fit all clients’ data at once'
_NONE_FITS = 'Right: no model can fit all clients’ data at once'
_CFL_FINDS = 'CFL finds the clusters, and then every client is right'
_MEAN_VANISHES = 'one model for all ends where the mean gradient vanishes and the clients’ do not'
_AGREE = 'there, gradients of one cluster agree and those of different clusters are opposite (cosines above 0.9 and below −0.9)'
_CURED = 'A model that is complex enough makes the clients of XOR congruent: nothing is split'
_NOT_CURED = 'The same model leaves diverging conditionals incongruent'
_UP = np.array([0.0, 0.5, 0.0])
_CONVERGES = 'Federated Learning converges to a stationary point of its objective'
_POSITIVE = 'Incongruent: there the gradients of both clients are of positive norm'
_OPPOSITE = 'Incongruent: they point into opposite directions'
_EQUATION = 'Incongruent: ∇R₁ = −(a₂/a₁) ∇R₂'


def _fulfilled(words):
  """The verdict of a claim where nothing contradicts it; some are true whatever is computed."""
  algebra = (
    _NO_LINE,
    _NONE_FITS,
    f'Right: {_MEAN_VANISHES}',
    _NOT_CURED,
    _CONVERGES,
    _POSITIVE,
    _OPPOSITE,
    _EQUATION,
    _AREA,
  )
  return 'not decidable here' if words in algebra else 'holds'


_AREA = 'Congruent: there is an area where both risks are smallest'
_VANISH = 'Congruent: the norms of both gradients go to zero'
_APART = 'The norms tell the two cases apart'


def _ending(name, first, second):
  toy = _risks_toy(name)
  return dataclasses.replace(toy, gradients=np.concatenate([toy.gradients[:-1], [[first, second]]]))


@pytest.mark.parametrize(
  ('changed', 'failing'),
  [
    (_clients_toy('xor', accuracy=0.76), {_NO_LINE}),
    (_clients_toy('xor', alone=np.array([1.0, 0.99])), {_EASILY}),
    (_clients_toy('conditionals', accuracy=0.9), {_NONE_FITS}),
    (_clients_toy('conditionals', ceiling=1.0), {_NONE_FITS}),
    (_clients_toy('xor', gradients=np.array([_UP, _UP, _UP, -_UP])), {f'Left: {_MEAN_VANISHES}'}),
    (_clients_toy('conditionals', gradients=np.zeros((4, 3))), {f'Right: {_MEAN_VANISHES}'}),
    (_clients_toy('xor', similarity=np.eye(4)), {f'Left: {_AGREE}'}),
    (_clients_toy('conditionals', similarity=np.ones((4, 4))), {f'Right: {_AGREE}'}),
    (_clients_toy('xor', groups=np.array([0, 0, 1, 1])), {f'Left: {_CFL_FINDS}'}),
    (_clients_toy('xor', groups=np.array([0, 1, 0, 2]), group_weights=np.zeros((3, 3))), {f'Left: {_CFL_FINDS}'}),
    (_clients_toy('conditionals', groups=np.zeros(4, int)), {f'Right: {_CFL_FINDS}'}),
    (_clients_toy('conditionals', client_accuracy=np.array([1.0, 1.0, 0.9, 1.0])), {f'Right: {_CFL_FINDS}'}),
    (_clients_toy('xor', group_gradients=np.full((4, 3), 0.1)), {f'Left: {_CFL_FINDS}'}),
    (_clients_toy('xor_richer', accuracy=0.99), {_CURED}),
    (_clients_toy('xor_richer', groups=np.array([0, 1, 0, 1])), {_CURED}),
    (_clients_toy('xor_richer', gradients=np.ones((4, 4))), {_CURED}),
    (_clients_toy('conditionals_richer', gradients=np.zeros((4, 4))), {_NOT_CURED}),
    (_clients_toy('conditionals_richer', groups=np.zeros(4, int)), {_NOT_CURED}),
    (_ending('incongruent', [1.0, 0.0], [3.0, 0.0]), {_CONVERGES, _OPPOSITE, _EQUATION}),
    (_ending('incongruent', [1.0, 0.0], [-1.0, 0.0]), {_CONVERGES, _EQUATION}),
    (_ending('incongruent', [1.0, 0.3], [-3.0, 0.0]), {_CONVERGES, _OPPOSITE, _EQUATION}),
    (_ending('incongruent', [3e-3, 0.0], [-9e-3, 0.0]), {_POSITIVE, _APART}),
    (_ending('incongruent', [0.0, 0.0], [0.0, 0.0]), {_POSITIVE, _OPPOSITE, _EQUATION, _APART}),
    (_risks_toy('incongruent', shares=np.array([0.5, 0.5])), {_CONVERGES, _EQUATION}),
    (_ending('congruent', [1.0, 0.0], [-3.0, 0.0]), {_VANISH, _APART}),
    (_ending('congruent', [1.0, 0.0], [0.0, 0.0]), {_CONVERGES, _VANISH, _APART}),
    (_risks_toy('congruent', risks=_risks_toy('incongruent').risks), {_AREA}),
    (_risks_toy('incongruent', risks=_risks_toy('congruent').risks), {_AREA}),
  ],
)  # fmt: skip
def test_claims_fail_with_what_contradicts_them_and_no_other_does(changed, failing):
  name = 'cfl/figure1' if isinstance(changed, ClientsToy) else 'cfl/figure2'
  with np.errstate(invalid='ignore'):
    verdicts = _verdicts(name, [changed if toy.name == changed.name else toy for toy in _TOYS[name]])
  assert verdicts == {words: 'fails' if words in failing else _fulfilled(words) for words in verdicts}


def test_claims_without_their_toys_were_not_run():
  verdicts = _verdicts('cfl/figure2', _RISK_TOYS[:1])
  told = (_POSITIVE, _OPPOSITE, _EQUATION)
  assert verdicts == {words: _fulfilled(words) if words in told else 'not run' for words in verdicts}


# --- The page ---


@pytest.mark.parametrize(
  ('name', 'file', 'numbers'),
  [
    ('cfl/figure1', 'clients', {'x₁, x₂, 1', '12', '50.0%'}),
    ('cfl/figure2', 'paths', {'R₁ in words|R₂ in words', '0.75 and 0.25', '(−1.500, −1.500)'}),
  ],
)
def test_the_page_has_answer_figure_claims_and_numbers_and_needs_no_network(tmp_path, name, file, numbers):
  rows = {toy.name: toy for toy in _TOYS[name]}
  path = page_lib.write_page(sattler2019.PUBLISHED[name], rows, PAPER, _FACTS, tmp_path)
  assert path == tmp_path / 'index.html'
  page = WrittenPage(path)
  source, count = sattler2019.PUBLISHED[name].source, len(CLAIMS[name])
  held = sum(_fulfilled(claim.words) == 'holds' for claim in CLAIMS[name])
  if held == count:
    answer, words = f'{source} reproduces', f'{count} hold'
  else:
    answer = f'As far as it is decided, {source} reproduces'
    words = f'{held} hold and {count - held} are not decidable here'
  assert f'{answer}: of {count} claims {words}.' in page.text
  order = ('The answer', 'The figure', 'The paper’s claims', 'The problems', 'How it was run')
  places = [page.text.rindex(heading) for heading in order]
  assert places == sorted(places)
  assert page.cells.count('holds') == held and _FACTS['command'] in page.text
  assert all(claim.words in page.text and claim.source in page.text for claim in CLAIMS[name])
  assert numbers <= set(page.cells)
  records = json.loads((tmp_path / 'scorecard.json').read_text())
  assert {record['scale'] for record in records} == {'a toy problem: the paper gives no scale'}
  assert len(page.sources) == 1 and page.sources[0].startswith('data:image/svg+xml;base64,')
  assert sorted(path.name for path in (tmp_path / 'figures').iterdir()) == [f'{file}.png', f'{file}.svg']


# --- Figures ---


def _nothing_overlaps(figure):
  FigureCanvasAgg(figure).draw()
  boxes = [axes.get_tightbbox() for axes in figure.axes if axes.axison]
  boxes.append(figure.legends[0].get_window_extent())
  apart = not any(a.shrunk(0.995, 0.995).overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
  inside = all(b.x0 >= 0 and b.y0 >= 0 and b.x1 <= figure.bbox.x1 and b.y1 <= figure.bbox.y1 for b in boxes)
  return apart and inside


@pytest.mark.parametrize('count', [1, 4])
def test_every_toy_of_clients_has_a_panel_with_all_points_and_equal_axes(count):
  figure = figures.clients_figure(_CLIENT_TOYS[:count])
  used = [axes for axes in figure.axes if axes.axison]
  assert len(used) == count and _nothing_overlaps(figure)
  split = 'one model for all: 50.0% right; CFL, 2 clusters: 100.0%'
  told = [split, split, 'one model for all: 100.0% right; CFL splits nothing', split]
  assert [axes.texts[0].get_text() for axes in used] == told[:count]
  for axes in used:
    assert axes.get_aspect() == 1.0
    dots = np.concatenate([c.get_offsets() for c in axes.collections if c.get_offsets().shape[0] > 1])
    expected = _CLIENT_TOYS[0].points.reshape(-1, 2)
    np.testing.assert_allclose(np.sort(dots, axis=0), np.sort(expected, axis=0))


def test_points_have_their_clusters_colour_and_one_answer_everywhere_has_no_boundary():
  """Points are full where the label is 1."""
  toy = _clients_toy()
  one = dataclasses.replace(toy, scores=np.concatenate([np.ones((1, 21, 21)), toy.scores[1:]]))
  drawn, without = (figures.clients_figure([each]).axes[0].collections for each in (toy, one))
  # A line and a band for each boundary.
  assert len(drawn) == len(without) + 2
  dots = [c for c in drawn if c.get_offsets().shape[0] > 1]
  colours = [matplotlib.colors.to_rgb(colour) for colour in base.colours(2)]
  for planted in (0, 1):
    for label in (1, 0):
      points = dots[2 * planted + 1 - label]
      shown = points.get_facecolor() if label else points.get_edgecolor()
      assert tuple(shown[0][:3]) == pytest.approx(colours[planted])
      assert len(points.get_facecolor()) == label
      expected = toy.points[toy.planted == planted][toy.labels[toy.planted == planted] == label]
      np.testing.assert_allclose(points.get_offsets(), expected)


def test_paths_norms_and_arrows_are_the_given_numbers():
  figure = figures.risks_figure(_RISK_TOYS)
  assert _nothing_overlaps(figure)
  upper, lower = figure.axes[:2], figure.axes[2:]
  for toy, axes, norms in zip(_RISK_TOYS, upper, lower, strict=True):
    assert axes.get_aspect() == 1.0
    (path,) = (line for line in axes.lines if len(line.get_xdata()) == 3)
    np.testing.assert_allclose(path.get_xydata(), toy.path)
    (end,) = (line for line in axes.lines if line.get_marker() == '*')
    np.testing.assert_allclose(end.get_xydata(), toy.path[-1:])
    shown = [line.get_ydata() for line in norms.lines if len(line.get_xdata()) == 3]
    np.testing.assert_allclose(np.transpose(shown), np.maximum(toy.norms, 1e-7))
    assert norms.get_yscale() == 'log'
    assert {'ε₁', 'ε₂'} == {text.get_text() for text in norms.texts}
  ticks = [t.get_text() for t in lower[0].get_yticklabels() if t.get_text()]
  assert '10⁻²' in ticks and '10⁰' in ticks and not any('$' in tick for tick in ticks)
  # Arrows are the negative gradients, to one scale.
  toy, axes = _RISK_TOYS[0], upper[0]
  arrows = {(*text.xyann, text.arrowprops['color']): np.subtract(text.xy, text.xyann) for text in axes.texts}
  assert len(arrows) == 6
  found = [arrows[*start, colour] for start in toy.path for colour in base.colours(2)]
  gradients = toy.gradients.reshape(-1, 2)
  scales = np.linalg.norm(found, axis=1) / np.linalg.norm(gradients, axis=1)
  np.testing.assert_allclose(scales, scales[0])
  np.testing.assert_allclose(found, -scales[0] * gradients, atol=1e-12)
