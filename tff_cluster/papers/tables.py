"""A published table or figure: the experiment behind each row, and the numbers that were printed."""

import dataclasses
from collections.abc import Mapping
from typing import Any

# The columns of FL+HC's tables, in their order: means over clients of the test accuracy, and the share of clients at the
# target accuracy; right after the clustering (the first round of Phase 2), and in the last round.
COLUMNS = ('accuracy_after', 'accuracy_end', 'share_after', 'share_end')


@dataclasses.dataclass(frozen=True)
class Cell:
  """A printed cell.

  Attributes:
    percent: The number, in percent.
    ratio: The ratio to FedAvg without clusters in brackets behind it; None where a dash is printed there.
  """

  percent: float
  ratio: float | None


@dataclasses.dataclass(frozen=True)
class Row:
  """A row of a table, or the curve of a figure.

  Attributes:
    name: How the row is called, for instance 'cf 0.2, n 10' or 'cosine, average'.
    settings: The fields of the base experiment that this row changes, by name.
    clustering: The fields of its config.ClusteringConfig, by name; empty for FedAvg alone, which no other row of the
      table has with the same settings.
    cells: One a column of COLUMNS; None where the paper prints a dash for the whole cell. Empty for figures, whose
      curves are not printed as numbers, and for papers that print other columns.
  """

  name: str
  settings: Mapping[str, Any]
  clustering: Mapping[str, Any]
  cells: tuple[Cell | None, ...] = ()


@dataclasses.dataclass(frozen=True)
class Scale:
  """At which size a paper's experiments are run.

  Attributes:
    name: For instance 'small'.
    words: What was scaled down; empty at the paper's own size.
    changes: Fields of the experiment that it changes, by name.
    clustering: Fields of every row's clustering that it changes, by name.
    rounds: Rounds of both phases together; None: what the fields say.
  """

  name: str
  words: str
  changes: Mapping[str, Any]
  clustering: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  rounds: int | None = None


PAPER = Scale('paper', '', {})


@dataclasses.dataclass(frozen=True)
class Published:
  """A table or a figure.

  Attributes:
    name: For instance 'fl_hc/table5'.
    title: What it shows, in one line.
    source: Paper and number.
    preset: The base experiment: the stem of a file in flags/; empty for toy problems, which have none.
    rows: Its rows.
    note: What a reader must know of the printed numbers; empty where there is nothing.
    method: What the paper calls its method, for legends.
    small: The scale that --scale=small stands for.
  """

  name: str
  title: str
  source: str
  preset: str
  rows: tuple[Row, ...]
  note: str = ''
  method: str = 'FL+HC'
  small: Scale = PAPER

  @property
  def is_figure(self) -> bool:
    """Whether it is asked for by --figure."""
    return self.name.rpartition('/')[2].startswith('figure')

  def scale(self, name: str) -> Scale:
    """Returns the scale 'paper' or 'small'."""
    return PAPER if name == PAPER.name else self.small
