"""What methods that alternate between training and clustering work with. The phases make it, so nothing here trains."""

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np

from tff_cluster.base.types import Json, Weights


@dataclasses.dataclass(frozen=True, eq=False)
class Segment:
  """A cluster, from the round in which it was made to its own split or to the last round.

  Attributes:
    members: int64[members], positions of the clients.
    start_round: The round whose model it starts from; 0 for all clients.
    end_round: The last round in which it trained.
    parent: Position of the cluster that it was split from; None for all clients.
  """

  members: np.ndarray
  start_round: int
  end_round: int
  parent: int | None


@dataclasses.dataclass(frozen=True, eq=False)
class Recursion:
  """What a method that alternates has done.

  Attributes:
    segments: All clusters that ever were, each after the one that it was split from.
    tests: What was asked of them (SPLIT in tff_cluster/experiment/results.py, with positions of clients in place of ids), each with
      float32[members, members], the similarities of its clients, NaN for those that were left out.
  """

  segments: list[Segment]
  tests: list[tuple[dict[str, Json], np.ndarray]]


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
  """A cluster after its last round so far.

  Attributes:
    round: That round.
    mean_update_norm: Norm of the mean update that was applied in it.
    before, after: The models before and after that round, which only the federation reads. `before` may be None where that
      is the last round of all.
  """

  round: int
  mean_update_norm: float
  before: Weights | None
  after: Weights


class Federation(Protocol):
  """Clients that train.

  Attributes:
    client_ids: Their ids.
    initial: The model that everything starts from.
    first_round: The last round of Phase 1; a cluster is split no earlier.
    last_round: The last round of all.
  """

  client_ids: tuple[str, ...]
  initial: Weights
  first_round: int
  last_round: int

  def train(
    self, members: np.ndarray, start: Weights, start_round: int, stop: Callable[[int, float], bool]
  ) -> Trained:
    """Trains a cluster to the last round, or until stop(round, norm of the mean update)."""

  def compare(self, members: np.ndarray, base: Weights, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the cosine similarities float64[members, members] and the norms float64[members] of a round's updates.

    Those of an update that is not finite are NaN.
    """


class Tree(Protocol):
  """The clusters that a method which alternates trained, for clients that come later.

  Attributes:
    segments: As in `Recursion`.
    num_newcomers: How many come later.
  """

  segments: list[Segment]
  num_newcomers: int

  def arriving(self, node: int, reached: np.ndarray) -> np.ndarray:
    """Returns float32[reached, features], what newcomers send in the round in which a cluster was split."""

  def sent(self, node: int, clients: np.ndarray) -> np.ndarray:
    """Returns float32[clients, features], what these clients sent in that round; NaN where it diverged."""
