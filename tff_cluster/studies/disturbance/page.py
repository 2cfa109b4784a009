"""The page of phases.disturb: how far groups are found again in signatures that are private or small."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base.words import plural, score, size, times
from tff_cluster.report import report
from tff_cluster.report.figures import base
from tff_cluster.report.files import csv_text, write_file
from tff_cluster.report.markup import Markup, table, tag
from tff_cluster.report.pictures import Picture
from tff_cluster.studies.disturbance import figures
from tff_cluster.studies.disturbance.words import (
  DISTURBANCES,
  epsilon_words,
  headline,
  loss_cell,
  loss_words,
  names,
  value_words,
)

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_COLUMNS = (
    'label', 'method', 'signature', 'disturbance', 'value', 'undisturbed', 'mean', 'low', 'high', 'repeats',
    'clip_norm', 'epsilon', 'bytes',
)  # fmt: skip
_CAPTION = (
  'Lines are means over repeats, the bands behind them go from the lowest to the highest. Dotted: half of what each '
  'clustering finds undisturbed. '
)


def write_disturbance(document: Mapping[str, Any], facts: Mapping[str, Any], folder: Path) -> Path:
  """Writes disturbance.csv, figures/*.svg and *.png, and index.html.

  Args:
    document: As studies.disturbance.disturbed_clients.run returns it.
    facts: 'command', and 'config', the run's ExperimentConfig.to_json().
    folder: Where to.

  Returns:
    The path of index.html.

  Raises:
    EnvironmentFault: where a file cannot be written.
  """
  write_file(folder / 'disturbance.csv', csv_text(_COLUMNS, map(_csv_row(document), document['rows'])))
  pictures = []
  for name, title, caption, figure in _drawn(document):
    svg, png = base.render(figure)
    write_file(folder / 'figures' / f'{name}.svg', svg)
    write_file(folder / 'figures' / f'{name}.png', png)
    pictures.append(report.figure(Picture(name, 'disturbance', title, caption, svg)))
  parts: list[tuple[str, list[Markup]]] = [
    ('The answer', [tag('p', headline(document), class_='lead'), _loss_table(document)]),
    ('The pictures', pictures),
    ('What noise is worth', _privacy_section(document)),
    ('What clients send', _bytes_section(document)),
    ('Every value', [_score_table(document)]),
    ('How it was done', [*_method(document), tag('pre', tag('code', facts['command']))]),
  ]
  data, training = facts['config']['data'], facts['config']['training']
  subtitle = (
    f'{data["dataset"]}, {plural(document["clients"], "client")}, {data["partition"]}, {training["model"]}, '
    f'{plural(training["phase1_rounds"], "round")} of Phase 1, seed {document["seed"]}'
  )
  target = folder / 'index.html'
  write_file(
    target, report.page('Private and compressed signatures: when are the groups lost?', subtitle, parts)
  )
  return target


def summary(document: Mapping[str, Any]) -> str:
  """Returns, for a terminal, the answer and a line a clustering and disturbance."""
  return '\n'.join([headline(document), *_losses(document)])


def _losses(document: Mapping[str, Any]) -> list[str]:
  called = names(document)
  return [loss_words(line, called[line['label']]) for line in document['half_lost']]


def _loss_table(document: Mapping[str, Any]) -> Markup:
  called = names(document)
  lines = {(line['label'], line['disturbance']): line for line in document['half_lost']}
  shown = [name for name in DISTURBANCES if any(disturbance == name for _, disturbance in lines)]
  rows = []
  for label in dict.fromkeys(label for label, _ in lines):
    mine = [lines[label, disturbance] for disturbance in shown]
    rows.append((called[label].full, score(mine[0]['undisturbed']), *map(loss_cell, mine)))
  header = ('clustering', 'undisturbed', *(DISTURBANCES[name] for name in shown))
  return table(
    header,
    rows,
    numeric=(1,),
    caption='Where half of the score, or more, is gone (in brackets: where it is not yet)',
  )


def _csv_row(document: Mapping[str, Any]) -> Any:
  clip = {line['signature']: line['clip_norm'] for line in document['signatures']}
  whole = {line['signature']: line['bytes'] for line in document['signatures']}
  packed = {(line['signature'], line['bits']): line['bytes'] for line in document['compression']}
  epsilon = {line['noise_multiplier']: line['epsilon'] for line in document['privacy']}

  def cells(row: Mapping[str, Any]) -> list[Any]:
    kind, noisy = row['signature'], row['disturbance'] == 'noise'
    return [
        *(row[name] for name in _COLUMNS[:9]), len(row['scores']), clip[kind] if noisy else None,
        epsilon[row['value']] if noisy else None, whole[kind] if noisy else packed[kind, row['value']],
    ]  # fmt: skip

  return cells


def _drawn(document: Mapping[str, Any]) -> 'list[tuple[str, str, str, Figure]]':
  """Returns name, title and caption of each picture, and the picture."""
  drawn = []
  groups = f'{plural(document["truth"]["groups"], "planted group")}, {plural(document["clients"], "client")}'
  if noisy := _panels(document, ('noise',)):
    title = f'Groups found again in noisy updates ({groups})'
    caption = (
      'Every client clips its update to norm C and adds noise of standard deviation z × C to each of its numbers; '
      'at 0 it clips only.'
    )
    drawn.append(('noise', title, _CAPTION + caption, figures.noise(noisy, title)))
  if packed := _panels(document, ('nearest', 'random')):
    title = f'Groups found again in quantized updates ({groups})'
    caption = (
      'Every number of an update is put on one of 2^bits levels between its smallest and its largest one, the nearest or, '
      'at random, one of the two around it. Without quantization a number has 32 bits.'
    )
    drawn.append(('bits', title, _CAPTION + caption, figures.bits(packed, title)))
  return drawn


def _panels(document: Mapping[str, Any], disturbances: Sequence[str]) -> dict[str, list[figures.Line]]:
  called = names(document)
  panels: dict[str, list[figures.Line]] = {}
  for disturbance in disturbances:
    for label in dict.fromkeys(row['label'] for row in document['rows']):
      rows = [row for row in document['rows'] if (row['label'], row['disturbance']) == (label, disturbance)]
      if not rows:
        continue
      rows.sort(key=lambda row: row['value'])
      mean, low, high, values = (
        np.array([row[name] for row in rows], float) for name in ('mean', 'low', 'high', 'value')
      )
      panel = rows[0]['signature']
      if disturbance != 'noise':
        panel += f', {DISTURBANCES[disturbance]}'
      line = figures.Line(called[label].figure, values, mean, low, high, rows[0]['undisturbed'])
      panels.setdefault(panel, []).append(line)
  return panels


def _privacy_section(document: Mapping[str, Any]) -> list[Markup]:
  if not document['privacy']:
    return [tag('p', 'No noise was asked for.', class_='soft')]
  rows = [(f'{line["noise_multiplier"]:g}', epsilon_words(line['epsilon'])) for line in document['privacy']]
  delta = document['privacy'][0]['delta']
  return [
      tag(
          'p', 'Local privacy of one release: with noise multiplier z the server can tell any two updates of norm at most C '
          f'apart no better than (ε, δ) allows, δ = {delta:g}. They are up to 2 C apart, so accounting that counts C, as for a '
          'sum over clients, would show the same ε at half the z. The rounds of training themselves are not private, and '
          'every further release adds to ε.',
      ),
      table(('noise multiplier z', 'ε'), rows, numeric=(0, 1)),
      tag('p', 'An ε of 10 is usually called weak, and one above 100 says next to nothing.', class_='note'),
  ]  # fmt: skip


def _bytes_section(document: Mapping[str, Any]) -> list[Markup]:
  whole = {line['signature']: line['bytes'] for line in document['signatures']}
  norms = [
      (
          line['signature'], f'{line["features"]:,}', size(line['bytes']), f'{line["norms"]["min"]:.3g}',
          f'{line["norms"]["median"]:.3g}', f'{line["norms"]["max"]:.3g}', f'{line["clip_norm"]:.3g}', line['clipped'],
      )
      for line in document['signatures']
  ]  # fmt: skip
  packed = [
    (line['signature'], line['bits'], size(line['bytes']), times(whole[line['signature']] / line['bytes']))
    for line in document['compression']
  ]
  header = (
    'signature', 'numbers', 'bytes, float32', 'norm, least', 'median', 'largest', 'clip norm C', 'clients clipped',
  )  # fmt: skip
  caption = 'What a client sends for clustering, undisturbed or with noise'
  tables = [table(header, norms, numeric=range(1, 8), caption=caption)]
  if packed:
    tables.append(
      table(
        ('signature', 'bits', 'bytes a client', 'smaller'),
        packed,
        numeric=(1, 2, 3),
        caption='Quantized, as TFF packs it: 28 bits in every 32, and the two extremes',
      )
    )
  return tables


def _score_table(document: Mapping[str, Any]) -> Markup:
  called = names(document)
  rows = [
      (
          called[row['label']].full, DISTURBANCES[row['disturbance']], value_words(row['disturbance'], row['value']),
          score(row['mean']), score(row['low']), score(row['high']), len(row['scores']),
          ', '.join('gave up' if count is None else str(count) for count in row['clusters']),
      )
      for row in document['rows']
  ]  # fmt: skip
  header = ('clustering', 'disturbance', 'value', 'mean', 'lowest', 'highest', 'repeats', 'clusters')
  return table(header, rows, numeric=(3, 4, 5, 6))


def _method(document: Mapping[str, Any]) -> list[Markup]:
  asked = document['signatures'][0]['clip_norm_given']
  clip = (
    'The clip norm was given.'
    if asked
    else 'The clip norm is the median of all clients’ norms: it is chosen with knowledge of every norm, which itself is not '
    'private.'
  )
  points = [
    'Every client’s update passes alone, as a cohort of one, through TFF’s own aggregators: DifferentiallyPrivateFactory, and '
    'EncodedSumFactory. Their random draws come from seeds, so that the same command gives the same numbers.',
    'Noise is for updates. Clusterings of weights therefore get the global model of the round before, which the server has, '
    'plus the disturbed update of the last round.',
    clip,
    'All noise multipliers have the same draws, scaled, and so have all bits that are rounded at random; '
    f'{plural(document["repeats"], "repeat")} with draws of their own. What draws nothing is made once.',
    'The score is the adjusted Rand index against the planted groups, and the Omega index, its extension, where clusters '
    'overlap. Where a method gave up (too many clusters), it counts as 0.',
    'TFF’s quantizer spans from a client’s own smallest number to its own largest. With few bits a client’s error, and with it '
    'its distance to all others, is set by that range, whichever way it is rounded.',
    'Noise adds about the same amount to all squared distances. Methods that are told a number of clusters, or take their '
    'threshold from the distances, move with it; a threshold that is a number does not, and finds every client alone.',
  ]
  if document['sketch_dimension']:
    points.append(
      f'Clients send sketches of {document["sketch_dimension"]:,} numbers, and those are disturbed.'
    )
  points += [f'Not asked: {line["label"]}, because {line["reason"]}.' for line in document['left_out']]
  return [tag('ul', [tag('li', point) for point in points])]
