"""Seconds of a client-round: ours, a bare loop without TFF, and stock TFF, one round each in turn.

The last line of the output is one JSON object:

  seconds_per_client_round  {ours, bare_loop, stock_tff}, medians over rounds
  cpu_seconds_per_client_round  processor time, in the same form
  ratio_to_bare_loop        ours / bare_loop: below 1 where ours is faster
  ratio_to_stock_tff        stock_tff / ours: above 1 where ours is faster
  peak_mb                   memory of ours, the program and its worker together (10^6 bytes, upper bound)
  accuracy                  of each contender's model on the training rows at the end: they did the same work
  load                      what ran on each core in the minute before: above 0.2 others disturb the timing
  setting                   what was trained
"""

import dataclasses
import sys

from benchmarks import common
from tff_cluster.base.errors import EnvironmentFault, InputError

CONTENDERS = {
  'ours': 'benchmarks.contenders.ours',
  'bare_loop': 'benchmarks.contenders.bare_loop',
  'stock_tff': 'benchmarks.contenders.stock_tff',
}


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  common.add_setting_flags(parser)
  parser.add_argument(
    '--rounds', type=int, default=7, help='rounds that count, after a first; default: %(default)s'
  )
  parser.add_argument('--data_dir', help='folder with MNIST (as for phases.run_all); default: made-up rows')
  parser.add_argument(
    '--bare_form', choices=('client', 'step'), default='client', help='form of the bare loop'
  )
  flags = parser.parse_args()
  return measure(common.setting_from(flags), flags.rounds, flags.data_dir, flags.bare_form)


def measure(
  setting: common.Setting, rounds: int, data_dir: str | None = None, bare_form: str = 'client'
) -> dict[str, object]:
  """Runs the contenders in turn and returns what the JSON line says.

  Raises:
    InputError: if rounds is not positive.
    EnvironmentFault: if a contender ends before its time, or trains a model of another size.
  """
  if rounds < 1:
    raise InputError(f'--rounds={rounds}: must be at least 1')
  load = common.load()
  with common.rows_file(setting, data_dir) as rows:
    contenders = [
      common.Contender(name, module, setting, rows, form=bare_form if name == 'bare_loop' else '')
      for name, module in CONTENDERS.items()
    ]
    with common.stopped_at_exit(contenders):
      parameters = {c.name: c.ready()['parameters'] for c in contenders}
      if len(set(parameters.values())) > 1:
        raise EnvironmentFault(f'the contenders train models of different sizes: {parameters}')
      times = common.interleaved(contenders, rounds, setting.clients, common.print_round(setting.clients))
      accuracy = {c.name: round(c.accuracy(), 4) for c in contenders}
      peak = contenders[0].peak_bytes()
  each = {name: timing.seconds for name, timing in times.items()}
  return {
    'seconds_per_client_round': {name: round(value, 4) for name, value in each.items()},
    'cpu_seconds_per_client_round': {name: round(timing.cpu_seconds, 4) for name, timing in times.items()},
    'ratio_to_bare_loop': round(each['ours'] / each['bare_loop'], 3),
    'ratio_to_stock_tff': round(each['stock_tff'] / each['ours'], 3),
    'peak_mb': round(peak / 1e6),
    'accuracy': accuracy,
    'load': load,
    'setting': dataclasses.asdict(setting) | {'rounds': rounds, 'bare_form': bare_form, 'data_dir': data_dir},
  }


if __name__ == '__main__':
  sys.exit(main())
