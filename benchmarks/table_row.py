"""What a row of a table costs beside its client-rounds: rounds of clusters with their evaluation, Phase 3, exports, set-up.

The setting is FL+HC's label-swapped clients: 100 clients of 600 rows (60 of them for validation) and 100 test rows, the MNIST
CNN, E = 3, B = 10, C = 0.2; rows are made up. In turn, a few times: one FedAvg round of 20 clients; a round of each of 4
clusters of 25 clients, alone and with what a trajectory measures and saves; the same with 41 clusters, of which 25 have one
client. Then one run from its configuration to its results, in which 4 planted clusters go through Phase 3.

The last line of the output is one JSON object. An efficiency is client-rounds times the seconds of a client-round (of the
FedAvg rounds), over wall time; all are medians over turns:

  efficiency, efficiency_many_clusters          of rounds with 4, and with 41 clusters, evaluation included
  efficiency_bare, efficiency_many_clusters_bare  the same without evaluation
  share_of_evaluation                           of the wall time of rounds with 4 clusters, what a trajectory adds to training
  phase3_seconds                                of the clustering of 4
  seconds_per_client_round                      of the FedAvg rounds
  export_seconds, setup_seconds                 of the run: models written as .keras files; all that is in no phase
  load                                          what ran on each core in the minute before
"""

import contextlib
import dataclasses
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks import common
from tff_cluster.base.errors import InputError
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.phases import live_experiment, run_experiment

_CLIENTS, _ROWS, _TEST_ROWS = 100, 600, 100
_ALONE = 25
_MANY = 41


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  parser.add_argument(
    '--rounds', type=int, default=3, help='turns that count, after a first; default: %(default)s'
  )
  parser.add_argument('--rows', type=int, default=_ROWS, help='rows of a client; default: %(default)s')
  parser.add_argument('--model', default='mnist_cnn', help='default: %(default)s')
  flags = parser.parse_args()
  if flags.rounds < 1 or flags.rows < 20:
    raise InputError(f'--rounds={flags.rounds} --rows={flags.rows}: at least 1 round and 20 rows')
  return measure(flags.rounds, flags.rows, flags.model)


def measure(rounds: int, rows: int, model: str) -> dict[str, Any]:
  """Returns what the JSON line says; see the module's docstring."""
  load = common.load()
  with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    config = _config(folder, rows, model)
    return {**_rounds(config, folder / 'rounds', rounds), **_run(config, folder / 'run'), 'load': load}


def _config(folder: pathlib.Path, rows: int, model: str) -> ExperimentConfig:
  total = _CLIENTS * (rows + _TEST_ROWS)
  x, y = common.made_rows(1, total, 0)
  np.savez(folder / 'rows.npz', x=x[0], y=y[0])
  data = DataConfig(
    dataset='file',
    data_file=str(folder / 'rows.npz'),
    partition='label_swapped',
    num_clients=_CLIENTS,
    num_groups=4,
    test_fraction=_TEST_ROWS / (rows + _TEST_ROWS),
    validation_fraction=0.1,
  )
  training = TrainingConfig(
    model=model,
    phase1_rounds=1,
    phase2_rounds=1,
    cohort_fraction=0.2,
    local_epochs=3,
    batch_size=10,
    learning_rate=0.1,
    cluster_start='global_model',
  )
  return ExperimentConfig(data, training, (ClusteringConfig('planted'),)).validated()


def _many(generator: np.random.Generator) -> list[np.ndarray]:
  """Returns 41 clusters of all clients, of which 25 have one."""
  order = generator.permutation(_CLIENTS)
  return [
    np.sort(members)
    for members in (*np.split(order[:_ALONE], _ALONE), *np.array_split(order[_ALONE:], _MANY - _ALONE))
  ]


def _rounds(config: ExperimentConfig, place: pathlib.Path, rounds: int) -> dict[str, Any]:
  from tff_cluster.base import seeding
  from tff_cluster.federated import trajectory
  from tff_cluster.phases import session

  claim = run_claim.claim_output_dir(place, config)
  with session.opened(claim.folder, config, run_experiment.Silent(), claim=claim) as experiment:
    trainer, start = experiment.trainer, experiment.trainer.computations.model.weights
    four = [np.arange(_CLIENTS)[k::4] for k in range(4)]
    many = _many(seeding.generator(0, 'benchmark clusters'))

    def bare(clusters: Sequence[np.ndarray], number: int) -> Callable[[], int]:
      states = [trainer.start(start) for _ in clusters]

      def train(row: int) -> int:
        cohort = trainer.cohort(clusters[row], number)
        trainer.weights(trainer.round(states[row], cohort, number)[0])
        return len(cohort)

      return lambda: sum(experiment.each(train, range(len(clusters))).values())

    def whole(clusters: Sequence[np.ndarray], number: int) -> Callable[[], int]:
      def train(row: int) -> int:
        asked = experiment.trajectory(clusters[row], start, 0)
        return trajectory.run(asked, number).client_rounds_trained

      return lambda: sum(experiment.each(train, range(len(clusters))).values())

    kinds: dict[str, Callable[[int], Callable[[], int]]] = {
      'fedavg': lambda number: bare([experiment.everyone], number),
      'four_bare': lambda number: bare(four, number),
      'four': lambda number: whole(four, number),
      'many_bare': lambda number: bare(many, number),
      'many': lambda number: whole(many, number),
    }
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(1, rounds + 2):
      for name, make in kinds.items():
        work = make(number)
        began = time.perf_counter()
        trained = work()
        seconds = (time.perf_counter() - began) / trained
        print(
          f'turn {number - 1}, {name}: {seconds:.4f} s a client-round, {trained} client-rounds', flush=True
        )
        if number > 1:
          found[name].append(seconds)
  median = {name: statistics.median(each) for name, each in found.items()}

  def efficiency(name: str) -> float:
    return round(statistics.median(a / b for a, b in zip(found['fedavg'], found[name], strict=True)), 3)

  return {
    'efficiency': efficiency('four'),
    'efficiency_many_clusters': efficiency('many'),
    'efficiency_bare': efficiency('four_bare'),
    'efficiency_many_clusters_bare': efficiency('many_bare'),
    'share_of_evaluation': round(1 - median['four_bare'] / median['four'], 3),
    'seconds_per_client_round': round(median['fedavg'], 4),
  }


class _Clock(run_experiment.Silent):
  """Adds up the seconds in which some phase ran; they come one after the other."""

  def __init__(self):
    self.seconds = 0.0

  @contextlib.contextmanager
  def phase(self, name: str, steps: int = 1) -> Iterator[live_experiment.Tell]:
    began = time.perf_counter()
    with super().phase(name, steps) as tell:
      yield tell
    self.seconds += time.perf_counter() - began


def _run(config: ExperimentConfig, place: pathlib.Path) -> dict[str, float]:
  clock = _Clock()
  began = time.perf_counter()
  done = run_experiment.run_experiment(config, place / 'a', progress=clock)
  wall = time.perf_counter() - began
  timing = {each.name: each.seconds for each in done.results.timing}
  without = dataclasses.replace(config, training=dataclasses.replace(config.training, seed=1))
  bare = run_experiment.run_experiment(without, place / 'b', export_models=False)
  phase2 = {each.name: each.seconds for each in bare.results.timing}['Phase 2, planted']
  return {
    'phase3_seconds': round(timing['Phase 3, planted'], 2),
    'export_seconds': round(max(timing['Phase 2, planted'] - phase2, 0.0), 2),
    'setup_seconds': round(wall - clock.seconds, 2),
  }


if __name__ == '__main__':
  sys.exit(main())
