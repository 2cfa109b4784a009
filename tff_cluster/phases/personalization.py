"""Baselines in which every client has a model of its own and nothing is clustered, measured beside FedAvg.

* Every client alone: from the initial model, for as many rounds as both phases have.
* Fine-tuned FedAvg: from FedAvg's last model every client trains alone for e rounds. One e, from 0 to `fine_tuning`, is for all
  clients: the one with the best mean accuracy on their validation rows, of equal ones the least.
* Ditto (T. Li, S. Hu, A. Beirami, V. Smith, "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021,
  algorithm 1): beside FedAvg's w every client keeps a v for F(v) + lambda / 2 * |v - w|^2, where F is its loss. In a round whose
  cohort it is in, it makes its local epochs from its v with lambda (v - w) added to each gradient, where w is the model that it
  received in that round; in other rounds v stays, and before the first one it is the initial model. Both models are trained in
  the same order of rows.

What clients train for themselves: own_training.py.
"""

import dataclasses
import functools
from typing import TYPE_CHECKING

from tff_cluster.aggregation.rules.fine_tuned import fine_tuned
from tff_cluster.base.cost import Cost
from tff_cluster.base.types import Weights
from tff_cluster.base.words import plural
from tff_cluster.experiment import memory_need, phase_files
from tff_cluster.experiment.measured import Evaluation, History, Personalized
from tff_cluster.experiment.sections import PERSONALIZED
from tff_cluster.phases import evaluation, own_training
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files, saved_rounds

if TYPE_CHECKING:
  from tff_cluster.federated import trajectory as trajectory_lib

LOCAL, FINE_TUNING, DITTO = PERSONALIZED


@dataclasses.dataclass(frozen=True, eq=False)
class _Made:
  """A baseline; see measured.Personalized."""

  model: str
  round: int
  cost: Cost
  history: History
  trained: own_training.Trained


def run(experiment: live_experiment_lib.Experiment) -> None:
  """Trains the baselines that are asked for, once FedAvg is there, and saves `phase2/NAME.json` of each."""
  makers = {LOCAL: _alone, FINE_TUNING: _fine_tuned, DITTO: _ditto}
  for name in missing(experiment):
    with experiment.timed(PERSONALIZED[name], experiment.population.num_clients) as figures:
      made = makers[name](experiment)
      scores, outcomes = made.trained.scores, made.trained.outcomes
      found = Personalized(
        name,
        made.model,
        made.round,
        made.cost,
        made.history,
        Evaluation(None, scores.summary(), scores.client_accuracy.tolist()),
        sum(int(outcome.history.dropped.sum()) for outcome in outcomes),
      )
      timing = figures(accuracy=found.evaluation.clients.mean_client_accuracy)
      kept = [outcome.checkpoints for outcome in outcomes]
      files.save_json(experiment.folder.personalized(name), phase_files.OwnModels(kept, found, timing))


def missing(experiment: live_experiment_lib.Experiment) -> list[str]:
  """Returns the baselines that are asked for and not done."""
  asked = experiment.config.evaluation.personalized
  return [name for name in asked if not experiment.folder.personalized(name).exists()]


def train_alone(experiment: live_experiment_lib.Experiment, client: int) -> 'trajectory_lib.Outcome':
  """Trains a client alone from the initial model, as far as the store lacks it; counts nothing."""
  from tff_cluster.federated import trajectory

  return trajectory.run(own_training.of_client(experiment, client), experiment.config.training.last_round)


def models_of_fedavg(experiment: live_experiment_lib.Experiment) -> saved_rounds.Checkpoints | None:
  """Returns the rounds of FedAvg whose models Ditto's clients receive after round 1; None where no Ditto is to be trained."""
  if DITTO not in missing(experiment):
    return None
  place = fedavg(experiment).place
  return saved_rounds.Checkpoints(place.name, 0, tuple(range(1, experiment.config.training.last_round)))


def fedavg(experiment: live_experiment_lib.Experiment) -> 'trajectory_lib.Trajectory':
  """Returns FedAvg without clusters, from the initial model on."""
  return experiment.trajectory(experiment.everyone, experiment.trainer.computations.model.weights, 0)


