"""phases.run_all with a fault of this software in Phase 1, while its worker runs."""

from phases import run_all
from tff_cluster.cli import program
from tff_cluster.phases import phase1

define_flags = run_all.define_flags


def main():
  phase1.run_phase1 = run_phase1
  run_all.main()


def run_phase1(experiment):
  return experiment.no_such_attribute


if __name__ == '__main__':
  program.run(main, define_flags)
