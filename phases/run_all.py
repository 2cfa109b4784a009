"""The main job: Phase 1, any number of clusterings of it, Phase 2, Phase 3 and the report.

  python -m phases.run_all --flagfile=flags/demo.flags --output_dir=runs/demo

Given again, the same command goes on where it stopped and ends with the same numbers.
"""

from tff_cluster.cli import flags, output, parse, program
from tff_cluster.run_folder import RunFolder


def define_flags() -> None:
  flags.define('data', 'training', 'clusterings', 'evaluation', 'run')


def main() -> None:
  options = parse.run_options_from_flags()
  config = parse.experiment_config_from_flags()
  folder = RunFolder(output.claim_output_dir(options.output_dir, config))
  output.share_store(folder.root, options.store_dir)
  from tff_cluster.algorithms import cross_validation, main_job
  from tff_cluster.reporting import progress, report

  machine = (options.clients_in_parallel, options.worker_start_timeout_secs)
  config, bars = folder.load_config(), progress.Progress()
  done = main_job.run(folder, config, bars, *machine)
  if config.evaluation.num_folds:
    done = cross_validation.run(folder, config, done, bars, *machine)
  page = report.write_report(folder.root)
  print(f'client-rounds: {done.asked} asked for, {done.trained} trained')
  print(f'digest {done.results["digest"]}')
  print(f'report {page.resolve()}')


if __name__ == '__main__':
  program.run(main, define_flags)
