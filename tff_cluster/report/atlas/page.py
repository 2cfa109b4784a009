"""Writes atlas.html: one file with its data, its style and its scripts, which needs no network and no library."""

import importlib.resources
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tff_cluster.report import pages
from tff_cluster.report.atlas import tones
from tff_cluster.scorecard import identical_clusterings
from tff_cluster.storage.files import write_file

# In the order in which they are joined: each file uses what those before it define.
SCRIPTS = ('shared', 'controls', 'table', 'map', 'matrix', 'flow', 'card', 'atlas')
NAME = 'atlas.html'


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
  style = tones.style(data['palette']) + _source('atlas.css')
  script = '\n'.join(["'use strict';", '(() => {', *(_source(f'{name}.js') for name in SCRIPTS), '})();', ''])
  joined = any(identical_clusterings.JOINT in contender['name'] for contender in data['contenders'])
  return pages.render(
    'atlas.html',
    policy=pages.policy(style, script),
    title=title,
    subtitle=subtitle,
    style=style,
    script=script,
    json=as_json(data),
    answer=data['answer'],
    alarms=data['alarms'],
    remarks=[identical_clusterings.WORDS] if joined else [],
  )


def as_json(data: Mapping[str, Any]) -> str:
  """Returns JSON that may stand in a script element: no text in it can end the element or open a comment."""
  text = json.dumps(data, separators=(',', ':'), allow_nan=False)
  return (
    text.replace('<', '\\u003c').replace('>', '\\u003e').replace('&', '\\u0026').replace('\x7f', '\\u007f')
  )


def _source(name: str) -> str:
  return importlib.resources.files('tff_cluster.report.atlas').joinpath(name).read_text('utf-8')
