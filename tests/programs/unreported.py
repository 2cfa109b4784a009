"""Runs a program in an interpreter of its own, without a report: python -m tests.programs.unreported phases.run_all --flag=value."""

import importlib
import sys

from tests.programs import children
from tff_cluster.cli import program

if __name__ == '__main__':
  sys.argv = sys.argv[1:]
  module = importlib.import_module(sys.argv[0])
  with children.no_report():
    program.run(module.main, module.define_flags)
