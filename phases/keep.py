"""Keeps what finished runs found as small tables with their provenance, of which the pages of docs/results/ are made.

  python -m phases.keep --output_dir=runs/reproduce/fl_hc/table2/paper --name=fl_hc_table2
  python -m phases.keep --output_dir=runs/compare_mixture --name=compare_mixture --figures=gains

--output_dir is the folder of a comparison, a league or a run. The run may be a Phase 1 alone, if phases.replay or phases.disturb
has written its answers there. Of a reproduction it is OUTPUT_DIR/TABLE/SCALE. The program writes into KEPT_DIR/NAME/ and replaces what
was kept there of the same experiment; it refuses a folder that holds another experiment, and leaves your own files alone. It
writes CSV tables with units, the figures that are named, provenance.json with command, configurations, seeds, commit, engine,
digests, machine and date, and runs.tar.xz. Unpacked into an output folder, this archive lets the same command go on there with more
seeds, on this machine or another one, without training again what it holds. Then `make docs` writes the pages. The program
trains nothing.
"""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.storage import files, temporary_folder

if TYPE_CHECKING:
  from tff_cluster.studies.kept import results


def define_flags() -> None:
  flags.define('keep', 'output_dir')


def main() -> None:
  options = parse.section_from_flags(flags.KeepOptions)
  folder = parse.output_dir_from_flags()
  if Path(options.name).name != options.name or options.name in ('', '..'):
    said = f'--name={options.name}' if options.name else '--name is missing'
    raise InputError(f'{said}: give the name of a folder, for instance --name=fl_hc_table2')
  # Imported late: what is wrong with the flags is told at once.
  from tff_cluster.studies.kept import keep, runs_archive
  from tff_cluster.studies.kept import results as results_lib

  drawn = keep.pictures_of(folder)
  wanted = [name for name in options.figures.split(',') if name]
  for name in wanted:
    if name not in drawn:
      raise InputError(
        f'--figures={options.figures}: {folder} has no picture {name}; there are {", ".join(sorted(drawn)) or "none"}'
      )
  pictures = [drawn[name] for name in wanted]
  made = keep.of_folder(folder.resolve())
  given = {
    field: value
    for field in ('title', 'setting', 'scaled_down', 'machine')
    if (value := getattr(options, field))
  }
  told = dataclasses.replace(made.provenance, **given)
  target = Path(options.kept_dir) / options.name
  results_lib.check_place(target, told)
  if not told.commands:
    told = dataclasses.replace(told, commands=commands(told, made.seeds, target))
  for place, stands_for in (('data_dir', 'DIR'), ('data_file', 'FILE')):
    if reads(told, place) and not any(f'--{place}' in command for command in told.commands):
      commands_there = [f'{command} --{place}={stands_for}' for command in told.commands]
      told = dataclasses.replace(told, commands=commands_there)
  # These read the clients that the run saved.
  asked = [f'{command} --output_dir={shlex.quote(f"runs/{target.name}")}' for command in made.asked]
  told = dataclasses.replace(told, commands=[*told.commands, *asked])
  figures = (path.name for path in drawn.values())
  ours = {*(f'{name}.csv' for name in keep.TABLES), *figures, 'config.json', results_lib.RUNS}
  with temporary_folder.replacing(target, ours, results_lib.FILE) as new:
    if 'config.json' in ' '.join(told.commands):
      files.save_json(new / 'config.json', told.configurations[0], seal=False)
    runs_archive.write(new / results_lib.RUNS, folder.resolve())
    results_lib.write(new, told, made.texts, pictures)
  print(f'kept {target}: {", ".join(sorted(made.texts))}')


def reads(known: 'results.Provenance', place: str) -> bool:
  """Tells whether runs read data from a place (data_dir or data_file), which is everybody's own, so that their files do not tell it."""
  from tff_cluster.data import datasets
  from tff_cluster.experiment.config import ExperimentConfig

  kinds = {name.partition(':')[0] for name in datasets.with_option(place)}
  # Not validated: the places are left out of them.
  read = (ExperimentConfig.read(each).data.dataset for each in known.configurations)
  return any(name.partition(':')[0] in kinds for name in read)


def commands(known: 'results.Provenance', seeds: Mapping[str, Sequence[int]], target: Path) -> list[str]:
  """Returns the command lines that make kept runs again, where their own files do not tell them; a single run has its config.json kept.

  Args:
    known: What is kept.
    seeds: Of each row of a table that was run.
    target: Where it is kept.
  """
  from tff_cluster.experiment import config_file
  from tff_cluster.papers import catalogue

  found = []
  if len(known.configurations) == 1 and set(known.digests) <= {''}:
    program = 'run_all' if known.digests else 'phase1'
    allowing = ' --allow_imports' if config_file.code_of(known.configurations[0]) else ''
    config, place = (shlex.quote(each) for each in (f'{target}/config.json', f'runs/{target.name}'))
    return [f'python -m phases.{program} --config_file={config}{allowing} --output_dir={place}']
  told = {row: ','.join(map(str, some)) for row, some in seeds.items()}
  for table, rows in known.published.items():
    published = catalogue.PUBLISHED[table]
    kind = 'figure' if published.is_figure else 'table'
    start = f'python -m phases.reproduce --{kind}={table}'
    where = '--output_dir=runs/reproduce'
    if known.scale == 'toy':
      found.append(f'{start} {where}')
    elif len(rows) == len(published.rows) and len(set(told.values())) == 1:
      found.append(f'{start} --scale={known.scale} --seeds={told[rows[0]]} {where}')
    else:
      found += [f"{start} --scale={known.scale} --rows='{row}' --seeds={told[row]} {where}" for row in rows]
  return found


if __name__ == '__main__':
  program.run(main, define_flags)
