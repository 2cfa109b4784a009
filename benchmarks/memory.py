"""Memory of the program and its worker: 100 clients, many rounds, and a large population.

The last line of the output is one JSON object, in 10^6 bytes:

  peak_mb             peak of two rounds in which all of 100 clients take part, and local updates of all of them
  growth              of many short rounds: {rounds, early_mb, late_mb, percent}; early is the highest level after a
                      round from the second tenth of the rounds, late the highest of the last tenth
  population          of 100 and of 1,000 clients with the same small cohort: {clients: {data_mb, peak_mb}},
                      and excess_mb, what the larger one needs beyond the difference of the data
  setting             what was trained

A level is the resident memory of all processes of ours together; a peak is the sum of each process's own peak
(VmHWM), which the peak of the sum cannot exceed.
"""

import argparse
import dataclasses
import json
import os
import sys
from typing import Any

import numpy as np

from benchmarks import common
from benchmarks.contenders import ours
from tff_cluster.base.errors import InputError


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  common.add_setting_flags(parser)
  parser.set_defaults(clients=100, local_epochs=1)
  parser.add_argument('--rounds', type=int, default=200, help='short rounds; default: %(default)s')
  parser.add_argument(
    '--short_rows', type=int, default=20, help='rows of a client in short rounds; default: %(default)s'
  )
  parser.add_argument(
    '--many_clients', type=int, default=1000, help='the large population; default: %(default)s'
  )
  parser.add_argument(
    '--cohort', type=int, default=10, help='cohort for the large population; default: %(default)s'
  )
  parser.add_argument('--part', choices=('peak', 'growth', 'population'), help=argparse.SUPPRESS)
  flags = parser.parse_args()
  setting = common.setting_from(flags)
  for name, least in (('rounds', 10), ('short_rows', 1), ('cohort', 1), ('many_clients', flags.clients)):
    if getattr(flags, name) < least:
      raise InputError(f'--{name}={getattr(flags, name)}: must be at least {least}')
  return _PARTS[flags.part](setting, flags) if flags.part else measure(setting, flags)


def measure(setting: common.Setting, flags: argparse.Namespace) -> dict[str, Any]:
  """Runs each part in a process of its own, and returns what the JSON line says."""
  few = _part('population', setting, flags)
  many = _part('population', dataclasses.replace(setting, clients=flags.many_clients), flags)
  grown = many['data_mb'] - few['data_mb']
  return {
    'peak_mb': _part('peak', setting, flags)['peak_mb'],
    'growth': _part('growth', setting, flags),
    'population': {
      str(setting.clients): few,
      str(flags.many_clients): many,
      'excess_mb': round(many['peak_mb'] - few['peak_mb'] - grown, 1),
    },
    'setting': dataclasses.asdict(setting) | {'cohort': flags.cohort, 'short_rows': flags.short_rows},
  }


def _part(part: str, setting: common.Setting, flags: argparse.Namespace) -> dict[str, Any]:
  given = dataclasses.asdict(setting) | {
    name: getattr(flags, name) for name in ('rounds', 'short_rows', 'many_clients', 'cohort')
  }
  given['many_clients'] = max(flags.many_clients, setting.clients)
  result = common.of_process('benchmarks.memory', given | {'part': part})
  print(f'{part} with {setting.clients} clients: {json.dumps(result)}', flush=True)
  return result


def _peak(setting: common.Setting, flags: argparse.Namespace) -> dict[str, Any]:
  with ours.opened(_population(setting, setting.rows), setting) as trainer:
    everyone = np.arange(setting.clients)
    state = trainer.start(trainer.computations.model.weights)
    for number in (1, 2):
      state, _ = trainer.round(state, everyone, number)
      print(f'round {number}: {_level_mb("VmHWM")} MB', flush=True)
    trainer.local_updates(trainer.weights(state), everyone, 3, lambda client, update: None)
    return {'peak_mb': _level_mb('VmHWM')}


def _growth(setting: common.Setting, flags: argparse.Namespace) -> dict[str, Any]:
  levels = []
  with ours.opened(_population(setting, flags.short_rows), setting) as trainer:
    everyone = np.arange(setting.clients)
    state = trainer.start(trainer.computations.model.weights)
    for number in range(1, flags.rounds + 1):
      state, _ = trainer.round(state, everyone, number)
      levels.append(_level_mb('VmRSS'))
      if number % 10 == 0:
        print(f'round {number}: {levels[-1]} MB', flush=True)
  tenth = len(levels) // 10
  early, late = max(levels[tenth : 2 * tenth]), max(levels[-tenth:])
  percent = round(100.0 * (late / early - 1.0), 1)
  return {'rounds': flags.rounds, 'early_mb': early, 'late_mb': late, 'percent': percent}


def _with_small_cohort(setting: common.Setting, flags: argparse.Namespace) -> dict[str, Any]:
  population = _population(setting, setting.rows)
  with ours.opened(population, setting) as trainer:
    state = trainer.start(trainer.computations.model.weights)
    for number in (1, 2, 3):
      # Other clients each round, as a drawn cohort would be.
      cohort = (np.arange(flags.cohort) * (setting.clients // flags.cohort) + number) % setting.clients
      state, _ = trainer.round(state, np.sort(cohort), number)
    data = population.train.x.nbytes + population.train.y.nbytes
    return {'data_mb': round(data / 1e6, 1), 'peak_mb': _level_mb('VmHWM')}


_PARTS = {'peak': _peak, 'growth': _growth, 'population': _with_small_cohort}


def _population(setting: common.Setting, rows: int) -> Any:
  return ours.make_population(*common.made_rows(setting.clients, rows, setting.seed))


def _level_mb(kind: str) -> float:
  return round(sum(common.memory_of(p.pid, kind) for p in common.process_tree(os.getpid())) / 1e6, 1)


if __name__ == '__main__':
  sys.exit(main())
