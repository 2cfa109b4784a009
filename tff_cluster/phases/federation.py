"""The clients of an experiment at work for a method that alternates (clustering/alternating.py), and what they cost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.base.cost import Cost
from tff_cluster.base.types import Weights
from tff_cluster.clustering.alternating import Model, mean_losses
from tff_cluster.phases import live_experiment as live_experiment_lib

if TYPE_CHECKING:
  from tff_cluster.federated import trainer as trainer_lib


class Clients:
  """The clients as a clustering.alternating.Federation; calls of several models are in flight side by side.

  Attributes:
    client_ids, rows, seed, first_round: See there.
    cost: What the clients were sent and did since `begin`.
    loss_sum, visited: Cross-entropy summed over the rows that clients trained on since `begin`, and how many these were, without
      those of clients whose updates were dropped; `updates` measures none.
    dropped: Updates since then that were not finite.
  """

  def __init__(self, experiment: live_experiment_lib.Experiment, first_round: int):
    self._experiment, self._trainer = experiment, experiment.trainer
    self._model_bytes = self._trainer.computations.model.num_bytes
    self.client_ids = experiment.population.client_ids
    self.rows = experiment.population.train.counts
    self.seed = experiment.config.training.seed
    self.first_round = first_round
    # Who trained since the last finite update.
    self._lost: set[int] = set()
    self.begin()

  def begin(self) -> None:
    """Begins a round: nothing was sent, and nothing counted."""
    self.cost, self.loss_sum, self.visited, self.dropped = Cost(), 0.0, 0, 0
    # The models too, so that no later one of the round is at the same place in memory.
    self._sent: dict[tuple[int, int], Weights] = {}
    self._trained: set[int] = set()

  def refuse_divergence(self, number: int) -> None:
    """Ends a round; raises InputError where it is the training that diverges, see Trainer.refuse_divergence."""
    if self.dropped < self.cost.client_rounds:
      self._lost.clear()
    else:
      self._lost |= self._trained
      self._trainer.refuse_divergence(
        number, self._experiment.everyone, [np.array(sorted(self._lost), np.int64)]
      )

  def cohort(self, number: int) -> np.ndarray:
    """See Federation.cohort; it is the one that FedAvg without clusters draws."""
    return self._trainer.cohort(self._experiment.everyone, number)

  def losses(self, models: Sequence[Weights], clients: np.ndarray) -> np.ndarray:
    """See Federation.losses."""
    return mean_losses(self.row_losses(models, clients))

  def row_losses(self, models: Sequence[Weights], clients: np.ndarray) -> list[np.ndarray]:
    """See Federation.row_losses."""
    self._send(models, [clients] * len(models))
    self.cost += Cost(rows_forward=len(models) * int(self.rows[clients].sum()))
    return self._trainer.row_losses(models, self._trainer.population.train, clients)

  def fed_avg(
    self,
    number: int,
    models: Sequence[Model],
    users: Sequence[np.ndarray],
    equal: bool = False,
    row_weights: Sequence[Sequence[np.ndarray]] | None = None,
  ) -> tuple[Model, ...]:
    """See Federation.fed_avg."""
    self._send([model.weights for model in models], users)
    self._train(users)
    used = [k for k, clients in enumerate(users) if len(clients)]

    def train(k: int) -> tuple['trainer_lib.State', dict[str, float]]:
      weights = None if row_weights is None else row_weights[k]
      return self._trainer.round(self._state(models[k]), users[k], number, equal, weights)

    if self._trainer.joins_rounds(users):
      states = [self._state(model) for model in models]
      everyones = self._trainer.several_rounds(states, users, number, equal, row_weights)
      found = {k: everyones[k] for k in used}
    else:
      found = self._experiment.each(train, used)
    for k in used:
      figures = found[k][1]
      self.dropped += int(figures['dropped'])
      self.loss_sum += figures['train_loss'] * figures['visited']
      self.visited += int(figures['visited'])
    return tuple(self._model(found[k][0]) if k in found else model for k, model in enumerate(models))

  def updates(
    self,
    number: int,
    starts: Sequence[Weights],
    users: Sequence[np.ndarray],
    made_of: Sequence[Weights] | None = None,
    proximal_mu: float = 0.0,
  ) -> list[np.ndarray]:
    """See Federation.updates."""
    if made_of is None:
      self._send(starts, users)
    else:
      self._send(made_of, [np.concatenate(users)] * len(made_of))
    self._train(users)
    features = self._trainer.computations.model.num_parameters

    def train(k: int) -> np.ndarray:
      return self._trainer.update_matrix(starts[k], users[k], number, proximal_mu)

    found = self._experiment.each(train, [k for k, clients in enumerate(users) if len(clients)])
    everybodys = [found.get(k, np.empty((0, features), np.float32)) for k in range(len(starts))]
    self.dropped += sum(int((~np.isfinite(updates).all(axis=1)).sum()) for updates in everybodys)
    return everybodys

  def model(self, weights: Weights) -> Model:
    """Returns a model before its first round, with what aggregator and server optimizer begin with."""
    return self._model(self._trainer.start(weights))

  def average(self, model: Model, updates: np.ndarray, weights: np.ndarray) -> Model:
    """See Federation.average."""
    return self._model(self._trainer.average(self._state(model), updates, weights))

  def _send(self, models: Sequence[Weights], users: Sequence[np.ndarray]) -> None:
    """Counts models that clients do not have from earlier in the round."""
    new = {(id(model), int(k)): model for model, clients in zip(models, users, strict=True) for k in clients}
    sent = len(new.keys() - self._sent.keys())
    self.cost += Cost(models_down=sent, bytes_down=sent * self._model_bytes)
    self._sent |= new

  def _train(self, users: Sequence[np.ndarray]) -> None:
    trainings = sum(map(len, users))
    self._trained.update(int(k) for clients in users for k in clients)
    visits = sum(map(self._visits, users))
    self.cost += Cost(
      client_rounds=trainings,
      models_up=trainings,
      bytes_up=trainings * self._model_bytes,
      rows_trained=visits,
    )

  def _visits(self, clients: np.ndarray) -> int:
    return int(self.rows[clients].sum()) * self._trainer.local_epochs

  def _state(self, model: Model) -> 'trainer_lib.State':
    if not model.memory:
      return self._trainer.start(model.weights)
    return self._trainer.state_from_arrays([*model.weights, *model.memory])

  def _model(self, state: 'trainer_lib.State') -> Model:
    weights = self._trainer.weights(state)
    return Model(weights, tuple(self._trainer.state_arrays(state)[len(weights) :]))
