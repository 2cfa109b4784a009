"""The way of every client over the rounds of a method that alternates, for an atlas (its document is described in data.py)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tff_cluster.base import arrays
from tff_cluster.clustering.membership_history import own_models
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.report.figures import ordering

# Stages of a flow between its start and its end.
_MOST_STAGES = 3


def read(clustering: Clustering, arrays: Mapping[str, np.ndarray], clients: int) -> np.ndarray | None:
  """Returns bool[rounds, models, clients], the clients' models after each round; None where that is not known.

  Args:
    clustering: One of a run's.
    arrays: The run's arrays.npz.
    clients: How many there are.
  """
  found, shares = clustering.alternation, arrays.get(f'memberships_{clustering.label}')
  if found is None or shares is None or shares.shape != (found.rounds, found.num_models, clients):
    return None
  return own_models(shares)


def kinds_of_models(clustering: Clustering, kinds: np.ndarray) -> list[int]:
  """Returns a colour number for each model of a clustering that alternated, from those of its clusters; else nothing."""
  found = clustering.alternation
  return [] if found is None else ordering.model_kinds(kinds, found.models, found.num_models).tolist()


def over_rounds(clustering: Clustering, own: np.ndarray, kinds: np.ndarray, colours: int) -> dict[str, Any]:
  """Returns `way` and `stages` of an atlas's document.

  Args:
    clustering: One that alternated.
    own: bool[rounds, models, clients], see `read`.
    kinds: int64[clusters], colour numbers.
    colours: How many there are; models with a larger number are left grey.
  """
  found = clustering.alternation
  assert found is not None
  numbers = kinds_of_models(clustering, kinds)
  first = found.first_round + 1
  way = {
    'start': found.start,
    'first': first,
    'last': found.last_round,
    'names': found.names,
    'colours': [number if number < colours else None for number in numbers],
    'clients': [_of_client(own[:, :, k], first) for k in range(own.shape[2])],
  }
  return {'way': way, 'stages': stages(own, first)}


def stages(own: np.ndarray, first: int) -> list[dict[str, Any]]:
  """Returns the clients of each model after some rounds, each the last one before a client went elsewhere, but the very last.

  Args:
    own: bool[rounds, models, clients].
    first: Number of the first round.
  """
  before = np.flatnonzero((own[1:] != own[:-1]).any(axis=(1, 2)))
  return [_stage(own[row], first + int(row)) for row in before[arrays.evenly(len(before), _MOST_STAGES)]]


def _stage(own: np.ndarray, number: int) -> dict[str, Any]:
  models = [k for k, row in enumerate(own) if row.any()]
  clusters = [np.flatnonzero(own[k]).tolist() for k in models]
  unknown = np.flatnonzero(~own.any(axis=0)).tolist()
  if unknown:
    models, clusters = [*models, -1], [*clusters, unknown]
  return {'round': number, 'clusters': clusters, 'models': models}


def _of_client(own: np.ndarray, first: int) -> list[list[Any]]:
  """Returns [[round, [model]]], a client's models from each round on in which they become others; bool[rounds, models]."""
  turns = [0, *(np.flatnonzero((own[1:] != own[:-1]).any(axis=1)) + 1).tolist()]
  return [[first + turn, np.flatnonzero(own[turn]).tolist()] for turn in turns]
