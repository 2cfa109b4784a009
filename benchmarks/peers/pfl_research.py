"""pfl-research: FederatedAveraging of pfl.algorithm on its SimulatedBackend, its own loop and local SGD.

Its forms are

  torchrun  one process a core, each with one PyTorch thread, joined by PyTorch's gloo backend: the way its
            documentation gives to train clients side by side
  single    one process whose operations use both cores

pfl keeps a user's batches between epochs and rounds, unshuffled; that is its own choice, and saves it work.
"""

import os
import time

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel

from benchmarks import turns
from benchmarks.peers import torch_work


class LossCnn(torch_work.MnistCnn):
  """The CNN with the two functions that pfl asks for."""

  def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(self(x), y)

  def metrics(self, x: torch.Tensor, y: torch.Tensor) -> dict:
    return {}


class Timer(TrainingProcessCallback):
  """Waits for a turn before each round, and answers it after the round."""

  def __init__(self, conversation: turns.Turns | None, path: str):
    self._conversation, self._path = conversation, path
    self._start = 0.0

  def on_train_begin(self, *, model: PyTorchModel) -> Metrics:
    if self._conversation:
      self._conversation.ready(parameters=torch_work.num_parameters(model.pytorch_model))
    self._wait(model)
    return Metrics()

  def after_central_iteration(
    self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
  ) -> tuple[bool, Metrics]:
    if self._conversation:
      self._conversation.done(time.perf_counter() - self._start)
    self._wait(model)
    return False, Metrics()

  def _wait(self, model: PyTorchModel) -> None:
    if self._conversation and not self._conversation.next(
      lambda: torch_work.accuracy(model.pytorch_model, self._path)
    ):
      os._exit(0)
    if torch.distributed.is_initialized():
      # The other processes wait for the turn too.
      torch.distributed.barrier()
    self._start = time.perf_counter()


def main() -> None:
  first = os.environ.get('RANK', '0') == '0'
  conversation = turns.Turns() if first else None
  flags = turns.arguments()
  torch.set_num_threads(flags.cores if flags.form == 'single' else 1)
  x, y = torch_work.load_rows(flags.rows_file)
  users = [str(k) for k in range(len(y))]
  datasets = {user: Dataset((x[k], y[k]), user_id=user) for k, user in enumerate(users)}
  data = FederatedDataset(datasets.__getitem__, get_user_sampler('minimize_reuse', users))
  network = LossCnn()
  network.load_state_dict(torch_work.make_model(flags.seed).state_dict())
  # Server SGD at rate 1 makes the new model the mean of the clients' models.
  model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
  FederatedAveraging().run(
    algorithm_params=NNAlgorithmParams(
      central_num_iterations=10**9,
      evaluation_frequency=10**9,
      train_cohort_size=len(users),
      val_cohort_size=0,
    ),
    backend=SimulatedBackend(training_data=data, val_data=data),
    model=model,
    model_train_params=NNTrainHyperParams(
      local_num_epochs=flags.local_epochs,
      local_learning_rate=flags.learning_rate,
      local_batch_size=flags.batch_size,
    ),
    model_eval_params=None,
    callbacks=[Timer(conversation, flags.rows_file)],
    send_metrics_to_platform=False,
  )


if __name__ == '__main__':
  main()
