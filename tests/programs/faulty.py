"""phases.run_all with a fault of this software in Phase 1, while its worker runs."""

from phases import run_all
from tff_cluster.cli import program
from tff_cluster.phases import phase1


def run_phase1(experiment):
  return experiment.no_such_attribute


if __name__ == '__main__':
  phase1.run_phase1 = run_phase1
  program.run(run_all.main, run_all.define_flags)
