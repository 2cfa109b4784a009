"""Compares clusterings, overlapping with disjoint ones, on the same Phase 1 and over several seeds.

  python -m phases.compare --flagfile=flags/compare_mixture.flags --seeds=0,1,2,3,4

Every --clustering is a row, beside FedAvg without clusters and, where they are asked for, every client alone
(--local_training) and the planted groups (--clustering=planted). --overlap_dial=7 also turns the threshold of dynamic
distance from every client alone to all together. It ends with OUTPUT_DIR/index.html, comparison.csv
and comparison.json: differences client by client, with intervals over seeds and clients, at equal rounds and at equal
client-rounds. Stopped, the same command goes on; the run of a seed lies in OUTPUT_DIR/seed_SEED.
With --scheduler seeds run side by side on a cluster (docs/cluster.md).
"""

import sys
from pathlib import Path

from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.clustering import overlap_dial
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.result_parts import SummaryLine
from tff_cluster.phases import early_checks
from tff_cluster.storage import files as files_lib


def define_flags() -> None:
  flags.define('data', 'training', 'clusterings', 'evaluation', 'compare', 'dry_run', 'run', 'machine')


def main() -> None:
  options = parse.section_from_flags(flags.CompareOptions)
  run, machine = parse.run_options_from_flags(), parse.machine_from_flags()
  for name, section in (('seed', flags.SECTIONS['training']), ('data_seed', flags.SECTIONS['data'])):
    if name in flags.given(section):
      raise InputError(f'--{name} does not apply here; give --seeds, and each seed draws data and training')
  config = parse.experiment_config_from_flags()
  config = config.with_clusterings(overlap_dial.positions(config.clusterings, options.overlap_dial))
  seeds = parse.parse_seeds(options.seeds)
  memory = early_checks.check(config, machine, [Path(run.output_dir) / f'seed_{seed}' for seed in seeds])
  dry = parse.section_from_flags(flags.DryRunOptions)
  root = run_claim.lock_output_dir(run.output_dir)
  # Imported late: what is wrong with the flags or the folder is told at once.
  from tff_cluster.cli import cost_lines, progress
  from tff_cluster.phases import cost_estimates
  from tff_cluster.report import finished_run
  from tff_cluster.report.atlas import page as atlas
  from tff_cluster.scorecard import summary
  from tff_cluster.studies.comparison import page as pages
  from tff_cluster.studies.comparison import runs

  store = Path(run.store_dir or root / 'store')
  shown = progress.Progress()
  if dry.dry_run:
    found = cost_estimates.estimates(runs.plan(config, seeds, root), store, shown, machine)
    names = [f'seed {seed}' for seed in seeds]
    print(*cost_lines.estimate_lines(cost_estimates.entries(names, found)), sep='\n')
    return
  for planned in runs.plan(config, seeds, root):
    run_claim.claim_output_dir(planned.folder.root, planned.config, str(store))
  store.mkdir(parents=True, exist_ok=True)
  if memory:
    print(memory)
  with shown:
    done = runs.run(config, seeds, root, store, shown, machine)
  asked, trained = sum(d.asked for _, d in done), sum(d.trained for _, d in done)
  facts = {
    'command': parse.command('compare', sys.argv[1:]),
    'client-rounds': f'{asked:,} asked for, {trained:,} trained by this call',
  }
  arrays = {seed: finished_run.read_run(root / f'seed_{seed}').arrays for seed in seeds}
  with shown.phase('report'):
    page = pages.write([(seed, d.results) for seed, d in done], facts, root, arrays)
  lines = [SummaryLine.from_json(line) for line in files_lib.load_json(root / 'comparison.json')['summary']]
  for line in summary.words(lines, 'seeds and clients'):
    print(line)
  print(f'client-rounds: {asked} asked for, {trained} trained')
  print(f'atlas {page.with_name(atlas.NAME).resolve()}')
  print(f'report {page.resolve()}')


if __name__ == '__main__':
  program.run(main, define_flags)
