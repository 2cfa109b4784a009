"""The page of phases.disturb: its words, its CSV file and its pictures."""

import csv
import dataclasses

import numpy as np
import pytest

from tests.made_up.disturbance import COMMAND, DOCUMENT, LOST, ROWS, row
from tests.made_up.written_page import WrittenPage
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.studies.disturbance import figures, words
from tff_cluster.studies.disturbance import page as page_lib
from tff_cluster.studies.disturbance.document import HalfLost


def write(folder, **changed):
  """Writes the page of the document with other fields; returns its path."""
  document = dataclasses.replace(DOCUMENT, **changed)
  return page_lib.write_disturbance(document, ExperimentConfig(), folder)


def test_two_clusterings_of_one_method_are_told_apart_by_their_labels():
  found = words.names(DOCUMENT)
  assert found['a'] == ('k-means', 'k-means on updates')
  assert found['b'] == ('hierarchical, ward', 'hierarchical, ward on weights')
  found = words.names(dataclasses.replace(DOCUMENT, rows=[*ROWS, row('c', 'noise', 0.0, [1.0])]))
  assert (found['a'].figure, found['c'].full) == ('a', 'c on updates')
  assert found['b'].figure == 'hierarchical, ward'


@pytest.mark.parametrize(
  ('kept', 'lost', 'disturbance', 'sentence', 'cell'),
  [
    (0.01, 0.1, 'noise', 'K-means on updates, noise: half of 0.90 is gone at z = 0.1, and not yet at z = 0.01.', 'z = 0.1 (z = 0.01)'),
    (2, 1, 'nearest', 'rounded to the nearest level: half of 0.90 is gone at 1 bit, and not yet at 2 bits.', '1 bit (2 bits)'),
    (None, 16, 'random', 'rounded at random: half of 0.90 is gone already at 16 bits, the mildest that was asked.', '16 bits, the mildest asked'),
    (1.0, None, 'noise', 'more than half of 0.90 is left even at z = 1.', 'nowhere (z = 1)'),
    (None, None, 'noise', 'found no groups undisturbed (0.90), so it has none to lose.', 'nothing to lose'),
  ],
)  # fmt: skip
def test_where_half_is_lost_as_a_sentence_and_as_a_cell(kept, lost, disturbance, sentence, cell):
  line = HalfLost('a', disturbance, 0.9, kept, lost)
  assert words.loss_words(line, words.Names('k-means', 'k-means on updates')).endswith(sentence)
  assert words.loss_cell(line) == cell


def test_headline():
  # With noise nothing but clipping is left; of the bits, rounding at random goes down to one.
  assert words.headline(DOCUMENT) == (
    'Any noise that was asked for costs more than half of the score; with clipping alone, k-means on updates and hierarchical, ward on weights keep it. '
    'Compression: k-means on updates goes furthest and keeps more than half of its score down to 1 bit a number, rounded '
    'at random: 152 B a client instead of 4 kB.'
  )
  further = [HalfLost('a', 'noise', 1.0, kept=0.5, lost=None), *LOST[1:]]
  assert words.headline(dataclasses.replace(DOCUMENT, half_lost=further)).startswith(
    'Noise: k-means on updates goes furthest and keeps more than half of its score up to a noise multiplier of z = 0.5, where ε is 1,234 '
  )
  # Those that go as far are all told.
  tied = [*further, HalfLost('b', 'noise', 1.0, kept=0.5, lost=None)]
  assert words.headline(dataclasses.replace(DOCUMENT, half_lost=tied)).startswith(
    'Noise: k-means on updates and hierarchical, ward on weights go furthest and keep more than half of their score up to a noise multiplier of z = 0.5'
  )
  # A clustering that finds next to nothing has little to lose.
  poor = [*LOST[:3], *(dataclasses.replace(line, undisturbed=0.03, kept=0.9) for line in LOST[3:])]
  assert words.headline(dataclasses.replace(DOCUMENT, half_lost=poor)).startswith(
    'Any noise that was asked for costs more than half of the score; with clipping alone, k-means on updates keeps it. '
  )
  nothing = [dataclasses.replace(line, kept=None) for line in LOST]
  assert words.headline(dataclasses.replace(DOCUMENT, half_lost=nothing)) == (
    'With noise no clustering keeps half of what it finds. With quantization no clustering keeps half of what it finds.'
  )
  lines = page_lib.summary(DOCUMENT).splitlines()
  assert lines[0] == words.headline(DOCUMENT) and len(lines) == 1 + len(LOST)


