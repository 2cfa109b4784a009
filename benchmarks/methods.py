"""What a round of a method that alternates costs, over a FedAvg round of the same clients.

Clients of 600 made-up rows, E = 3, B = 10; all of them take part. A round of FedAvg and a round of each method go in turn, for
each model. Evaluation of the clients' own models, which every round of a run has, is in none of them.

The last line of the output is one JSON object: for each method the larger of the models' ratios of medians; `ratios`, by model;
`seconds` of a FedAvg round, by model; and `load`, what ran on each core in the minute before.
"""

import pathlib
import statistics
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks import common
from tff_cluster.base.errors import InputError
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig

_METHODS = {
  'ifca': ClusteringConfig('ifca', num_clusters=4),
  'fedem': ClusteringConfig('fedem', num_clusters=3),
}
_MODELS = ('2nn', 'mnist_cnn')


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  parser.add_argument(
    '--rounds', type=int, default=5, help='turns that count, after a first; default: %(default)s'
  )
  parser.add_argument('--clients', type=int, default=8, help='default: %(default)s')
  parser.add_argument('--rows', type=int, default=600, help='rows of a client; default: %(default)s')
  flags = parser.parse_args()
  if min(flags.rounds, flags.clients) < 1 or flags.rows < 20:
    raise InputError('--rounds and --clients are at least 1, --rows at least 20')
  return measure(flags.rounds, flags.clients, flags.rows)


def measure(rounds: int, clients: int, rows: int) -> dict[str, Any]:
  """Returns what the JSON line says; see the module's docstring."""
  load, ratios, seconds = common.load(), {}, {}
  for model in _MODELS:
    with tempfile.TemporaryDirectory() as place:
      took = _rounds(_config(pathlib.Path(place), clients, rows, model), pathlib.Path(place) / 'run', rounds)
    seconds[model] = round(statistics.median(took['fedavg']), 3)
    ratios[model] = {
      name: round(statistics.median(took[name]) / statistics.median(took['fedavg']), 3) for name in _METHODS
    }
  worst = {name: max(each[name] for each in ratios.values()) for name in _METHODS}
  return {**worst, 'ratios': ratios, 'seconds': seconds, 'load': load}


def _config(folder: pathlib.Path, clients: int, rows: int, model: str) -> ExperimentConfig:
  x, y = common.made_rows(1, clients * (rows + 100), 0)
  np.savez(folder / 'rows.npz', x=x[0], y=y[0])
  data = DataConfig(
    dataset='file', data_file=str(folder / 'rows.npz'), partition='label_swapped', num_clients=clients
  )
  training = TrainingConfig(
    model=model, phase1_rounds=0, phase2_rounds=1, local_epochs=3, batch_size=10, learning_rate=0.1
  )
  return ExperimentConfig(data, training, tuple(_METHODS.values())).validated()


def _rounds(config: ExperimentConfig, place: pathlib.Path, rounds: int) -> dict[str, list[float]]:
  """Returns the seconds of FedAvg's rounds and of each method's, by name."""
  from tff_cluster.clustering.alternating import Model, State
  from tff_cluster.phases import federation, run_experiment, session

  claim = run_claim.claim_output_dir(place, config)
  with session.opened(claim.folder, config, run_experiment.Silent(), claim=claim) as experiment:
    clients, everyone = federation.Clients(experiment, 0), experiment.everyone
    fedavg = (Model(experiment.initial_weights(0)),)
    states: dict[str, State] = {}
    for name, clustering in _METHODS.items():
      models = tuple(Model(experiment.initial_weights(k)) for k in range(clustering.options.num_clusters))
      nothing = np.zeros((len(models), len(everyone)))
      states[name] = State(models, nothing, np.zeros(len(everyone), np.int64))
    took: dict[str, list[float]] = {'fedavg': [], **{name: [] for name in _METHODS}}
    for number in range(1, rounds + 2):
      for name in took:
        clients.begin()
        began = time.perf_counter()
        if name == 'fedavg':
          fedavg = clients.fed_avg(number, fedavg, [everyone])
        else:
          clustering = _METHODS[name]
          states[name] = clustering.rule.step(clustering.options, clients, states[name], number)
        seconds = time.perf_counter() - began
        if number > 1:
          took[name].append(seconds)
        print(f'{config.training.model}, round {number - 1}: {name} {seconds:.2f} s', flush=True)
  return took


if __name__ == '__main__':
  sys.exit(main())
