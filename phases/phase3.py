"""Phase 3: average, weighted and blended aggregation of the cluster models (Rohith et al. 2020, section 6.3).

Rules of your own, where the run has them (--aggregation), stand beside these.
New clients, where the run has them (--new_clients), are assigned to clusters and measured here too.

python -m phases.phase3 --output_dir=runs/demo
"""

from tff_cluster.cli import flags, parse, program
from tff_cluster.experiment import phase_files, run_claim
from tff_cluster.experiment.run_folder import RunFolder


def define_flags() -> None:
  flags.define('output_dir', 'machine')


def main() -> None:
  options, machine = parse.run_options_from_flags(), parse.machine_from_flags()
  folder = RunFolder(run_claim.resume_output_dir(options.output_dir))
  config = folder.load_config()
  for clustering in config.clusterings:
    folder.load_finished(folder.phase2(clustering.label), phase_files.Phase2)
  from tff_cluster.cli import progress
  from tff_cluster.phases import added_rules, failures, new_clients, phase3, session

  bars, failed = progress.Progress(), dict[str, Exception]()
  with session.opened(folder, config, bars, machine) as experiment:
    for clustering in config.clusterings:
      with failures.apart(failed, clustering.label):
        phase3.run_phase3(experiment, clustering.label)
        new_clients.run_clustering(experiment, clustering)
        added_rules.run(experiment, clustering.label, failed)
    new_clients.run_baseline(experiment)
  failures.end(folder, config, failed)
  print(folder.root / 'phase3')


if __name__ == '__main__':
  program.run(main, define_flags)
