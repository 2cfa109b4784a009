"""The page of phases.disturb: how far groups are found again in signatures that are private or small."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tff_cluster.base.words import plural, score, size, times
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.report import pages
from tff_cluster.report.figures import base
from tff_cluster.report.pages import Section, Table
from tff_cluster.report.pictures import save_drawn
from tff_cluster.storage.files import write_file
from tff_cluster.storage.tables import csv_text
from tff_cluster.studies.disturbance import figures
from tff_cluster.studies.disturbance.document import NEAREST, NOISE, RANDOM, Document, Row
from tff_cluster.studies.disturbance.words import (
  DISTURBANCES,
  epsilon_words,
  headline,
  loss_cell,
  loss_words,
  names,
  value_words,
)

_COLUMNS = (
    'label', 'method', 'signature', 'disturbance', 'value', 'undisturbed', 'mean', 'low', 'high', 'repeats',
    'clip_norm', 'epsilon', 'bytes',
)  # fmt: skip
_CAPTION = (
  'Lines are means over repeats, the bands behind them go from the lowest to the highest. Dotted: half of what each '
  'clustering finds undisturbed. '
)


def write_disturbance(document: Document, config: ExperimentConfig, folder: Path) -> Path:
  """Writes disturbance.csv, figures/*.svg and *.png, and index.html.

  Args:
    document: What disturbed_clients.run returns.
    config: Of the run.
    folder: Where to.

  Returns:
    The path of index.html.

  Raises:
    EnvironmentFault: where a file cannot be written.
  """
  write_file(
    folder / 'disturbance.csv', csv_text(_COLUMNS, (_csv_row(document, row) for row in document.rows))
  )
  pictures = [save_drawn(drawn, folder) for drawn in _drawn(document)]
  noise = {
    'delta': document.privacy[0].delta if document.privacy else None,
    'epsilons': Table(
      ('noise multiplier z', 'ε'),
      [(f'{z:g}', epsilon_words(epsilon)) for z, epsilon in document.epsilons.items()],
      (0, 1),
    ),
  }
  method = {
    'clip_norm_given': document.signatures[0].clip_norm_given,
    'repeats': document.repeats,
    'sketch_dimension': document.sketch_dimension,
    'left_out': document.left_out,
    'words': document.command,
  }
  shown: Sequence[tuple[str, str, Mapping[str, Any]]] = (
    ('The answer', 'answer', {'headline': headline(document), 'losses': _loss_table(document)}),
    ('The pictures', 'drawn', {'pictures': pictures}),
    ('What noise is worth', 'privacy', noise),
    ('What clients send', 'tables', {'each': _bytes_tables(document)}),
    ('Every value', 'tables', {'each': [_score_table(document)]}),
    ('How it was done', 'method', method),
  )
  parts = [Section(heading, 'disturbance.html', macro, data) for heading, macro, data in shown]
  data, training = config.data, config.training
  subtitle = (
    f'{data.dataset}, {plural(document.clients, "client")}, {data.partition}, {training.model}, '
    f'{plural(training.phase1_rounds, "round")} of Phase 1, seed {document.seed}'
  )
  target = folder / 'index.html'
  write_file(
    target,
    pages.page('Private and compressed signatures: when are the groups lost?', subtitle, parts, __package__),
  )
  return target


def summary(document: Document) -> str:
  """Returns, for a terminal, the answer and a line a clustering and disturbance."""
  return '\n'.join([headline(document), *_losses(document)])


def _losses(document: Document) -> list[str]:
  called = names(document)
  return [loss_words(line, called[line.label]) for line in document.half_lost]


def _loss_table(document: Document) -> Table:
  called = names(document)
  lines = {(line.label, line.disturbance): line for line in document.half_lost}
  shown = [name for name in DISTURBANCES if any(disturbance == name for _, disturbance in lines)]
  rows = []
  for label in dict.fromkeys(label for label, _ in lines):
    mine = [lines[label, disturbance] for disturbance in shown]
    rows.append((called[label].full, score(mine[0].undisturbed), *map(loss_cell, mine)))
  header = ('clustering', 'undisturbed', *(DISTURBANCES[name] for name in shown))
  return Table(
    header, rows, (1,), 'Where half of the score, or more, is gone (in brackets: where it is not yet)'
  )


def _csv_row(document: Document, row: Row) -> list[Any]:
  cells = [*(getattr(row, name) for name in _COLUMNS[:9]), len(row.scores)]
  if row.disturbance != NOISE:
    return [*cells, None, None, document.num_bytes(row.signature, row.value)]
  clip = next(sent.clip_norm for sent in document.signatures if sent.signature == row.signature)
  return [*cells, clip, document.epsilons[row.value], document.num_bytes(row.signature)]


def _drawn(document: Document) -> Iterator[base.Drawn]:
  """Yields the pictures."""
  groups = f'{plural(document.truth.groups, "planted group")}, {plural(document.clients, "client")}'
  if noisy := _panels(document, (NOISE,)):
    title = f'Groups found again in noisy updates ({groups})'
    caption = (
      'Every client clips its update to norm C and adds noise of standard deviation z × C to each of its numbers; '
      'at 0 it clips only.'
    )
    yield 'noise', 'disturbance', title, _CAPTION + caption, figures.noise(noisy, title)
  if packed := _panels(document, (NEAREST, RANDOM)):
    title = f'Groups found again in quantized updates ({groups})'
    caption = (
      'Every number of an update is put on one of 2^bits levels between its smallest and its largest one, the nearest or, '
      'at random, one of the two around it. Without quantization a number has 32 bits.'
    )
    yield 'bits', 'disturbance', title, _CAPTION + caption, figures.bits(packed, title)


def _panels(document: Document, disturbances: Sequence[str]) -> dict[str, list[figures.Line]]:
  called = names(document)
  panels: dict[str, list[figures.Line]] = {}
  for disturbance in disturbances:
    for label in dict.fromkeys(row.label for row in document.rows):
      rows = [row for row in document.rows if (row.label, row.disturbance) == (label, disturbance)]
      if not rows:
        continue
      rows.sort(key=lambda row: row.value)
      mean, low, high, values = (
        np.array([getattr(row, name) for row in rows], float) for name in ('mean', 'low', 'high', 'value')
      )
      panel = rows[0].signature
      if disturbance != NOISE:
        panel += f', {DISTURBANCES[disturbance]}'
      line = figures.Line(called[label].figure, values, mean, low, high, rows[0].undisturbed)
      panels.setdefault(panel, []).append(line)
  return panels


def _bytes_tables(document: Document) -> list[Table]:
  norms = [
      (
          sent.signature, f'{sent.features:,}', size(sent.bytes), f'{sent.norms.min:.3g}', f'{sent.norms.median:.3g}',
          f'{sent.norms.max:.3g}', f'{sent.clip_norm:.3g}', sent.clipped,
      )
      for sent in document.signatures
  ]  # fmt: skip
  packed = [
    (p.signature, p.bits, size(p.bytes), times(document.num_bytes(p.signature) / p.bytes))
    for p in document.compression
  ]
  header = (
    'signature', 'numbers', 'bytes, float32', 'norm, least', 'median', 'largest', 'clip norm C', 'clients clipped',
  )  # fmt: skip
  caption = 'What a client sends for clustering, undisturbed or with noise'
  tables = [Table(header, norms, range(1, 8), caption)]
  if packed:
    tables.append(
      Table(
        ('signature', 'bits', 'bytes a client', 'smaller'),
        packed,
        numeric=(1, 2, 3),
        caption='Quantized, as TFF packs it: 28 bits in every 32, and the two extremes',
      )
    )
  return tables


def _score_table(document: Document) -> Table:
  called = names(document)
  rows = [
      (
          called[row.label].full, DISTURBANCES[row.disturbance], value_words(row.disturbance, row.value),
          score(row.mean), score(row.low), score(row.high), len(row.scores),
          ', '.join('gave up' if count is None else str(count) for count in row.clusters),
      )
      for row in document.rows
  ]  # fmt: skip
  header = ('clustering', 'disturbance', 'value', 'mean', 'lowest', 'highest', 'repeats', 'clusters')
  return Table(header, rows, (3, 4, 5, 6))
