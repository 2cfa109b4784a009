"""Draws a section alone, as it stands on its page, and reads what is drawn, in it and in figures."""

import html
import itertools
import pathlib
import re
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.made_up import in_json
from tff_cluster.papers.rohith2020.setting import describe_setting
from tff_cluster.report import pages, run_scorecard
from tff_cluster.report.finished_run import FinishedRun


def run_of(results: dict[str, Any], arrays: dict[str, np.ndarray] | None = None) -> FinishedRun:
  """Returns the run of results that are given in JSON."""
  return FinishedRun(pathlib.Path('run'), in_json.typed(results), arrays or {})


def scorecard_of(results: dict[str, Any]) -> list[dict[str, Any]]:
  """Returns the lines of the tables of Rohith et al. 2020 beside results that are given in JSON."""
  run = run_of(results)
  return run_scorecard.build(run.results, describe_setting(run.results.config, len(run.client_ids))).records()


def drawn(section: pages.Section | None) -> str:
  """Returns the HTML below the heading of a section; empty where there is none."""
  return '' if section is None else str(pages.draw(section))


def text(markup: str) -> str:
  """Returns what is read, with single spaces."""
  return html.unescape(re.sub(r'\s+', ' ', re.sub(r'<[^>]+>', ' ', markup))).strip()


def rows(markup: str) -> list[list[str]]:
  """Returns the text of the cells of all tables by row, heads included."""
  found = re.findall(r'<tr>(.*?)</tr>', markup, flags=re.S)
  return [[text(cell) for cell in re.findall(r'<t[hd][^>]*>(.*?)</t[hd]>', row, flags=re.S)] for row in found]


def overlapping_texts(figure, texts) -> list[tuple[str, str]]:
  """Returns pairs of these texts of a figure whose boxes, a little shrunk, overlap."""
  canvas = FigureCanvasAgg(figure)
  canvas.draw()
  boxes = [(t.get_text(), t.get_window_extent(canvas.get_renderer()).shrunk(0.98, 0.98)) for t in texts]
  pairs = itertools.combinations([pair for pair in boxes if pair[0]], 2)
  return [(name, other) for (name, box), (other, beside) in pairs if box.overlaps(beside)]
