"""The programs: `python -m phases.PROGRAM`, or `tff-cluster COMMAND` where the package is installed."""

import sys

from tff_cluster.cli import signals

# So Python calls a module that it runs, while it imports the packages around it; nobody else's Ctrl-C is taken.
if sys.argv[:1] == ['-m']:
  signals.take_early()
