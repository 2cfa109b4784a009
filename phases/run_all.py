"""The main job: Phase 1, any number of clusterings of it, Phase 2, Phase 3 and the report.

  python -m phases.run_all --flagfile=flags/demo.flags --output_dir=runs/demo

Given again, the same command goes on where it stopped and ends with the same numbers.
"""

from pathlib import Path

from tff_cluster.base import words
from tff_cluster.cli import flags, parse, program
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import early_checks

# What the installed program calls it.
COMMAND = 'run'


def define_flags() -> None:
  flags.define('data', 'training', 'clusterings', 'evaluation', 'dry_run', 'run', 'export', 'machine')


def main() -> None:
  options, machine = parse.run_options_from_flags(), parse.machine_from_flags()
  export_models = parse.section_from_flags(flags.ExportOptions).export_models
  config = parse.experiment_config_from_flags()
  memory = early_checks.check(config, machine, [Path(options.output_dir)])
  claim = run_claim.claim_output_dir(options.output_dir, config, options.store_dir)
  if parse.section_from_flags(flags.DryRunOptions).dry_run:
    tell_costs(claim, machine)
    return
  # Imported late: what is wrong with the flags or the folder is told at once.
  from tff_cluster.cli import progress
  from tff_cluster.phases import failures
  from tff_cluster.report import malicious_section
  from tff_cluster.scorecard import summary
  from tff_cluster.studies import single_run

  if memory:
    print(memory)
  try:
    with progress.Progress() as shown:
      done = single_run.run_experiment(
        config,
        options.output_dir,
        options.store_dir,
        shown,
        machine,
        export_models,
        report=True,
      )
  except failures.ClusteringsFailed as failed:
    if failed.report is not None:
      print(f'report {failed.report.resolve()}')
    raise
  assert done.report is not None
  for line in summary.words(done.results.summary, 'clients'):
    print(line)
  if caution := malicious_section.caution_of(done.results):
    print(caution)
  print(f'client-rounds: {done.asked} asked for, {done.trained} trained')
  print(f'on disk {words.sizes(RunFolder(Path(options.output_dir)).sizes())}')
  print(f'digest {done.results.digest}')
  print(f'report {done.report.resolve()}')


def tell_costs(claim: run_claim.Claim, machine: machine_lib.Machine) -> None:
  """Prints what is stored of a run, what is missing and how long that would take; nothing is written."""
  from tff_cluster.cli import cost_lines, progress
  from tff_cluster.phases import cost_estimates

  runs = cost_estimates.with_folds(cost_estimates.Run(claim.folder.root.name, claim.config, claim.folder))
  store = Path(claim.store_dir) if claim.store_dir else None
  found = cost_estimates.estimates(runs, store, progress.Progress(), machine)
  print(*cost_lines.estimate_lines(runs, found), sep='\n')


if __name__ == '__main__':
  program.run(main, define_flags)
