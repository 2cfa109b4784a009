"""The ways of clients over the rounds of a method that alternates between clustering and training (clustering/alternating.py).

A client's models are those in which it has the largest share: one, but where it has as much of several.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base import records

# A model of which no client has a larger share is nobody's: shares that sum to 1 may have a floor (FedSoft), or fade (FedEM).
_SMALLEST_SHARE = 0.01


@dataclasses.dataclass(frozen=True)
class Collapse:
  """What of its models a method that alternates had lost at the end.

  Attributes:
    num_models: K.
    empty_models: How many ended without clients (`is_anybodys`); 0 where the method chooses itself how many of K it takes.
    all_in_one: Whether all clients ended with as much of each of several models, and so with one model.
  """

  num_models: int
  empty_models: int
  all_in_one: bool

  @property
  def happened(self) -> bool:
    return self.empty_models > 0 or self.all_in_one


@dataclasses.dataclass(frozen=True)
class Alternated(records.Record):
  """What the rounds of a method that alternates came to.

  Attributes:
    start: Where its models started, see Options in clustering/alternating.py.
    first_round: The round whose models they started from.
    rounds: How many followed.
    num_models: K.
    models: [clusters], which of them are the clusters'.
    changed: [rounds], clients whose models are others than after the round before; 0 for the first round.
    oldest, mean_age: Rounds since a client's membership was estimated, at the end; 0 where all were estimated in the last one.
  """

  start: str
  first_round: int
  rounds: int
  num_models: int
  models: list[int]
  changed: list[int]
  oldest: int
  mean_age: float

  @property
  def names(self) -> list[str]:
    """[models], what pages call them: the clusters that they are at the end."""
    places = {model: f'cluster {cluster}' for cluster, model in enumerate(self.models)}
    return [places.get(model, f'model {model}') for model in range(self.num_models)]

  @property
  def last_round(self) -> int:
    return self.first_round + self.rounds

  @property
  def rounds_of_changes(self) -> tuple[int, ...]:
    """The rounds in which clients came to other models, ascending."""
    return tuple(self.first_round + place for place, changed in enumerate(self.changed, start=1) if changed)


def chooses_number(told: int | None, start: str, options: Mapping[str, Any]) -> bool:
  """Tells whether a method takes as many of its models as it likes, so that one without clients is no collapse.

  Args:
    told: The number of clusters that it was told, which a start from a clustering gives it, too.
    start: Where its models start.
    options: Its options; one that is called `choose_number` says it, wherever its models start.
  """
  return options.get('choose_number') is True or (told is None and start != 'clustering')


def is_anybodys(shares: Sequence[float] | np.ndarray) -> bool:
  """Tells whether a model has clients, of float[clients], their shares in it: whether one of them is above 1%."""
  return bool(max(shares) > _SMALLEST_SHARE)


def own_models(shares: np.ndarray) -> np.ndarray:
  """Returns bool[rounds, models, clients], which are the clients' models; none while nothing is known of a client.

  Args:
    shares: float[rounds, models, clients].
  """
  return (shares == shares.max(axis=1, keepdims=True)) & (shares > 0.0)


def changes(own: np.ndarray) -> np.ndarray:
  """Returns int64[rounds], how many clients have other models than after the round before; 0 for the first round.

  Args:
    own: bool[rounds, models, clients]. Clients that had none before do not count.
  """
  moved = (own[1:] != own[:-1]).any(axis=1) & own[:-1].any(axis=1)
  return np.concatenate([np.zeros(1, np.int64), moved.sum(axis=1)])


def summarise(
  shares: np.ndarray, since: np.ndarray, start: str, first_round: int, models: list[int]
) -> Alternated:
  """Returns what rounds came to.

  Args:
    shares: float[rounds, models, clients], after each round; at least one round.
    since: int64[clients], the round in which a client's membership was estimated last.
    start, first_round, models: See Alternated.
  """
  rounds, count, _ = shares.shape
  own, ages = own_models(shares), first_round + rounds - since
  return Alternated(
    start=start,
    first_round=first_round,
    rounds=rounds,
    num_models=count,
    models=models,
    changed=changes(own).tolist(),
    oldest=int(ages.max()),
    mean_age=float(ages.mean()),
  )
