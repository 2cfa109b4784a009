"""The main job: Phase 1, any number of clusterings of it, Phase 2, Phase 3 and the report.

  python -m phases.run_all --flagfile=flags/demo.flags --output_dir=runs/demo

Given again, the same command goes on where it stopped and ends with the same numbers.
"""

from pathlib import Path

from tff_cluster.algorithms import early
from tff_cluster.cli import flags, output, parse, program


def define_flags() -> None:
  flags.define('data', 'training', 'clusterings', 'evaluation', 'run', 'machine')


def main() -> None:
  options, machine = parse.run_options_from_flags(), parse.machine_from_flags()
  config = parse.experiment_config_from_flags()
  memory = early.check(config, machine, [Path(options.output_dir)])
  output.claim_output_dir(options.output_dir, config)
  # Imported late: what is wrong with the flags or the folder is told at once.
  from tff_cluster.algorithms import run_experiment
  from tff_cluster.reporting import progress, report

  if memory:
    print(memory)
  done = run_experiment.run_experiment(
    config,
    options.output_dir,
    options.store_dir,
    progress.Progress(),
    machine,
  )
  page = report.write_report(Path(options.output_dir))
  print(f'client-rounds: {done.asked} asked for, {done.trained} trained')
  print(f'digest {done.results["digest"]}')
  print(f'report {page.resolve()}')


if __name__ == '__main__':
  program.run(main, define_flags)
