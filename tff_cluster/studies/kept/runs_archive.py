"""What the phases of kept runs saved, in one file: unpacked into an output folder, the same command trains none of them again.

So a table grows by seeds and rows over sessions and machines, and later rules judge it without a round of training. Models and
clients are not in it: clients are made anew, and must be those that Phase 1 saw.
"""

import dataclasses
import os
from pathlib import Path

from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.papers import catalogue
from tff_cluster.storage import sealed_json, travel
from tff_cluster.studies.kept import keep


def write(path: Path, folder: Path) -> bool:
  """Writes an archive of the runs that the tables of a folder hold, if there are any, and tells whether; equal runs give equal bytes.

  Args:
    path: The archive.
    folder: What phases.keep keeps; see keep.of_folder. Files have the names that they have in the output folder of the command
      that made the runs.
  """
  is_table = '/'.join(folder.parts[-3:-1]) in catalogue.PUBLISHED and not (folder / 'results.json').exists()
  root = folder.parents[2] if is_table else folder
  runs = [RunFolder(found) for found in keep.runs_of(folder)]
  found: dict[str, bytes] = {}
  for run in runs:
    found |= travel.read(run.saved_by_phases(), root)
    for each in (run, *run.folds()):
      if (name := str(each.config.relative_to(root))) in found:
        found[name] = _anybodys(each)
  if found:
    travel.pack(path, found)
  return bool(found)


def _anybodys(run: RunFolder) -> bytes:
  """Returns config.json without the places of data, which are one machine's and no part of an experiment."""
  config = run.load_config()
  name = config.data.data_file and os.path.basename(config.data.data_file)
  data = dataclasses.replace(config.data, data_dir=None, data_file=name)
  return sealed_json.seal(dataclasses.replace(config, data=data).to_json())
