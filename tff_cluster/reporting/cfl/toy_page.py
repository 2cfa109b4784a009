"""The page of a figure of toy problems: the picture, what the paper says of it, and whether ours does the same."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tff_cluster.errors import InputError
from tff_cluster.papers import sattler2019, tables
from tff_cluster.reporting import report
from tff_cluster.reporting.cfl.toy_claims import CLAIMS, ToyClaim
from tff_cluster.reporting.claims import Finding
from tff_cluster.reporting.figures import base
from tff_cluster.reporting.figures import toys as figures
from tff_cluster.reporting.files import csv_text, write_file
from tff_cluster.reporting.markup import Markup, table, tag
from tff_cluster.reporting.pictures import Picture
from tff_cluster.reporting.sections import verdict_chip
from tff_cluster.reporting.table_scorecard import Line, headline
from tff_cluster.scorecard.words import percent
from tff_cluster.toy_results import ClientsToy, RisksToy

if TYPE_CHECKING:
  from matplotlib.figure import Figure

_SCALE = 'a toy problem: the paper gives no scale'


@dataclasses.dataclass(frozen=True)
class _Drawing:
  draw: 'Callable[[Sequence[Any]], Figure]'
  file: str
  title: str
  caption: str


_DRAWINGS = {
    'cfl/figure1': _Drawing(
        figures.clients_figure, 'clients', 'Clients’ points and models',
        'Upper left: the XOR problem, in which the clusters see different points and no line serves both. Upper right: both '
        'clusters see the same points and label them differently, so no model serves both. Below: the same clients and a '
        'model that also has the product of both inputs; it cures the first case only. Accuracies are of the rows trained on.',
    ),
    'cfl/figure2': _Drawing(
        figures.risks_figure, 'paths', 'Paths of Federated Learning with two clients',
        'Thin lines are contours of either client’s risk; a cross or a thick line marks where it is smallest. Arrows are the '
        'clients’ negative gradients, all to one scale. Left, they end opposite to each other. Right, they vanish where the '
        'path meets the grey area. Below, the norms of the gradients by round.',
    ),
}  # fmt: skip


def write_toy_page(
  name: str, results: 'Sequence[ClientsToy] | Sequence[RisksToy]', folder: Path, facts: Mapping[str, Any]
) -> Path:
  """Writes scorecard.csv, scorecard.json, figures/*.svg and *.png, and index.html into a folder.

  Args:
    name: 'cfl/figure1' or 'cfl/figure2'.
    results: The toys of that figure, in the order in which they are drawn; claims on others count as not run.
    folder: Where to.
    facts: How it was run (command, seed, machine, ...), in the order of the page.

  Returns:
    The path of index.html.

  Raises:
    InputError: if there is no such figure, or no toys or those of another figure are given.
    EnvironmentFault: where a file cannot be written.
  """
  if name not in sattler2019.TOYS:
    raise InputError(f'figure {name!r}: allowed are {", ".join(sattler2019.TOYS)}')
  kind = ClientsToy if name == 'cfl/figure1' else RisksToy
  if not results or not all(isinstance(toy, kind) for toy in results):
    given = ', '.join(type(toy).__name__ for toy in results) or 'nothing'
    raise InputError(f'{name}: given {given}; it draws one {kind.__name__} or more')
  published = sattler2019.TOYS[name]
  by_name = {toy.name: toy for toy in results}
  findings = [(claim, claim.check(by_name)) for claim in CLAIMS[name]]
  records = [_record(published, *pair) for pair in findings]
  write_file(folder / 'scorecard.json', json.dumps(records, indent=2, ensure_ascii=False) + '\n')
  write_file(folder / 'scorecard.csv', csv_text(list(records[0]), (list(r.values()) for r in records)))
  picture = _draw(name, results, folder)
  answer = headline(published, (), [finding for _, finding in findings], '')
  parts: list[tuple[str, list[Markup]]] = [
    ('The answer', [tag('p', answer, class_='lead'), tag('p', published.note, class_='note')]),
    ('The figure', [report.figure(picture)]),
    ('The paper’s claims', [_claims_table(findings)]),
    ('The problems', [_clients_table(results) if kind is ClientsToy else _risks_table(results)]),
    ('How it was run', _facts_section(facts)),
  ]
  target = folder / 'index.html'
  write_file(target, report.page(published.title, f'{published.name} · {published.source} · {_SCALE}', parts))
  return target


def _draw(name: str, results: Sequence[Any], folder: Path) -> Picture:
  drawing = _DRAWINGS[name]
  svg, png = base.render(drawing.draw(results))
  write_file(folder / 'figures' / f'{drawing.file}.svg', svg)
  write_file(folder / 'figures' / f'{drawing.file}.png', png)
  return Picture(drawing.file, 'toys', drawing.title, drawing.caption, svg)


def _note(claim: ToyClaim, finding: Finding) -> str:
  return '; '.join(part for part in (finding.note, claim.source) if part)


def _record(published: tables.Published, claim: ToyClaim, finding: Finding) -> dict[str, Any]:
  # The columns of every reproduction, so that scorecards can be put below each other.
  record: dict[str, Any] = dict.fromkeys(field.name for field in dataclasses.fields(Line))
  return record | {
      'table': published.name, 'row': 'claim', 'column': claim.words, 'published': claim.published,
      'ours': None if finding.verdict == 'not run' else finding.ours, 'verdict': finding.verdict,
      'note': _note(claim, finding), 'scale': _SCALE,
  }  # fmt: skip


def _claims_table(findings: Sequence[tuple[ToyClaim, Finding]]) -> Markup:
  rows = [
      (
          [claim.words, tag('div', _note(claim, finding), class_='note')], claim.published, finding.ours or '–',
          verdict_chip(finding.verdict),
      )
      for claim, finding in findings
  ]  # fmt: skip
  return table(('claim', 'published', 'ours', 'verdict'), rows)


def _clients_table(toys: Sequence[Any]) -> Markup:
  rows = [
      (
          toy.name.replace('_', ', '), ', '.join(toy.features), len(toy.points), toy.points.shape[1], toy.rounds,
          percent(toy.accuracy), len(toy.group_weights), percent(float(toy.client_accuracy.mean())), percent(toy.ceiling),
      )
      for toy in toys
  ]  # fmt: skip
  header = (
      'problem', 'features', 'clients', 'rows each', 'rounds of one model', 'its accuracy', 'clusters of CFL',
      'their accuracy', 'best of any model',
  )  # fmt: skip
  return table(
    header,
    rows,
    numeric=range(2, len(header)),
    caption='Logistic regression, one exact gradient step a round',
  )


def _risks_table(toys: Sequence[Any]) -> Markup:
  rows = [
      (
          toy.name, [tag('div', formula) for formula in toy.formulas], ' and '.join(f'{share:g}' for share in toy.shares),
          _place(toy.path[0]), _place(toy.path[-1]), len(toy.path) - 1,
      )
      for toy in toys
  ]  # fmt: skip
  header = ('problem', 'risks', 'a₁ and a₂', 'start', 'stationary point', 'rounds')
  return table(header, rows, numeric=(5,), caption='One exact gradient step a round')


def _place(theta: Sequence[float]) -> str:
  return f'({", ".join(f"{value:.3f}".replace("-", "−") for value in theta)})'


def _facts_section(facts: Mapping[str, Any]) -> list[Markup]:
  rest = [(name.replace('_', ' '), str(value)) for name, value in facts.items() if name != 'command']
  return [
    *([tag('pre', tag('code', facts['command']))] if 'command' in facts else []),
    *([table(('', 'this reproduction'), rest)] if rest else []),
  ]
