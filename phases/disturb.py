"""Finds how much noise on, or compression of, what clients send each clustering tolerates before it loses the planted groups.

  python -m phases.disturb --output_dir=runs/demo
  python -m phases.disturb --output_dir=runs/demo --noise_multipliers=0,0.01,0.1 --bits=1,2,4,8,16 --repeats=5

For a run whose Phase 1 is done: every client's update is clipped and made noisy (differential privacy), or quantized, by
TFF's own aggregators, and the run's clusterings are made again from what a server gets. Trains nothing. Writes
disturbance/disturbance.json, disturbance.csv and index.html with its figures in --output_dir.
"""

import sys

from tff_cluster.cli import flags, parse, program
from tff_cluster.experiment import phase_files, run_claim
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files, output_files, sealed_json
from tff_cluster.studies.disturbance import questions as questions_lib


def define_flags() -> None:
  flags.define('disturb', 'output_dir', 'machine')


def main() -> None:
  options, machine = parse.run_options_from_flags(), parse.machine_from_flags()
  questions = questions_lib.read_questions(parse.section_from_flags(flags.DisturbOptions))
  folder = RunFolder(run_claim.resume_output_dir(options.output_dir))
  config = folder.load_config()
  folder.load_finished(folder.phase1, phase_files.Phase1)
  questions_lib.askable(folder, config)  # What cannot be asked is told before a worker is started.
  from tff_cluster.cli import progress
  from tff_cluster.phases import session
  from tff_cluster.studies.disturbance import disturbed_clients
  from tff_cluster.studies.disturbance import page as report

  target = folder.root / 'disturbance'
  names = ['disturbance.json', 'disturbance.csv', 'index.html', 'figures']
  output_files.check(target, names, sealed_json.is_sealed)
  bars = progress.Progress()
  with session.opened(folder, config, bars, machine) as experiment:
    document = disturbed_clients.run(experiment, questions, parse.command('disturb', sys.argv[1:]))
  files.save_json(target / 'disturbance.json', document.to_json())
  page = report.write_disturbance(document, config, target)
  print(report.summary(document))
  print(target / 'disturbance.json')
  print(f'report {page.resolve()}')


if __name__ == '__main__':
  program.run(main, define_flags)
