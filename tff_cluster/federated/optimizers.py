"""How clients and the server step: TFF's optimizers by name, and what pulls a client beside the loss of its rows.

Adam and Yogi have TFF's constants: beta 0.9 and 0.999, epsilon 1e-7 (Adam) and 1e-3 (Yogi), both with bias correction.
"""

import collections
import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import tensorflow as tf
import tensorflow_federated as tff

_LEARNING_RATE = tff.learning.optimizers.LEARNING_RATE_KEY

# What an optimizer of TFF remembers from step to step.
State: TypeAlias = 'collections.OrderedDict[str, object]'


@dataclasses.dataclass(frozen=True)
class Local:
  """How a client trains in a round. Its optimizer starts anew in each: a client remembers nothing.

  Attributes:
    learning_rate: Of round 1.
    batch_size: Rows of a batch, 0 for all rows at once. The last batch of an epoch may be smaller.
    optimizer: One of sections.CLIENT_OPTIMIZERS.
    momentum: Of the optimizer that is called so.
    weight_decay: lambda of a penalty lambda / 2 * |w|^2 on the weights w.
    proximal_mu: mu of a penalty mu / 2 * |w - anchor|^2. The anchor is the weights that the client starts from, unless it is
      given another one: FedProx (Li et al. 2020, equation 2).
    learning_rate_decay: The learning rate of round t is learning_rate times this to the power of t - 1.
    weighs_rows: Whether a client brings a weight for each of its rows, which the row's loss is multiplied with.
    brings_anchor: Whether a client brings the anchor of proximal_mu.
  """

  learning_rate: float
  batch_size: int
  optimizer: str = 'sgd'
  momentum: float = 0.9
  weight_decay: float = 0.0
  proximal_mu: float = 0.0
  learning_rate_decay: float = 1.0
  weighs_rows: bool = False
  brings_anchor: bool = False

  @property
  def decays(self) -> bool:
    """Whether clients are told what to multiply the learning rate with; else nothing of it is in the graph."""
    return self.learning_rate_decay != 1.0

  def rate(self, round_number: int) -> float | None:
    """Returns what a round (from 1) multiplies the learning rate with; None where it does not decay."""
    return self.learning_rate_decay ** (round_number - 1) if self.decays else None

  def build(self) -> tff.learning.optimizers.Optimizer:
    """Returns the optimizer, with the learning rate of round 1."""
    return build(self.optimizer, self.learning_rate, self.momentum)

  def pulled(
    self, gradients: Sequence[tf.Tensor], weights: Sequence[tf.Tensor], anchor: Sequence[tf.Tensor] | None
  ) -> Sequence[tf.Tensor]:
    """Returns the gradients of the loss with those of both penalties added.

    So weight decay is L2 regularization, for Adam too. What TFF has is build_adamw, which decouples it (Loshchilov and
    Hutter 2019); the two differ for all but plain SGD.

    Args:
      gradients, weights: Of the loss, and where it was taken.
      anchor: What proximal_mu pulls to; None where that is 0.
    """
    if self.weight_decay:
      pairs = zip(gradients, weights, strict=True)
      gradients = tuple(tf.convert_to_tensor(g) + self.weight_decay * w for g, w in pairs)
    if anchor is not None:
      triples = zip(gradients, weights, anchor, strict=True)
      gradients = tuple(tf.convert_to_tensor(g) + self.proximal_mu * (w - a) for g, w, a in triples)
    return gradients


@dataclasses.dataclass(frozen=True)
class Server:
  """How the server steps from model to model: the clients' mean update (before minus after) is its gradient.

  The default replaces the model by the mean of the clients' (McMahan et al. 2017). Others are FedAvgM (Hsu et al. 2019), FedAdam and
  FedYogi (Reddi et al. 2021, algorithm 2), but for TFF's constants and its bias correction.

  Attributes:
    learning_rate: Of the server.
    optimizer: One of sections.SERVER_OPTIMIZERS.
    momentum: Of the optimizer that is called so.
  """

  learning_rate: float = 1.0
  optimizer: str = 'sgd'
  momentum: float = 0.9

  @property
  def is_mean(self) -> bool:
    """Whether the model moves by the clients' mean update itself."""
    return self.optimizer == 'sgd' and self.learning_rate == 1.0

  def build(self) -> tff.learning.optimizers.Optimizer:
    """Returns the optimizer."""
    return build(self.optimizer, self.learning_rate, self.momentum)


MEAN = Server()


def build(name: str, learning_rate: float, momentum: float) -> tff.learning.optimizers.Optimizer:
  """Returns TFF's optimizer of a name: sgd, momentum (the only one that takes `momentum`), adam or yogi."""
  if name == 'momentum':
    return tff.learning.optimizers.build_sgdm(learning_rate, momentum)
  builders = {
    'sgd': tff.learning.optimizers.build_sgdm,
    'adam': tff.learning.optimizers.build_adam,
    'yogi': tff.learning.optimizers.build_yogi,
  }
  return builders[name](learning_rate)


def at_rate(optimizer: tff.learning.optimizers.Optimizer, state: State, rate: tf.Tensor) -> State:
  """Returns an optimizer's state with its learning rate multiplied."""
  found = optimizer.get_hparams(state)
  return optimizer.set_hparams(state, found | {_LEARNING_RATE: found[_LEARNING_RATE] * rate})
