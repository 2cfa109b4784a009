"""Kept results: a folder with small tables, pictures and provenance.json for each set of runs that the documentation speaks of.

A column's unit stands in brackets in its header ('accuracy [%]'), or in a column named `unit`.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tff_cluster.base import records
from tff_cluster.base.environment import ENGINE
from tff_cluster.base.errors import InputError
from tff_cluster.base.types import Json
from tff_cluster.experiment import config_file
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.storage import files, tables, temporary_folder
from tff_cluster.storage.files import write_file
from tff_cluster.storage.tables import plain_text

FILE = 'provenance.json'
# The runs themselves (runs_archive.py); kept before there were archives, a result has none.
RUNS = 'runs.tar.xz'
TABLE = 'table'
_UNIT = re.compile(r' \[([^]]*)\]$')


@dataclasses.dataclass(frozen=True)
class Provenance(records.Record):
  """Where kept tables come from.

  Attributes:
    title: What was run, in a line.
    commands: What makes it again; DIR stands for a folder of data.
    published: Rows that were run, by the name of a published table or figure; empty for studies of our own.
    scale: 'paper', 'small', 'toy', or empty for studies of our own.
    setting: The experiment in words.
    scaled_down: What is smaller than in the paper; empty where nothing is.
    seeds, data_seeds: Of training, and of data.
    engine: The ENGINE that trained; 0 for what trains nothing.
    origin: How the tables came here.
    commit, machine, date, minutes: Where, when and how long it was run, since it last went on; empty or None where nobody wrote it down.
    schema: Of results.json; None where none was kept.
    digests: Of the results, by run; as far as they are known.
    configurations: Experiments, of the first seed; empty where none was kept.
    judged: The commit by whose claims the scorecard was judged, where that was later than the run.
  """

  title: str
  commands: list[str]
  published: dict[str, list[str]]
  scale: str
  setting: str
  scaled_down: str
  seeds: list[int]
  data_seeds: list[int]
  engine: int
  origin: str
  commit: str
  machine: str
  date: str
  minutes: float | None
  schema: int | None
  digests: dict[str, str]
  configurations: list[dict[str, Json]]
  judged: str = records.optional('')


@dataclasses.dataclass(frozen=True)
class Table:
  """A kept table: names and units of its columns, and its lines as text by name."""

  units: Mapping[str, str]
  lines: Sequence[Mapping[str, str]]


@dataclasses.dataclass(frozen=True)
class Kept:
  """A folder of kept results, whose tables are read once."""

  folder: Path
  provenance: Provenance
  _read: dict[str, Table] = dataclasses.field(default_factory=dict, repr=False, compare=False)

  @property
  def name(self) -> str:
    return self.folder.name

  @property
  def stale(self) -> bool:
    """Whether an older engine trained it, so that the same command gives other bits today."""
    return 0 < self.provenance.engine < ENGINE

  def table(self, name: str = TABLE) -> Table:
    """Returns a table of the folder; raises InputError where it is not there or no table."""
    if name not in self._read:
      self._read[name] = _table(self.folder / f'{name}.csv')
    return self._read[name]

  @property
  def tables(self) -> list[str]:
    return sorted(path.stem for path in self.folder.glob('*.csv'))

  def lines(self, of: str = TABLE, **where: str) -> list[Mapping[str, str]]:
    """Returns the lines of a table in which columns have these texts.

    Raises:
      InputError: if there is no such column.
    """
    found = self.table(of)
    for column in where.keys() - found.units.keys():
      raise InputError(f'{self.name}/{of}.csv: no column {column!r}; it has {", ".join(found.units)}')
    return [line for line in found.lines if all(line[column] == text for column, text in where.items())]

  def numbers(self, column: str, /, of: str = TABLE, **where: str) -> list[float]:
    """Returns the numbers of a column, of all lines or of those `where`; empty cells are passed over."""
    if column not in self.table(of).units:
      raise InputError(f'{self.name}/{of}.csv: no column {column!r}')
    return [self._number(line, column) for line in self.lines(of, **where) if line[column]]

  def number(self, column: str, /, of: str = TABLE, **where: str) -> float:
    """Returns the one number of a column in the lines `where`; raises InputError where there is none, or several."""
    found = self.numbers(column, of, **where)
    if len(found) != 1:
      raise InputError(f'{self.name}/{of}.csv: {len(found)} numbers {column!r} where {where}, expected one')
    return found[0]

  def _number(self, line: Mapping[str, str], column: str) -> float:
    try:
      return float(line[column])
    except ValueError:
      raise InputError(f'{self.name}: {column!r} is {line[column]!r}, which is no number') from None


def read(folder: Path) -> Kept:
  """Returns the kept results of a folder.

  Raises:
    InputError: if it has no provenance.json, or one that is no Provenance.
  """
  try:
    return Kept(folder, Provenance.from_json(files.load_json(folder / FILE)))
  except FileNotFoundError:
    raise InputError(f'{folder} has no {FILE}; every kept result says where it comes from') from None
  except records.Mismatch as error:
    raise InputError(f'{folder / FILE} {error}') from error


def read_all(folder: Path) -> dict[str, Kept]:
  """Returns all kept results below a folder, by name.

  Raises:
    InputError: if a folder has no provenance.json, or one that is no Provenance.
  """
  found = (path for path in sorted(folder.iterdir()) if path.is_dir())
  return {path.name: read(path) for path in found if not temporary_folder.is_one(path.name)}


def check_place(folder: Path, provenance: Provenance) -> None:
  """Looks whether results may take the place of what a folder holds.

  Raises:
    InputError: where it holds files, and none of them says that it is of kept results, or those of another experiment.
  """
  if not folder.exists() or not any(folder.iterdir()):
    return
  if not (folder / FILE).exists():
    raise InputError(
      f'{folder} has files and no {FILE}, so it is no folder of kept results; give another name'
    )
  if words := _difference(read(folder).provenance, provenance):
    raise InputError(
      f'{folder} holds what was kept of another experiment: {words}; give another name, or remove the folder first'
    )


def _difference(there: Provenance, here: Provenance) -> str | None:
  """Returns in words what tells the experiments of kept results apart; None where those that are there are among these."""
  if there.scale != here.scale:
    return f'scale is {there.scale or "not given"} there and {here.scale or "not given"} here'
  if not there.configurations:
    known = there.published and there.published.keys() <= here.published.keys()
    return None if known else f'it is {", ".join(there.published) or there.title!r}'
  ours = list(map(ExperimentConfig.read, here.configurations))
  for each in map(ExperimentConfig.read, there.configurations):
    found = [config_file.difference_beside_seeds(each, other) for other in ours]
    if None not in found:
      return found[0] if found else 'it has runs'
  return None


def write(folder: Path, provenance: Provenance, texts: Mapping[str, str], pictures: Sequence[Path]) -> None:
  """Writes a folder of kept results: tables as CSV text by name, pictures as they are, and then the provenance."""
  for name, text in texts.items():
    write_file(folder / f'{name}.csv', text)
  for path in pictures:
    write_file(folder / path.name, tables.text(path))
  files.save_json(folder / FILE, provenance, seal=False)


def _table(path: Path) -> Table:
  try:
    header, lines = tables.read(path)
  except FileNotFoundError:
    raise InputError(f'{path} is not there') from None
  names = [_UNIT.sub('', column) for column in header]
  units = {
    name: found[1] if (found := _UNIT.search(column)) else ''
    for name, column in zip(names, header, strict=True)
  }
  return Table(units, [dict(zip(names, map(plain_text, line.values()), strict=True)) for line in lines])
