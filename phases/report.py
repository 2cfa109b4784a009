"""Puts the results of a run together: results.json, report.html and the figures. Trains nothing.

python -m phases.report --output_dir=runs/demo
"""

from tff_cluster.cli import flags, parse, program
from tff_cluster.experiment import phase_files, run_claim
from tff_cluster.experiment.run_folder import RunFolder


def define_flags() -> None:
  flags.define('output_dir')


def main() -> None:
  folder = RunFolder(run_claim.resume_output_dir(parse.output_dir_from_flags()))
  config = folder.load_config()
  labels = [clustering.label for clustering in config.clusterings]
  parts = [
    (folder.phase1, phase_files.Phase1),
    *((folder.clusters(label), phase_files.Clusters) for label in labels),
    (folder.baseline, phase_files.Baseline),
    *((folder.phase2(label), phase_files.Phase2) for label in labels),
  ]
  # The first phase that is missing is named, before TensorFlow is imported.
  for path, kind in (part for part in parts if not part[0].exists()):
    folder.load_finished(path, kind)
  for label in labels:
    folder.load_finished(folder.phase3(label), phase_files.Phase3)
  from tff_cluster.phases import assembly, session
  from tff_cluster.report import report

  results = assembly.run_assembly(folder, session.clients(folder, config))
  page = report.write_report(folder.root)
  print(f'digest {results.digest}')
  print(f'report {page.resolve()}')


if __name__ == '__main__':
  program.run(main, define_flags)
