"""FedLab: FedAvg of fedlab.contrib on its StandalonePipeline, its own loop and local SGD.

FedLab trains the clients of a round one after the other in one process, so both cores work inside PyTorch's
operations. Batches are gathered whole (a loader over a batch sampler), which is faster than its example's loader,
which gathers them row by row.
"""

from benchmarks.peers import cpu_torchvision  # noqa: F401 (it comes before what imports torchvision)

# isort: split

import sys
import time

import torch
from fedlab.contrib.algorithm.fedavg import FedAvgSerialClientTrainer, FedAvgServerHandler
from fedlab.contrib.dataset.basic_dataset import FedDataset
from fedlab.core.standalone import StandalonePipeline
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from benchmarks import turns
from benchmarks.peers import torch_work


class Rows(FedDataset):
  """Gives each client its rows, in another order each epoch."""

  def __init__(self, path: str):
    super().__init__()
    x, y = torch_work.load_rows(path)
    self._clients = [TensorDataset(x[k], y[k]) for k in range(len(y))]

  def get_dataloader(self, id: int, batch_size: int, type: str = 'train') -> DataLoader:
    rows = self._clients[id]
    batches = BatchSampler(RandomSampler(rows), batch_size, drop_last=False)
    return DataLoader(_Batches(rows), sampler=batches, batch_size=None)


class _Batches(torch.utils.data.Dataset):
  """Gathers a list of positions at once."""

  def __init__(self, rows: TensorDataset):
    self._rows = rows

  def __len__(self) -> int:
    return len(self._rows)

  def __getitem__(self, positions: list[int]) -> tuple[torch.Tensor, ...]:
    return self._rows[positions]


class TimedPipeline(StandalonePipeline):
  """A pipeline that answers the turn after a round, and waits for the next one."""

  def __init__(
    self,
    handler: FedAvgServerHandler,
    trainer: FedAvgSerialClientTrainer,
    conversation: turns.Turns,
    path: str,
  ):
    super().__init__(handler, trainer)
    self._conversation, self._path = conversation, path
    self._wait()

  def evaluate(self) -> None:
    self._conversation.done(time.perf_counter() - self._start)
    self._wait()

  def _wait(self) -> None:
    if not self._conversation.next(lambda: torch_work.accuracy(self.handler.model, self._path)):
      sys.exit()
    self._start = time.perf_counter()


def main() -> None:
  conversation, flags = turns.Turns(), turns.arguments()
  torch.set_num_threads(flags.cores)
  clients = len(torch_work.load_rows(flags.rows_file)[1])
  model = torch_work.make_model(flags.seed)
  trainer = FedAvgSerialClientTrainer(model, clients)
  trainer.setup_dataset(Rows(flags.rows_file))
  trainer.setup_optim(flags.local_epochs, flags.batch_size, flags.learning_rate)
  # Its mean is the plain one, which is the weighted one here: all clients have as many rows.
  handler = FedAvgServerHandler(model, global_round=sys.maxsize, sample_ratio=1.0)
  conversation.ready(parameters=torch_work.num_parameters(model))
  TimedPipeline(handler, trainer, conversation, flags.rows_file).main()


if __name__ == '__main__':
  main()