def pull(experiment: live_experiment_lib.Experiment, strength: float) -> 'trajectory_lib.Pull':
  """Returns what pulls Ditto's clients; FedAvg's models are read from the store when they are needed."""
  from tff_cluster.federated import trajectory

  model, name = experiment.trainer.computations.model, fedavg(experiment).place.name

  @functools.lru_cache(max(memory_need.PULLED_TO_BYTES // model.num_bytes, 1))
  def after(number: int) -> Weights:
    saved = saved_rounds.Checkpoints(name, 0, (number,))
    return experiment.load(saved, 'phase2')[number] if number else model.weights

  return trajectory.Pull(strength, name, functools.cache(fedavg(experiment).cohort), after)


def _alone(experiment: live_experiment_lib.Experiment) -> _Made:
  last = experiment.config.training.last_round
  trained = own_training.train_each(
    experiment, lambda client: own_training.of_client(experiment, client), last
  )
  # They stand in the place of Phase 1, so that its cost is taken off theirs.
  cost = _of_own_rounds(experiment, last) - _of_fedavg(
    experiment, 1, experiment.config.training.phase1_rounds
  )
  history = evaluation.clustered_history(experiment, trained.outcomes, 1)
  return _Made('its own, trained alone from the initial one', last, cost, history, trained)


def _fine_tuned(experiment: live_experiment_lib.Experiment) -> _Made:
  last = experiment.config.training.last_round
  most = experiment.config.evaluation.fine_tuning
  baseline = experiment.folder.load_finished(experiment.folder.baseline, phase_files.Baseline)
  start = experiment.load(baseline.trajectory, 'phase2', last)[last]
  fedavg = baseline.stage.history
  tuning = own_training.FineTuning(experiment, lambda client: start, fedavg.validation_accuracy[-1])
  chosen = fine_tuned(tuning.train, most)
  history = _joined(fedavg, evaluation.clustered_history(experiment, tuning.tried.outcomes, last + 1))
  words = f'FedAvg’s, fine-tuned for {plural(chosen, "round")} (of up to {most}, by validation rows)'
  cost = _of_fedavg_in_phase2(experiment) + _of_own_rounds(experiment, most)
  # Clients measure FedAvg's model, and theirs after every round, on their validation rows.
  cost += Cost(rows_forward=(most + 1) * int(experiment.population.validation.counts.sum()))
  return _Made(words, last + chosen, cost, history, tuning.stopped(chosen))


def _ditto(experiment: live_experiment_lib.Experiment) -> _Made:
  last, strength = experiment.config.training.last_round, experiment.config.evaluation.ditto
  assert strength is not None
  pulled = pull(experiment, strength)
  trained = own_training.train_each(
    experiment, lambda client: own_training.of_client(experiment, client, pull=pulled), last
  )
  history = evaluation.clustered_history(experiment, trained.outcomes, 1)
  words = f'its own, pulled to FedAvg’s with λ = {strength:g}'
  never = sum(not outcome.cost.client_rounds for outcome in trained.outcomes)
  words += (
    f' (the initial one of {plural(never, "client")} that {"was" if never == 1 else "were"} never drawn)'
    if never
    else ''
  )
  # Whoever trains FedAvg's model trains its own, too, in Phase 1 as well.
  cost = _of_fedavg_in_phase2(experiment) + _sent_to_nobody(_of_fedavg(experiment, 1, last))
  return _Made(words, last, cost, history, trained)


def _joined(fedavg: History, later: History) -> History:
  """Returns what was measured from FedAvg's last round on."""
  return History(**{name: values[-1:] + getattr(later, name) for name, values in vars(fedavg).items()})


def _of_fedavg(experiment: live_experiment_lib.Experiment, first: int, last: int) -> Cost:
  """Returns what the rounds of FedAvg without clusters from one to another cost."""
  return fedavg(experiment).cost(range(first, last + 1))


def _of_fedavg_in_phase2(experiment: live_experiment_lib.Experiment) -> Cost:
  return _of_fedavg(
    experiment, experiment.config.training.phase1_rounds + 1, experiment.config.training.last_round
  )


def _of_own_rounds(experiment: live_experiment_lib.Experiment, rounds: int) -> Cost:
  """Returns what it costs that every client trains for itself for so many rounds."""
  return sum([_sent_to_nobody(experiment.trainer.cost(experiment.everyone))] * rounds, Cost())


def _sent_to_nobody(cost: Cost) -> Cost:
  """Returns the part of a cost that clients have even where they neither receive nor send."""
  return Cost(client_rounds=cost.client_rounds, rows_trained=cost.rows_trained)
