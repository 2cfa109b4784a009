"""Reproduces a published table or figure: runs what is missing, and sets our numbers beside the paper's.

  python -m phases.reproduce --table=fl_hc/table5 --data_dir=DIR --output_dir=runs/reproduce
  python -m phases.reproduce --table=rohith2020/table3 --scale=small --output_dir=runs/reproduce
  python -m phases.reproduce --figure=fl_hc/figure3 --scale=small --data_dir=DIR --output_dir=runs/reproduce
  python -m phases.reproduce --table=fl_hc/table2 --rows='cf 0.2' --seeds=0,1 --dry_run --output_dir=runs/reproduce
  python -m phases.reproduce --list --output_dir=runs/reproduce

All tables, figures and seeds below one --output_dir share a store, so that nothing is trained twice. Stopped, the
same command goes on. It ends with OUTPUT_DIR/TABLE/SCALE/index.html and scorecard.csv: each cell published, ours,
difference and verdict, and each claim of the paper as a check. The page shows the rows that earlier calls ran, too.
Figures of toy problems have no scale: OUTPUT_DIR/FIGURE/index.html.
Rows and seeds run side by side where there are cores and memory for it (--runs_in_parallel), or with --scheduler on a cluster
(docs/cluster.md).
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.engine import machine as machine_lib
from tff_cluster.papers import catalogue
from tff_cluster.scorecard.published import PAPER, Published
from tff_cluster.storage import output_folders


def define_flags() -> None:
  flags.define('reproduce', 'dry_run', 'list', 'run', 'machine', 'runs')


def main() -> None:
  options = parse.section_from_flags(flags.ReproduceOptions)
  dry = parse.section_from_flags(flags.DryRunOptions)
  run, machine = parse.run_options_from_flags(), parse.machine_from_flags()
  in_parallel = parse.runs_in_parallel_from_flags(machine)
  if run.config_file is not None:
    raise InputError('--config_file does not apply here; the table says what is run')
  if run.allow_imports:
    raise InputError('--allow_imports does not apply here; tables run nobody’s modules')
  named = options.table is not None or options.figure is not None
  if parse.section_from_flags(flags.ListOptions).list:
    refuse_all_but({'table', 'figure', 'list', 'output_dir'}, 'with --list, which runs nothing')
    list_runs(catalogue.find(options.table, options.figure) if named else None, Path(run.output_dir))
    return
  published = catalogue.find(options.table, options.figure)
  if published.compute is not None:
    reproduce_toy(published, published.compute, options, run)
    return
  seeds = parse.parse_seeds(options.seeds)
  root = output_folders.lock(run.output_dir)
  # Imported late: what is wrong with the flags or the folder is told at once.
  from tff_cluster.cli import cost_lines, progress
  from tff_cluster.phases import cost_estimates, early_checks
  from tff_cluster.studies import runs as studies_runs
  from tff_cluster.studies import runs_here
  from tff_cluster.studies.reproduction import page as page_lib
  from tff_cluster.studies.reproduction import runs as runs_lib

  scale = published.scale(options.scale)
  scale_line = f'scale {scale.name}{": " + scale.words if scale.words else ""}'
  jobs = runs_lib.plan(published, scale, seeds, root, options.data_dir, options.rows)
  target = root / published.name / scale.name
  page_lib.check_place(published, target)
  lines = {early_checks.check(job.config, machine, [job.folder.root]): None for job in jobs}
  store = Path(run.store_dir or root / output_folders.STORE)
  if not dry.dry_run:
    studies_runs.claimed(jobs, store)
  for line in filter(None, lines):
    print(line)
  shown = progress.Progress()
  if dry.dry_run:
    at_once = runs_here.how_many(jobs, machine, in_parallel)
    with_folds = [cost_estimates.with_folds(job) for job in jobs]
    planned = [run for runs in with_folds for run in runs]
    found = cost_estimates.estimates(planned, store, shown, runs_here.share(machine, at_once))
    print(scale_line)
    print(*cost_lines.estimate_lines(planned, found, at_once, list(map(len, with_folds))), sep='\n')
    return
  with shown:
    done = studies_runs.run_all(jobs, store, shown, machine, in_parallel)
  asked, trained = sum(d.asked for d in done), sum(d.trained for d in done)
  facts = {
    'command': parse.command('reproduce', sys.argv[1:]),
    'client-rounds': f'{asked:,} asked for, {trained:,} trained by this call',
  }
  ran = [(job, d.results) for job, d in zip(jobs, done, strict=True)]
  runs = runs_lib.finished(published, scale, root, ran)
  shown_run = jobs[0].folder.root if options.figure is not None else None
  with shown.phase('report'):
    page = page_lib.write(published, runs, scale, facts, target, shown_run)
  print(f'client-rounds: {asked} asked for, {trained} trained')
  print(scale_line)
  print(f'report {page.resolve()}')


def list_runs(published: Published | None, root: Path) -> None:
  """Prints what lies in a folder of reproductions and what is missing: of everything, or row by row of one table."""
  from tff_cluster.studies.kept import coverage

  if not root.is_dir():
    raise InputError(
      f'--output_dir={root}: no such folder; an empty one lists all tables and figures with their costs'
    )
  for line in coverage.lines(coverage.of_folder(root, published), with_rows=published is not None):
    print(line)


def refuse_all_but(names: set[str], why: str) -> None:
  """Raises InputError for the first flag that was given and is none of these."""
  kinds = (
    flags.ReproduceOptions,
    flags.DryRunOptions,
    flags.ListOptions,
    flags.RunOptions,
    flags.RunsOptions,
    machine_lib.Machine,
  )
  idle = sorted({name for kind in kinds for name in flags.given(kind)} - names)
  if idle:
    raise InputError(f'--{idle[0]} does not apply {why}')


def reproduce_toy(
  published: Published,
  compute: Callable[[int], Sequence[Any]],
  options: flags.ReproduceOptions,
  run: flags.RunOptions,
) -> None:
  """Computes a figure that has no experiment behind it."""
  name = published.name
  refuse_all_but(
    {'table', 'figure', 'seeds', 'output_dir'}, f'to {name}, which is computed at once and needs no data'
  )
  seeds = parse.parse_seeds(options.seeds)
  if len(seeds) > 1:
    raise InputError(f'--seeds={options.seeds}: {name} is drawn for one seed')
  root = output_folders.lock(run.output_dir)
  from tff_cluster.studies.reproduction import page as page_lib

  page_lib.check_place(published, root / name)
  results = {result.name: result for result in compute(seeds[0])}
  facts = {'command': parse.command('reproduce', sys.argv[1:]), 'seed': str(seeds[0])}
  page = page_lib.write_page(published, results, PAPER, facts, root / name)
  print(f'report {page.resolve()}')


if __name__ == '__main__':
  program.run(main, define_flags)
