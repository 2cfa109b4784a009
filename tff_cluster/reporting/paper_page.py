"""What a paper has of its own on the page of a reproduction, where its tables are not those of FL+HC."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tff_cluster.papers import tables
from tff_cluster.reporting.markup import Markup
from tff_cluster.reporting.pictures import Picture
from tff_cluster.reporting.table_scorecard import Line

if TYPE_CHECKING:
  from tff_cluster.reporting.table_claims import Reproduced

# Rows in the order of a run's clusterings, seed and results.json, one a run.
Runs = Sequence[tuple[Sequence[tables.Row], int, Mapping[str, Any]]]


@dataclasses.dataclass(frozen=True)
class PaperPage:
  """What takes the place of the columns of FL+HC.

  Attributes:
    scorecard: The lines of a table or figure, of our rows by name, the scale's name and what it scaled down.
    sections: Headings and contents that follow the claims: of the table or figure, our rows by name, those lines, and
      what was scaled down (empty at the paper's scale).
    draw: Saves pictures in a folder: of the table or figure, its runs, what was scaled down, and the folder.
  """

  scorecard: 'Callable[[tables.Published, Mapping[str, Reproduced], str, str], list[Line]]'
  sections: 'Callable[[tables.Published, Mapping[str, Reproduced], Sequence[Line], str], list[tuple[str, list[Markup]]]]'
  draw: Callable[[tables.Published, Runs, str, Path], list[Picture]]
