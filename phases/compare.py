"""Compares clusterings with FedAvg and with one another, overlapping and disjoint ones, on the same Phase 1 and over several seeds.

  python -m phases.compare --flagfile=flags/compare_mixture.flags --seeds=0,1,2

Every --clustering is a row, beside FedAvg without clusters and, where they are asked for, clients with models of their
own (--local_training: alone, --fine_tuning: fine-tuned FedAvg, --ditto: Ditto) and the planted groups (--clustering=planted). --overlap_dial=7 also turns the threshold of dynamic
distance from every client alone to all together. It ends with OUTPUT_DIR/index.html, comparison.csv
and comparison.json: differences client by client, with intervals over seeds and clients, at equal rounds and at equal
cost (--budget). Stopped, the same command goes on; the run of a seed lies in OUTPUT_DIR/seed_SEED.
Seeds run side by side where there are cores and memory for it (--runs_in_parallel), or with --scheduler on a cluster (docs/cluster.md).

With --setting=NAME,partition=...,..., which may be repeated, the same is done on the data of each setting, in OUTPUT_DIR/NAME, and
OUTPUT_DIR/index.html, league.csv and league.json rank the methods over all of them:

  python -m phases.compare --flagfile=flags/league_digits.flags
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.clustering import overlap_dial
from tff_cluster.experiment.result_parts import SummaryLine
from tff_cluster.phases import early_checks
from tff_cluster.storage import files as files_lib
from tff_cluster.storage import output_folders

if TYPE_CHECKING:
  from tff_cluster.cli import progress
  from tff_cluster.scorecard import contenders


def define_flags() -> None:
  flags.define(
    'data', 'training', 'clusterings', 'evaluation', 'compare', 'dry_run', 'run', 'machine', 'runs'
  )


def main() -> None:
  options = parse.section_from_flags(flags.CompareOptions)
  run, machine = parse.run_options_from_flags(), parse.machine_from_flags()
  in_parallel = parse.runs_in_parallel_from_flags(machine)
  for name, section in (('seed', flags.SECTIONS['training']), ('data_seed', flags.SECTIONS['data'])):
    if name in flags.given(section):
      raise InputError(f'--{name} does not apply here; give --seeds, and each seed draws data and training')
  config = parse.experiment_config_from_flags()
  config = config.with_clusterings(overlap_dial.positions(config.clusterings, options.overlap_dial))
  seeds = parse.parse_seeds(options.seeds)
  # Imported late: what is wrong with the flags is told at once.
  from tff_cluster.studies.comparison import own_folder
  from tff_cluster.studies.comparison import runs as comparison
  from tff_cluster.studies.league import own_folder as league_folder
  from tff_cluster.studies.league import settings as league

  settings = league.read(options.setting, config)
  root = Path(run.output_dir)
  planned = league.plan(settings, seeds, root) if settings else comparison.plan(config, seeds, root)
  each_setting = [planned[first : first + len(seeds)] for first in range(0, len(planned), len(seeds))]
  lines = {
    early_checks.check(some[0].config, machine, [run.folder.root for run in some]): None
    for some in each_setting
  }
  dry = parse.section_from_flags(flags.DryRunOptions)
  root = output_folders.lock(run.output_dir)
  if settings:
    league_folder.check(root, settings, seeds)
  else:
    own_folder.check(root, config, seeds)
  # Imported late: what is wrong with the flags or the folder is told at once.
  from tff_cluster.cli import cost_lines, progress
  from tff_cluster.phases import cost_estimates
  from tff_cluster.studies import runs, runs_here

  store = Path(run.store_dir or root / output_folders.STORE)
  shown = progress.Progress()
  if dry.dry_run:
    at_once = runs_here.how_many(planned, machine, in_parallel)
    found = cost_estimates.estimates(planned, store, shown, runs_here.share(machine, at_once))
    print(*cost_lines.estimate_lines(planned, found, at_once), sep='\n')
    return
  runs.claimed(planned, store)
  for line in filter(None, lines):
    print(line)
  with shown:
    done = runs.run_all(planned, store, shown, machine, in_parallel)
  asked, trained = sum(d.asked for d in done), sum(d.trained for d in done)
  facts = {
    'command': parse.command('compare', sys.argv[1:]),
    'client-rounds': f'{asked:,} asked for, {trained:,} trained by this call',
  }
  results = [d.results for d in done]
  spent = f'client-rounds: {asked} asked for, {trained} trained'
  if not options.setting:
    _write_comparison(list(zip(seeds, results, strict=True)), facts, root, shown, spent)
    return
  by_setting = {
    setting.name: list(zip(seeds, results[len(seeds) * i :], strict=False))
    for i, setting in enumerate(settings)
  }
  _write_league(by_setting, facts, root, shown, spent)


def _write_comparison(
  finished: 'contenders.Runs',
  facts: Mapping[str, str],
  root: Path,
  shown: 'progress.Progress',
  spent: str | None = None,
) -> None:
  """Writes the page of one setting, and prints what it came to, and what was spent where that is told."""
  from tff_cluster.report import finished_run
  from tff_cluster.report.atlas import page as atlas
  from tff_cluster.scorecard import summary
  from tff_cluster.studies.comparison import page as pages

  arrays = {seed: finished_run.read_run(root / f'seed_{seed}').arrays for seed, _ in finished}
  with shown.phase('report'):
    page = pages.write(finished, facts, root, arrays)
  lines = [SummaryLine.from_json(line) for line in files_lib.load_json(root / 'comparison.json')['summary']]
  for line in summary.words(lines, 'seeds and clients'):
    print(line)
  if spent is not None:
    print(spent)
  print(f'atlas {page.with_name(atlas.NAME).resolve()}')
  print(f'report {page.resolve()}')


def _write_league(
  by_setting: Mapping[str, 'contenders.Runs'],
  facts: Mapping[str, str],
  root: Path,
  shown: 'progress.Progress',
  spent: str,
) -> None:
  """Writes the pages of all settings and the one above them, and prints the answer."""
  from tff_cluster.studies.league import page as pages

  for name, finished in by_setting.items():
    print(f'{name}:')
    _write_comparison(finished, facts, root / name, shown)
  with shown.phase('league'):
    page = pages.write(by_setting, facts, root)
  for sentence in next(iter(files_lib.load_json(root / 'league.json')['answer'].values())):
    print(sentence)
  print(spent)
  print(f'league {page.resolve()}')


if __name__ == '__main__':
  program.run(main, define_flags)
