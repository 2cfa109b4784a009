"""What is kept of the questions that phases.replay and phases.disturb ask of a run whose Phase 1 is done."""

import dataclasses
import re
from pathlib import Path

from tff_cluster.storage import files, tables
from tff_cluster.storage.tables import csv_text
from tff_cluster.studies.disturbance.document import Document
from tff_cluster.studies.replay.replayed import Best, Summary

_UNITS = {'bytes': 'bytes [bytes]'}
_BEST = {
  'truth': 'groups', 'family': 'family', 'exact': 'finds the groups for', 'low': 'lowest T', 'high': 'below T', 'score': 'best score',
  'threshold': 'its T', 'num_clusters': 'its K', 'clusters': 'clusters', 'memberships': 'memberships',
}  # fmt: skip
# Of replay.csv, of the methods that have no linkage: those have hundreds of lines.
_ANSWERS = ('method', 'threshold', 'num_clusters', 'clusters', 'largest_cluster', 'memberships')
_SCORES = ('omega_', 'share_error_')
_FRACTION = re.compile(r'-?[0-9]+\.[0-9]+(e[+-]?[0-9]+)?|-?[0-9]+e-[0-9]+')


def tables_of(folder: Path) -> tuple[dict[str, str], list[str]]:
  """Returns tables as CSV text by name, and the commands that asked, without folders; empty where nothing was asked.

  Args:
    folder: The run's.
  """
  texts: dict[str, str] = {}
  commands = []
  if (folder / 'disturbance/disturbance.json').exists():
    document = Document.from_json(files.load_json(folder / 'disturbance/disturbance.json'))
    commands.append(document.command)
    header, lines = tables.read(folder / 'disturbance/disturbance.csv')
    rounded = ([_rounded(cell) for cell in line.values()] for line in lines)
    texts['disturbance'] = csv_text([_UNITS.get(name, name) for name in header], rounded)
  if (folder / 'replay.json').exists():
    summary = Summary.from_json(files.load_json(folder / 'replay.json'))
    commands.append(summary.command)
    names = [field.name for field in dataclasses.fields(Best)]
    told = ([_rounded(getattr(each, name)) for name in names] for each in summary.best)
    texts['best'] = csv_text([_BEST[name] for name in names], told)
    header, lines = tables.read(folder / 'replay.csv')
    shown = [*_ANSWERS, *(name for name in header if name.startswith(_SCORES))]
    answers = [[_rounded(line[name]) for name in shown] for line in lines if not line['linkage']]
    texts['answers'] = csv_text(shown, answers)
  return texts, commands


def _rounded(cell: object) -> object:
  """Returns a cell, with six digits where it is a fraction that has more; whole numbers and names stay as they are."""
  if not _FRACTION.fullmatch(str(cell)):
    return cell
  short = f'{float(str(cell)):.6g}'
  return short if len(short) < len(str(cell)) else cell
