"""Flower: FedAvg of flwr.serverapp under the simulation engine, with one core a client.

So as many clients train side by side as there are cores, each in a Ray actor with one PyTorch thread; Flower's
documentation gives this as the way to use a machine's cores. Evaluation is off. The actors keep the rows
in memory between rounds, and the local loop is the one of Flower's PyTorch quickstart.
"""

import os
import time
from collections.abc import Iterable
from typing import Any

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from benchmarks import turns
from benchmarks.peers import torch_work


class TimedFedAvg(FedAvg):
  """FedAvg that waits for a turn before each round, and answers it after the round."""

  def __init__(self, conversation: turns.Turns, path: str, clients: int):
    super().__init__(fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients)
    self._conversation, self._path, self._clients = conversation, path, clients
    self._start = 0.0

  def configure_train(
    self, server_round: int, arrays: ArrayRecord, config: Any, grid: Grid
  ) -> Iterable[Message]:
    def accuracy() -> float:
      model = torch_work.make_model(0)
      model.load_state_dict(arrays.to_torch_state_dict())
      return torch_work.accuracy(model, self._path)

    if not self._conversation.next(accuracy):
      # Neither Ray nor Flower has work to save, and whoever started us ends what is left of them.
      os._exit(0)
    self._start = time.perf_counter()
    return super().configure_train(server_round, arrays, config, grid)

  def aggregate_train(
    self, server_round: int, replies: Iterable[Message]
  ) -> tuple[ArrayRecord | None, MetricRecord | None]:
    replies = list(replies)
    if len(replies) != self._clients or any(reply.has_error() for reply in replies):
      raise RuntimeError(f'{len(replies)} of {self._clients} clients answered, or one of them failed')
    result = super().aggregate_train(server_round, replies)
    self._conversation.done(time.perf_counter() - self._start)
    return result


def main() -> None:
  conversation, flags = turns.Turns(), turns.arguments()
  clients = len(torch_work.load_rows(flags.rows_file)[1])
  model = torch_work.make_model(flags.seed)
  client_app, server_app = ClientApp(), ServerApp()
  path, epochs, size, rate = flags.rows_file, flags.local_epochs, flags.batch_size, flags.learning_rate

  @client_app.train()
  def train(message: Message, context: Context) -> Message:
    torch.set_num_threads(1)
    x, y = torch_work.load_rows(path)
    k = int(context.node_config['partition-id'])
    local = torch_work.MnistCnn()
    local.load_state_dict(message.content['arrays'].to_torch_state_dict())
    torch_work.train(local, x[k], y[k], epochs, size, rate)
    content = {
      'arrays': ArrayRecord(local.state_dict()),
      'metrics': MetricRecord({'num-examples': len(y[k])}),
    }
    return Message(content=RecordDict(content), reply_to=message)

  @server_app.main()
  def serve(grid: Grid, context: Context) -> None:
    conversation.ready(parameters=torch_work.num_parameters(model))
    TimedFedAvg(conversation, path, clients).start(
      grid=grid, initial_arrays=ArrayRecord(model.state_dict()), num_rounds=10**9
    )

  run_simulation(
    server_app=server_app,
    client_app=client_app,
    num_supernodes=clients,
    backend_config={
      'client_resources': {'num_cpus': 1, 'num_gpus': 0.0},
      'init_args': {'num_cpus': flags.cores, 'include_dashboard': False},
    },
  )


if __name__ == '__main__':
  main()
