"""Start-up: seconds from the start of the program to the end of its first round, and what they are spent on.

The last line of the output is one JSON object, medians over repetitions in processes of their own:

  seconds_to_first_round   from the start of the interpreter
  spent_on                 {step: seconds}; the steps follow one another, and add up to the above
  steady_round             seconds of a later round, for comparison with the step first_round
  second_cluster           seconds of the first round of another cluster of the same trainer: as a steady one, because
                           the computations are built, compiled and traced once a process
  setting                  what was trained
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from typing import Any

import psutil

from benchmarks import common
from tff_cluster.base.errors import InputError


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  common.add_setting_flags(parser)
  parser.set_defaults(rows=100, local_epochs=1)
  parser.add_argument('--repetitions', type=int, default=5, help='default: %(default)s')
  parser.add_argument('--once', type=bool, default=False, help=argparse.SUPPRESS)
  flags = parser.parse_args()
  setting = common.setting_from(flags)
  if flags.repetitions < 1:
    raise InputError(f'--repetitions={flags.repetitions}: must be at least 1')
  return _once(setting) if flags.once else measure(setting, flags.repetitions)


def measure(setting: common.Setting, repetitions: int) -> dict[str, Any]:
  """Starts up again and again, and returns what the JSON line says."""
  runs = []
  for _ in range(repetitions):
    runs.append(common.of_process('benchmarks.startup', dataclasses.asdict(setting) | {'once': True}))
    print(json.dumps(runs[-1]), flush=True)

  def median(*path: str) -> float:
    values = []
    for run in runs:
      for key in path:
        run = run[key]
      values.append(run)
    return round(statistics.median(values), 2)

  return {
    'seconds_to_first_round': median('seconds_to_first_round'),
    'spent_on': {step: median('spent_on', step) for step in runs[0]['spent_on']},
    'steady_round': median('steady_round'),
    'second_cluster': median('second_cluster'),
    'setting': dataclasses.asdict(setting) | {'repetitions': repetitions},
  }


def _once(setting: common.Setting) -> dict[str, Any]:
  """Goes through the steps of phases.session, with a clock between them."""
  begin = psutil.Process().create_time()
  marks = [('interpreter', time.time())]

  def mark(step: str) -> None:
    marks.append((step, time.time()))

  from tff_cluster.engine import worker as worker_lib

  worker = worker_lib.start(os.cpu_count() or 1)
  mark('start_worker')
  import numpy as np

  from benchmarks.contenders import ours

  population = ours.make_population(*common.made_rows(setting.clients, setting.rows, setting.seed))
  mark('rows')
  import tensorflow  # noqa: F401 (its time is told apart from that of TFF)

  mark('import_tensorflow')
  from tff_cluster.engine import context

  mark('import_tff')
  with context.connected(worker):
    mark('connect')
    trainer = ours.build_trainer(population, setting)
    mark('build_model')
    weights = trainer.computations.model.weights
    # Half of them are a cluster, so that another cluster of the same size is left.
    half = setting.clients // 2
    clusters = np.arange(half), np.arange(half, 2 * half)
    state = trainer.start(weights)
    mark('build_and_initialize')
    state, _ = trainer.round(state, clusters[0], 1)
    mark('first_round')
    seconds = []
    for number in (2, 3, 4):
      start = time.time()
      state, _ = trainer.round(state, clusters[0], number)
      seconds.append(time.time() - start)
    start = time.time()
    trainer.round(trainer.start(weights), clusters[1], 1)
    second = time.time() - start
  times = [begin, *(moment for _, moment in marks)]
  spent = {step: after - before for (step, _), before, after in zip(marks, times, times[1:], strict=False)}
  return {
    'seconds_to_first_round': marks[-1][1] - begin,
    'spent_on': spent,
    'steady_round': statistics.median(seconds),
    'second_cluster': second,
  }


if __name__ == '__main__':
  sys.exit(main())