def test_epsilon_has_three_digits():
  told = {None: 'none', 0.0: '0', 4.8765: '4.88', 99.94: '99.9', 20853.2: '20,853'}
  assert {epsilon: words.epsilon_words(epsilon) for epsilon in told} == told


def test_page_and_csv(tmp_path):
  page = write(tmp_path)
  made = {path.name for path in tmp_path.rglob('*.*')}
  assert page == tmp_path / 'index.html' and made == {
    'index.html', 'disturbance.csv', 'noise.svg', 'noise.png', 'bits.svg', 'bits.png',
  }  # fmt: skip
  text = page.read_text()
  WrittenPage(page)
  for expected in (
    'z = 0.5 (z = 0)', 'nowhere (1 bit)',
    'digits, 6 clients', 'seed 4', f'{COMMAND} --output_dir=FOLDER', '1,234', 'none', '152 B', '26.3 times',
    'Not asked: cfl, because it trains while it clusters.', 'median of all clients’ norms', 'gave up',
    'the global model of the round before', '2 repeats',
  ):  # fmt: skip
    assert expected in text, expected
  assert 'Clients send sketches' not in text
  with open(tmp_path / 'disturbance.csv', newline='') as file:
    found = list(csv.DictReader(file))
  assert [float(line['mean']) for line in found] == [r.mean for r in ROWS]
  assert ','.join(found[1].values()) == 'a,kmeans,updates,noise,0.5,1.0,0.125,0.0,0.25,2,1.0,1234.5,4000'
  assert ','.join(found[3].values()) == 'a,kmeans,updates,nearest,1,1.0,0.125,0.125,0.125,1,,,152'


def test_page_of_a_given_clip_norm_of_sketches_and_of_noise_alone(tmp_path):
  noisy = [r for r in ROWS if r.disturbance == 'noise']
  signatures = [dataclasses.replace(sent, clip_norm_given=True) for sent in DOCUMENT.signatures]
  lost = [line for line in LOST if line.disturbance == 'noise']
  changed = {'rows': noisy, 'compression': [], 'half_lost': lost, 'signatures': signatures}
  text = write(tmp_path, **changed, sketch_dimension=256).read_text()
  assert 'The clip norm was given.' in text and 'Clients send sketches of 256 numbers' in text
  assert not (tmp_path / 'figures' / 'bits.svg').exists()


def curves(axes):
  return {
    line.get_label(): line.get_xydata().tolist() for line in axes.get_lines() if line.get_gid() != 'half'
  }


def test_pictures_show_the_numbers():
  noise, bits = (figure for *_, figure in page_lib._drawn(DOCUMENT))
  left, right = noise.axes
  assert [axes.get_title(loc='left') for axes in noise.axes] == ['updates', 'weights']
  # The axis is logarithmic; no noise stands beside the least noise, and is called 0.
  zero, half = np.log10(0.5 / 3), np.log10(0.5)
  assert curves(left)['k-means'] == [pytest.approx([zero, 1.0]), pytest.approx([half, 0.125])]
  assert curves(right)['hierarchical, ward'][1] == pytest.approx([half, 0.0625])
  assert [label.get_text() for label in left.get_xticklabels()] == ['0', '0.5']
  assert left.get_ylim()[0] < -0.125
  halves = [line.get_ydata()[0] for line in right.get_lines() if line.get_gid() == 'half']
  assert halves == [0.375]
  titles = [axes.get_title(loc='left') for axes in bits.axes]
  assert titles == [
    'updates, rounded to the nearest level', 'weights, rounded to the nearest level', 'updates, rounded at random',
    'weights, rounded at random',
  ]  # fmt: skip
  # More bits stand left.
  assert curves(bits.axes[2])['k-means'] == [[0.0, 0.6875], [-3.0, 1.0]]
  assert [label.get_text() for label in bits.axes[2].get_xticklabels()] == ['8', '1']


@pytest.mark.parametrize('kinds', [('updates',), ('updates', 'weights')])
def test_title_and_legend_lie_within_the_picture_however_many_panels_and_long_names_there_are(kinds):
  lines = [
    figures.Line(f'hierarchical, of linkage {k}', *[np.arange(1.0, 4.0)] * 4, undisturbed=1.0)
    for k in range(5)
  ]
  title = 'Groups found again in noisy updates (4 planted groups, 10,000 clients), of many clusterings'
  figure = figures.noise(dict.fromkeys(kinds, lines), title)
  figure.canvas.draw()
  whole = figure.bbox
  for drawn in (figure._suptitle, *figure.legends):
    box = drawn.get_window_extent()
    assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
