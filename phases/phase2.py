"""Phase 2: every cluster runs federated averaging on its own (Rohith et al. 2020, section 6.2).

  python -m phases.phase2 --output_dir=runs/demo

Trains what the clusterings in --output_dir found, from the mean of each cluster's device weights or as cluster_start
says, and beside them the unclustered baseline for as many rounds, and clients with models of their own: alone
(--local_training), fine-tuned (--fine_tuning) and Ditto's (--ditto).
"""

from tff_cluster.cli import flags, parse, program
from tff_cluster.experiment import phase_files, run_claim
from tff_cluster.experiment.run_folder import RunFolder


def define_flags() -> None:
  flags.define('output_dir', 'export', 'machine')


def main() -> None:
  options, machine = parse.run_options_from_flags(), parse.machine_from_flags()
  export_models = parse.section_from_flags(flags.ExportOptions).export_models
  folder = RunFolder(run_claim.resume_output_dir(options.output_dir))
  config = folder.load_config()
  folder.load_finished(folder.phase1, phase_files.Phase1)
  for clustering in config.clusterings:
    folder.load_finished(folder.clusters(clustering.label), phase_files.Clusters)
  from tff_cluster.cli import progress
  from tff_cluster.phases import failures, personalization, phase1, phase2, session

  bars, failed = progress.Progress(), dict[str, Exception]()
  with session.opened(folder, config, bars, machine) as experiment:
    phase1.run_baseline(experiment)
    personalization.run(experiment)
    for clustering in config.clusterings:
      with failures.apart(failed, clustering.label):
        phase2.run_phase2(experiment, clustering.label, export_models)
  failures.end(folder, config, failed)
  print(f'Phase 2: {experiment.asked} client-rounds asked for, {experiment.trained} trained')
  print(folder.root)


if __name__ == '__main__':
  program.run(main, define_flags)
