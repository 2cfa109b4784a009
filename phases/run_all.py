"""The main job: Phase 1, any number of clusterings of it, Phase 2, Phase 3 and the report.

  python -m phases.run_all --flagfile=flags/demo.flags --output_dir=runs/demo

Given again, the same command goes on where it stopped and ends with the same numbers.
"""

from pathlib import Path

from tff_cluster.algorithms import early
from tff_cluster.cli import flags, output, parse, program
from tff_cluster.reporting import words
from tff_cluster.run_folder import RunFolder


def define_flags() -> None:
  flags.define('data', 'training', 'clusterings', 'evaluation', 'run', 'export', 'machine')


def main() -> None:
  options, machine = parse.run_options_from_flags(), parse.machine_from_flags()
  export_models = parse.section_from_flags(flags.ExportOptions).export_models == 'yes'
  config = parse.experiment_config_from_flags()
  memory = early.check(config, machine, [Path(options.output_dir)])
  output.claim_output_dir(options.output_dir, config, options.store_dir)
  # Imported late: what is wrong with the flags or the folder is told at once.
  from tff_cluster import api
  from tff_cluster.algorithms import three_phase
  from tff_cluster.reporting import progress

  if memory:
    print(memory)
  try:
    done = api.run_experiment(
      config,
      options.output_dir,
      options.store_dir,
      progress.Progress(),
      machine,
      export_models,
      report=True,
    )
  except three_phase.ClusteringsFailed as failed:
    if failed.report is not None:
      print(f'report {failed.report.resolve()}')
    raise
  assert done.report is not None
  print(f'client-rounds: {done.asked} asked for, {done.trained} trained')
  print(f'on disk {words.sizes(RunFolder(Path(options.output_dir)).sizes())}')
  print(f'digest {done.results["digest"]}')
  print(f'report {done.report.resolve()}')


if __name__ == '__main__':
  program.run(main, define_flags)
