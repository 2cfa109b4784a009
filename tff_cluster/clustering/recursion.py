"""What methods that split clusters while they train (CFL) work with. The phases make it, so nothing here trains."""

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np

from tff_cluster.base import records
from tff_cluster.base.types import Weights


@dataclasses.dataclass(frozen=True)
class Segment(records.Record):
  """A cluster, from the round in which it was made to its own split or to the last round.

  Attributes:
    members: Positions of the clients.
    start_round: The round whose model it starts from; 0 for all clients.
    end_round: The last round in which it trained.
    parent: Position of the cluster that it was split from; None for all clients.
  """

  members: list[int]
  start_round: int
  end_round: int
  parent: int | None


@dataclasses.dataclass(frozen=True)
class TwoKinds(records.Record):
  """Halves that a test leaves together because of their norms, although the similarities are plainly of two kinds.

  Attributes:
    halves: Client ids of both.
    cross_similarity, similarity_gap: See `Test`.
    stationary_norm, stopping_norm: Options that would have split them.
    words: A sentence that says so.
  """

  halves: list[list[str]]
  cross_similarity: float
  similarity_gap: float
  stationary_norm: float
  stopping_norm: float
  words: str


@dataclasses.dataclass(frozen=True)
class Test(records.Record):
  """A time that a cluster was found stationary and tested.

  Attributes:
    round: Tested after this round of training.
    cluster: Ids of the clients that train together.
    verdict: 'split', 'stopped' (no client's update is as long as stopping_norm, eps_2) or 'kept' (a guard forbade the split).
    halves: Client ids of the best bi-partition; None for 'stopped'.
    cross_similarity: Highest cosine similarity of two updates across the halves (eq. 6); None without halves.
    similarity_gap: See clustering/halves.py; None without halves.
    mean_update_norm: Compared with stationary_norm, eps_1.
    max_update_norm: Compared with stopping_norm.
    mean_similarity: Of all pairs of different clients of the cluster.
    reason: A sentence: why it was stopped or kept; '' for 'split'.
    excluded: Clients whose updates were not finite; they were not compared, and go with the larger half.
    two_kinds: For 'stopped' only, where it is so.
  """

  round: int
  cluster: list[str]
  verdict: str
  halves: list[list[str]] | None
  cross_similarity: float | None
  similarity_gap: float | None
  mean_update_norm: float
  max_update_norm: float
  mean_similarity: float
  reason: str
  excluded: tuple[str, ...] = records.optional(())
  two_kinds: TwoKinds | None = records.optional(None)


@dataclasses.dataclass(frozen=True, eq=False)
class Recursion:
  """What a method that splits has done.

  Attributes:
    segments: All clusters that ever were, each after the one that it was split from.
    tests: What was asked of them, in order of round and, within a round, of the clusters' first members, each with
      float32[members, members], the similarities of its clients, NaN for those that were left out.
  """

  segments: list[Segment]
  tests: list[tuple[Test, np.ndarray]]


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
  """The clusters that a method which splits trained, for clients that come later.

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
