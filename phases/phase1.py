"""Phase 1: federated averaging over all clients (Rohith et al. 2020, section 6.1).

  python -m phases.phase1 --flagfile=flags/demo.flags --output_dir=runs/demo

Saves the global model's rounds and every device's own weights in --output_dir. Any number of
clusterings can stand on them: python -m phases.clustering --output_dir=runs/demo --method=...
"""

from pathlib import Path

from tff_cluster.cli import flags, parse, program
from tff_cluster.experiment import run_claim
from tff_cluster.phases import early_checks


def define_flags() -> None:
  flags.define('data', 'training', 'clusterings', 'evaluation', 'run', 'machine')


def main() -> None:
  options, machine = parse.run_options_from_flags(), parse.machine_from_flags()
  config = parse.experiment_config_from_flags()
  memory = early_checks.check(config, machine, [Path(options.output_dir)])
  claim = run_claim.claim_output_dir(options.output_dir, config, options.store_dir)
  from tff_cluster.cli import progress
  from tff_cluster.phases import phase1, session

  if memory:
    print(memory)
  bars = progress.Progress()
  with session.opened(claim.folder, claim.config, bars, machine, claim=claim) as experiment:
    phase1.run_phase1(experiment)
  print(f'Phase 1: {experiment.asked} client-rounds asked for, {experiment.trained} trained')
  print(claim.folder.phase1)


if __name__ == '__main__':
  program.run(main, define_flags)
