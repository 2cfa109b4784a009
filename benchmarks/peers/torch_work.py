"""The same model, rows and local work in PyTorch, for the peers; it runs in their environments."""

import functools

import numpy as np
import torch
from torch import nn


class MnistCnn(nn.Sequential):
  """The CNN of McMahan 2017 with 1,663,370 parameters: [batch, 1, 28, 28] to logits [batch, 10]."""

  def __init__(self) -> None:
    super().__init__(
      nn.Conv2d(1, 32, 5, padding='same'),
      nn.ReLU(),
      nn.MaxPool2d(2),
      nn.Conv2d(32, 64, 5, padding='same'),
      nn.ReLU(),
      nn.MaxPool2d(2),
      nn.Flatten(),
      nn.Linear(3136, 512),
      nn.ReLU(),
      nn.Linear(512, 10),
    )


@functools.lru_cache(maxsize=1)
def load_rows(path: str) -> tuple[torch.Tensor, torch.Tensor]:
  """Returns float32[clients, rows, 1, 28, 28] in [0, 1] and int64[clients, rows]: ready, nothing is left to convert."""
  with np.load(path) as rows:
    x, y = rows['x'], rows['y']
  images = torch.from_numpy(x).to(torch.float32).div_(255.0).permute(0, 1, 4, 2, 3).contiguous()
  return images, torch.from_numpy(y).to(torch.int64)


def make_model(seed: int) -> MnistCnn:
  """Returns the model with weights that depend on the seed only."""
  with torch.random.fork_rng(devices=[]):
    torch.manual_seed(seed)
    return MnistCnn()


def num_parameters(model: nn.Module) -> int:
  return sum(parameter.numel() for parameter in model.parameters())


@torch.no_grad()
def accuracy(model: nn.Module, path: str) -> float:
  """Returns the model's accuracy on the rows of all clients."""
  x, y = load_rows(path)
  predicted = [model(piece).argmax(dim=1) for piece in x.flatten(0, 1).split(250)]
  return float((torch.cat(predicted) == y.flatten()).float().mean())


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int, size: int, rate: float) -> None:
  """Trains in place by plain SGD; for packages that leave the local loop to their users."""
  optimizer = torch.optim.SGD(model.parameters(), lr=rate)
  loss_function = nn.CrossEntropyLoss()
  for _ in range(epochs):
    for visit in torch.randperm(len(y)).split(size):
      optimizer.zero_grad()
      loss_function(model(x[visit]), y[visit]).backward()
      optimizer.step()
