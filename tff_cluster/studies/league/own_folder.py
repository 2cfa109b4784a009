"""The output folder of a league: that of one experiment and its settings, and nobody's files are written over."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tff_cluster.experiment import run_claim
from tff_cluster.storage import output_files
from tff_cluster.studies.comparison import own_folder
from tff_cluster.studies.league.settings import Setting

# The first is written first.
WRITTEN = ('league.json', 'league.csv', 'index.html', 'figures')


def check(root: Path, settings: Sequence[Setting], seeds: Sequence[int]) -> None:
  """Looks whether settings can be compared in a folder, whose page has no other ones; raises as comparison.own_folder.check does."""
  run_claim.check_no_run(root)
  for setting in settings:
    own_folder.check(root / setting.name, setting.config, seeds)
  names = {setting.name for setting in settings}
  output_files.check(root, WRITTEN, lambda content: _is_own(own_folder.read(content), names))


def _is_own(found: Mapping[str, Any], names: Collection[str]) -> bool:
  there = found.get('settings')
  return (
    'standings' in found
    and isinstance(there, list)
    and bool(there)
    and all(name in names for name in map(str, there))
  )
