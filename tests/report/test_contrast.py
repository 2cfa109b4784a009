"""Colours of pages by WCAG 2.1 (success criteria 1.4.3 and 1.4.11), computed from the style sheets, in light, dark and print."""

import itertools
import pathlib
import re

import pytest

import tff_cluster.report
from tests.report.wcag import contrast
from tff_cluster.report.atlas import tones
from tff_cluster.report.figures import base

FOLDER = pathlib.Path(tff_cluster.report.__file__).parent
STYLES = {
  'pages': (FOLDER / 'templates' / 'style.css').read_text(encoding='utf-8'),
  'atlas': (FOLDER / 'atlas' / 'atlas.css').read_text(encoding='utf-8'),
}
TEXT, GRAPHICS = 4.5, 3.0
# Text on grounds, by the names of the style sheets.
PAIRS = {
  'pages': [
    *itertools.product(('ink', 'soft', 'accent'), ('page', 'card')),
    ('good', 'goodbg'), ('bad', 'badbg'), ('warn', 'warnbg'),
  ],
  'atlas': [*itertools.product(('ink', 'soft', 'accent'), ('page', 'card', 'current')), ('warn', 'warnbg'), ('ink', 'hover'), ('cell', 'pale')],
}  # fmt: skip


def _schemes(style):
  """Returns the colours by name in each scheme; later ones replace those of the first."""
  found = re.findall(r'(?:@media ([^{]*)\{\s*)?:root \{([^}]*)\}', style)
  first, *others = [(media.strip(), dict(re.findall(r'--(\w+): (#\w+)', body))) for media, body in found]
  return {'light': first[1], **{media: first[1] | colours for media, colours in others}}


def test_contrast_is_that_of_the_standard():
  # Known values: black on white is 21, equal colours are 1, and #767676 is the palest grey that white allows.
  assert contrast('#000', '#ffffff') == pytest.approx(21) and contrast('#123456', '#123456') == 1
  assert contrast('#767676', '#fff') >= TEXT > contrast('#777777', '#fff')


def test_pages_have_a_light_a_dark_and_a_printed_scheme():
  assert list(_schemes(STYLES['pages'])) == ['light', '(prefers-color-scheme: dark)', 'print']
  # Paper takes the light colours of an atlas.
  assert list(_schemes(STYLES['atlas'])) == ['light', 'screen and (prefers-color-scheme: dark)', 'print']


def test_tones_of_an_atlas_are_seen_on_its_dark_page_and_change_no_more_than_they_must():
  palette = [*base.colours(7), *base.colours(10)]
  light, dark = _schemes(tones.style(palette)).values()
  assert [light[f'tone{k}'] for k in range(len(palette))] == palette
  page = _schemes(STYLES['atlas'])['screen and (prefers-color-scheme: dark)']['page']
  assert page == tones.DARK
  for k, colour in enumerate(palette):
    shown = dark[f'tone{k}']
    assert contrast(shown, page) >= GRAPHICS
    assert (
      shown.lower() == colour.lower()
      if contrast(colour, page) >= GRAPHICS
      else contrast(shown, page) < GRAPHICS + 0.2
    )
  assert len(set(dark.values())) == len(set(palette))


@pytest.mark.parametrize('name', ['better', 'worse', 'grey', 'edge'])
def test_marks_of_an_atlas_have_contrast_with_page_and_card(name):
  for scheme, colours in _schemes(STYLES['atlas']).items():
    for ground in ('page', 'card'):
      ratio = contrast(colours[name], colours[ground])
      assert ratio >= GRAPHICS, f'{scheme}: {name} on {ground} has {ratio:.2f}'


@pytest.mark.parametrize('name', STYLES)
def test_every_text_has_contrast_with_what_is_below_it(name):
  for scheme, colours in _schemes(STYLES[name]).items():
    for text, ground in PAIRS[name]:
      ratio = contrast(colours[text], colours[ground])
      assert ratio >= TEXT, f'{scheme}: {text} on {ground} has {ratio:.2f}'


def test_a_chip_that_is_grey_has_contrast_too():
  # Its ground is a sixth of middle grey over the page.
  assert 'rgba(128, 128, 128, .16)' in STYLES['pages']
  for scheme, colours in _schemes(STYLES['pages']).items():
    page = [int(colours['page'].lstrip('#').ljust(6, colours['page'][-1])[k : k + 2], 16) for k in (0, 2, 4)]
    ground = '#' + ''.join(f'{round(0.84 * value + 0.16 * 128):02x}' for value in page)
    assert contrast(colours['soft'], ground) >= TEXT, scheme
