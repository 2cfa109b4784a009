"""fluke: FedAVG of fluke.algorithms, its own loop, data loader and client.

fluke trains the clients of a round one after the other in one process (fluke.distr places them on several
GPUs only), so both cores work inside PyTorch's operations. Evaluation is off; data stays in memory.
"""

from benchmarks.peers import cpu_torchvision  # noqa: F401 (it comes before what imports torchvision)

# isort: split

import sys
import time

import torch
from fluke import DDict, FlukeENV
from fluke.algorithms.fedavg import FedAVG
from fluke.data import FastDataLoader
from fluke.utils import FederationObserver

from benchmarks import turns
from benchmarks.peers import torch_work


class Rows:
  """Gives each client its rows; takes the place of fluke's DataSplitter."""

  def __init__(self, path: str):
    self._path = path

  def assign(self, n_clients: int, batch_size: int) -> tuple[tuple[list, list], None]:
    x, y = torch_work.load_rows(self._path)
    loaders = [
      FastDataLoader(x[k], y[k], num_labels=10, batch_size=batch_size, shuffle=True) for k in range(n_clients)
    ]
    return (loaders, [None] * n_clients), None


class Timer(FederationObserver):
  """Waits for a turn before each round, and answers it after the round."""

  def __init__(self, conversation: turns.Turns, algorithm: FedAVG, path: str):
    self._conversation, self._algorithm, self._path = conversation, algorithm, path
    self._start = 0.0

  def start_round(self, round: int, global_model: torch.nn.Module) -> None:
    if not self._conversation.next(lambda: torch_work.accuracy(self._algorithm.server.model, self._path)):
      sys.exit()
    self._start = time.perf_counter()

  def end_round(self, round: int) -> None:
    self._conversation.done(time.perf_counter() - self._start)


def main() -> None:
  conversation, flags = turns.Turns(), turns.arguments()
  torch.set_num_threads(flags.cores)
  environment = FlukeENV()
  environment.set_seed(flags.seed)
  environment.set_device('cpu')
  environment.set_eval_cfg(pre_fit=False, post_fit=False, server=False, locals=False)
  model = torch_work.make_model(flags.seed)
  client = {
    'batch_size': flags.batch_size,
    'local_epochs': flags.local_epochs,
    'loss': 'CrossEntropyLoss',
    'optimizer': {'name': 'SGD', 'lr': flags.learning_rate},
    'scheduler': {'name': 'StepLR', 'step_size': 1, 'gamma': 1},
  }
  settings = DDict(client=client, server={'weighted': True}, model=model)
  clients = len(torch_work.load_rows(flags.rows_file)[1])
  algorithm = FedAVG(clients, Rows(flags.rows_file), settings)
  algorithm.set_callbacks(Timer(conversation, algorithm, flags.rows_file))
  conversation.ready(parameters=torch_work.num_parameters(model))
  algorithm.run(n_rounds=sys.maxsize // clients, eligible_perc=1.0)


if __name__ == '__main__':
  main()
