"""A worker for runs on other machines: python -m phases.run_all --workers=HOST:PORT,HOST:PORT.

  python -m phases.worker --port=7000 --bind_address=10.0.0.5

It trains clients of any run that is given its address, until Ctrl-C or SIGTERM; a worker that dies is started again. What it
takes in is not encrypted and nobody is asked for a password: whoever reaches the port can read and write all your files
here. It listens on loopback unless told otherwise, which every user of this machine reaches; from another machine reach it
through a tunnel: ssh -L 7000:127.0.0.1:7000 HOST.
"""

import ipaddress
import json
import os
import sys

from tff_cluster.base import environment
from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program


def define_flags() -> None:
  flags.define('worker', 'clients_in_parallel')


def main() -> None:
  options = parse.section_from_flags(flags.WorkerOptions)
  machine = parse.machine_from_flags()
  if not options.port:
    raise InputError('--port=N is required: the port that runs are given with --workers=HOST:N')
  try:
    ipaddress.IPv4Address(options.bind_address)
  except ValueError:
    raise InputError(
      f'--bind_address={options.bind_address}: expected an IPv4 address of this machine, for instance 127.0.0.1 or 0.0.0.0'
    ) from None
  request = {
    'address': options.bind_address,
    'port': options.port,
    'clients_in_parallel': machine.clients_in_parallel or environment.available_cores(),
    'about': environment.about_worker(),
  }
  # A fresh interpreter: to keep the worker off other network interfaces the process must have one thread only.
  module = 'tff_cluster.engine.worker_service'
  os.execv(sys.executable, [sys.executable, '-m', module, json.dumps(request)])


if __name__ == '__main__':
  program.run(main, define_flags)
