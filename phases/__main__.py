"""All programs of this folder behind one name: `tff-cluster COMMAND` where the package is installed, `python -m phases COMMAND` here."""

import pathlib
import sys

from tff_cluster.cli import commands


def main() -> int:
  return commands.main('phases', pathlib.Path(__file__).parent, sys.argv[1:])


if __name__ == '__main__':
  sys.exit(main())
