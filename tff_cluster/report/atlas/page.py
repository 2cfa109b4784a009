"""Writes atlas.html: one file with its data, its style and its scripts, which needs no network and no library."""

import base64
import hashlib
import importlib.resources
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tff_cluster.report.files import write_file
from tff_cluster.report.markup import Markup, raw, tag
from tff_cluster.scorecard import identical_clusterings

# In the order in which they are joined: each file uses what those before it define.
SCRIPTS = ('shared', 'controls', 'table', 'map', 'matrix', 'flow', 'card', 'atlas')
NAME = 'atlas.html'
_PICTURES = ('map', 'matrix', 'flow')
_VIEWS = {
  'map': ('Map of the clients', ''),
  'matrix': ('Harm map: who gains and who loses', ''),
  'flow': ('Membership flow: from Phase 1 to the end', ''),
  'contenders': ('Contenders', 'Click a heading to sort, click a row to show its clusters in the pictures.'),
}
_WITHOUT_SCRIPTS = (
  'The table, the pictures and the clients’ cards are drawn by a script, and scripts are switched off here. '
  'Without them, these numbers are on '
)


def write(data: Mapping[str, Any], title: str, subtitle: str, folder: Path) -> Path:
  """Writes atlas.html into a folder and returns its path.

  Args:
    data: From data.make.
    title, subtitle: Of the comparison.
    folder: Where to; index.html, which the page links to, lies there too.

  Raises:
    EnvironmentFault: where the file cannot be written.
  """
  target = folder / NAME
  write_file(target, page(data, title, subtitle))
  return target


def page(data: Mapping[str, Any], title: str, subtitle: str) -> str:
  """Returns the page; for the arguments see `write`."""
  style = _source('atlas.css')
  script = '\n'.join(["'use strict';", '(() => {', *(_source(f'{name}.js') for name in SCRIPTS), '})();', ''])
  # Only this style and this script are taken, whatever a client or a label is called.
  policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
  head = tag(
      'head', tag('meta', charset='utf-8'), tag('meta', http_equiv='Content-Security-Policy', content=policy),
      tag('meta', name='viewport', content='width=device-width, initial-scale=1'), tag('title', f'Atlas of {title}'),
      tag('style', raw(style)),
  )  # fmt: skip
  body = tag(
      'body', tag('main', *_header(title, subtitle), *_pictures(), *_answer(data), _section('contenders')),
      tag('script', raw(as_json(data)), type='application/json', id='data'), tag('script', raw(script)),
  )  # fmt: skip
  return f'<!DOCTYPE html>\n{tag("html", head, body, lang="en")}\n'


def as_json(data: Mapping[str, Any]) -> str:
  """Returns JSON that may stand in a script element: no text in it can end the element or open a comment."""
  text = json.dumps(data, separators=(',', ':'), allow_nan=False)
  return text.replace('<', '\\u003c').replace('>', '\\u003e').replace('&', '\\u0026')


def _header(title: str, subtitle: str) -> list[Markup]:
  index = tag('a', 'index.html', href='index.html')
  return [
    tag('h1', f'Atlas of {title}'),
    tag('p', subtitle, ' · the numbers with their intervals are on ', index, class_='sub'),
    tag('noscript', tag('p', _WITHOUT_SCRIPTS, index, '.', class_='alarm')),
    tag('form', class_='controls', id='controls', aria_label='What is shown'),
    tag('p', class_='setting', id='setting', aria_live='polite'),
  ]


def _pictures() -> list[Markup]:
  """Returns the pictures, the map first, with the card of the chosen client beside them."""
  card = tag(
    'aside', tag('h2', 'Client', id='card-heading'), tag('div', id='card'), aria_label='The chosen client'
  )
  pictures = tag('div', *(_section(name) for name in _PICTURES), class_='pictures')
  return [tag('div', pictures, card, class_='beside')]


def _answer(data: Mapping[str, Any]) -> list[Markup]:
  joined = any(identical_clusterings.JOINT in contender['name'] for contender in data['contenders'])
  return [
    tag('h2', 'The answer'),
    tag('p', data['answer']['headline'], class_='lead'),
    *([tag('p', identical_clusterings.WORDS, class_='note')] if joined else []),
    *(tag('p', tag('strong', 'Take care. '), alarm, class_='alarm') for alarm in data['alarms']),
    *(tag('p', sentence) for sentence in data['answer']['sentences']),
  ]


def _section(name: str) -> Markup:
  heading, words = _VIEWS[name]
  return tag(
    'section',
    tag('h2', heading, id=f'{name}-heading'),
    tag('p', words, class_='note', id=f'{name}-words'),
    tag('div', class_='view', id=name),
    aria_labelledby=f'{name}-heading',
  )


def _source(name: str) -> str:
  return importlib.resources.files('tff_cluster.report.atlas').joinpath(name).read_text('utf-8')


def _digest(text: str) -> str:
  return f'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")}'
