"""Clients that train models of their own: each for itself, from any model on.

What a client trains for itself it sends to nobody: no aggregator, no optimizer of the server and no attack on what is sent has a
part in it. It is a trajectory of one client, so it is resumed, and found in the store, as others are. A client whose update is not
finite stays with the model that it has, as it would among others.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base import digests
from tff_cluster.base.types import Json, Weights
from tff_cluster.data import class_counts
from tff_cluster.phases import evaluation
from tff_cluster.phases import live_experiment as live_experiment_lib

if TYPE_CHECKING:
  from tff_cluster.federated import trajectory as trajectory_lib

_OF_SERVER = ('aggregator', 'server_optimizer', 'server_learning_rate', 'server_momentum')


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
  """Every client's trajectory, without models (those of 1,000 clients would not fit into memory), and scores of its last model.

  Attributes:
    outcomes: [clients].
    scores: On its test rows, a row a client.
  """

  outcomes: list['trajectory_lib.Outcome']
  scores: class_counts.Scores


def of_client(
  experiment: live_experiment_lib.Experiment,
  client: int,
  start: Weights | None = None,
  start_round: int = 0,
  pull: 'trajectory_lib.Pull | None' = None,
) -> 'trajectory_lib.Trajectory':
  """Returns the trajectory of a client that trains for itself; default: from the initial model. See Trajectory."""
  from tff_cluster.federated import trajectory

  trainer, settings = experiment.trainer.alone, dict[str, Json](experiment.settings)
  for name in _OF_SERVER:
    settings.pop(name, None)
  if experiment.population.update_scale(client) != 1.0:
    settings['sends'] = False  # Elsewhere a malicious client's trajectory alters its updates.
  weights = trainer.computations.model.weights if start is None else start
  members = np.array([client])
  return trajectory.Trajectory(trainer, experiment.store, settings, members, weights, start_round, True, pull)


def train_each(
  experiment: live_experiment_lib.Experiment, of: Callable[[int], 'trajectory_lib.Trajectory'], last: int
) -> Trained:
  """Trains every client for itself, several side by side, and measures its model on its test rows.

  Args:
    experiment: The experiment.
    of: Returns a client's trajectory.
    last: Number of the last round.
  """
  from tff_cluster.federated import trajectory

  def train(client: int) -> tuple['trajectory_lib.Outcome', class_counts.Scores]:
    outcome = trajectory.run(of(client), last)
    experiment.count(outcome)
    scores = experiment.trainer.measure(outcome.weights[last], experiment.population.test, [client])
    experiment.progress.update()
    return dataclasses.replace(outcome, weights={}), scores

  clients = range(experiment.population.num_clients)
  found = experiment.each(train, clients)
  outcomes, scores = zip(*(found[client] for client in clients), strict=True)
  return Trained(list(outcomes), class_counts.concatenate(scores))


class FineTuning:
  """Clients that go on training after the last round, each from a model that it has then.

  Attributes:
    tried: What all rounds that were tried came to, once `train` was called.
  """

  tried: Trained

  def __init__(
    self, experiment: live_experiment_lib.Experiment, start: Callable[[int], Weights], accuracy: float
  ):
    """Takes what returns the model that a client goes on from, and how good these are: mean accuracy on validation rows."""
    self._experiment, self._start, self._accuracy = experiment, start, accuracy
    self._rounds: int | None = None
    self._strength = 0.0

  def train(self, rounds: int, proximal_mu: float = 0.0) -> np.ndarray:
    """Trains every client for so many rounds; see aggregation/rules/fine_tuned.py.

    Args:
      rounds: At least 1.
      proximal_mu: mu of mu / 2 |w - start|^2, where the start is that of the first round; see `_pull`.

    Returns:
      float64[rounds + 1], mean accuracy on validation rows, before the first round and after each.
    """
    self._rounds, self._strength = rounds, proximal_mu
    self.tried = self._until(rounds)
    first = self._experiment.config.training.last_round + 1
    later = evaluation.clustered_history(self._experiment, self.tried.outcomes, first)
    return np.array([self._accuracy, *later.validation_accuracy])

  def stopped(self, rounds: int) -> Trained:
    """Returns what so many rounds come to, at most those that were tried.

    Only the last round's models are kept: to train so many rounds again takes less than to keep those of all. That counts in what the
    run asked for, and not in what the clients spent.
    """
    return self.tried if rounds == self._rounds else self._until(rounds)

  def _until(self, rounds: int) -> Trained:
    last = self._experiment.config.training.last_round

    def of(client: int) -> 'trajectory_lib.Trajectory':
      start = self._start(client)
      return of_client(self._experiment, client, start, last, self._pull(client, start))

    return train_each(self._experiment, of, last + rounds)

  def _pull(self, client: int, start: Weights) -> 'trajectory_lib.Pull | None':
    """Returns what pulls a client to where the first of its rounds starts, in every round.

    The experiment's own proximal_mu, which else pulls to where each round starts, is added to the rule's and pulls there too.
    """
    from tff_cluster.federated import trajectory

    if not self._strength:
      return None
    strength = self._strength + self._experiment.config.training.proximal_mu
    members = np.array([client])
    return trajectory.Pull(strength, digests.of_arrays(start), lambda number: members, lambda number: start)
