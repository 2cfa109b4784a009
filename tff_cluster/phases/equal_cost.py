"""How far a clustering comes on what FedAvg without clusters spends in Phase 2, counted in the configuration's `budget`."""

import dataclasses
import itertools
from collections.abc import Sequence

from tff_cluster.base.cost import Cost
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.experiment import phase_files
from tff_cluster.phases import client_signatures
from tff_cluster.phases import live_experiment as live_experiment_lib


@dataclasses.dataclass(frozen=True)
class Affordable:
  """The last round that FedAvg's cost pays, and what has been spent then; see measured.EqualCost."""

  round: int
  cost: Cost


def of_finding(experiment: live_experiment_lib.Experiment, saved: phase_files.Clusters) -> Cost:
  """Returns what clusters cost before they were trained."""
  choice = saved.choice.cost if saved.choice else Cost()
  return (
    client_signatures.start_cost(experiment, saved.assignment.members_of_all)
    + _of_sending(experiment, saved)
    + choice
  )


def of_start(experiment: live_experiment_lib.Experiment, saved: phase_files.Clusters) -> Cost:
  """Returns what clusters cost that a method which alternates starts from; the rounds in which a cut was chosen are among it.

  Phase 2 of the clusters themselves goes on from these rounds, so that `of_finding` leaves them to it.
  """
  spent = of_finding(experiment, saved)
  if saved.choice is None:
    return spent
  begin, assignment = experiment.config.training.phase1_rounds, saved.assignment
  tried = range(begin + 1, begin + saved.choice.rounds + 1)
  members = assignment.members_of_all
  return sum((experiment.trainer.cost_of_rounds(cluster, tried) for cluster in members), spent)


def _of_sending(experiment: live_experiment_lib.Experiment, saved: phase_files.Clusters) -> Cost:
  """Returns what it cost that clients sent what they were clustered by, and weights that their clusters start from.

  Without a Phase 1 weights are the initial model plus updates, so that both come of one local training and one message.
  """
  training = experiment.config.training
  if saved.sent_bytes is None:
    kinds = training.signatures([saved.signature])
  else:
    kinds = (
      {'weights'} if training.cluster_start == 'members_mean' and training.sketch_dimension is None else set()
    )
  sent, told = Cost(bytes_up=saved.sent_bytes or 0), sorted(kinds)
  if training.phase1_rounds == 0:
    del told[1:]
  return sum((client_signatures.cost(experiment, kind) for kind in told), sent)


class Budget:
  """What FedAvg without clusters spends in Phase 2."""

  def __init__(self, experiment: live_experiment_lib.Experiment):
    training = experiment.config.training
    self._first_round = training.phase1_rounds
    self._rounds = range(self._first_round + 1, self._first_round + training.phase2_rounds + 1)
    self._trainer, self._unit = experiment.trainer, experiment.config.evaluation.budget
    self._amount = self._trainer.cost_of_rounds(experiment.everyone, self._rounds).of(self._unit)

  def pays(self, cost: Cost) -> bool:
    """Tells whether it is as much."""
    return cost.of(self._unit) <= self._amount

  def last_paid(self, first_round: int, spent: Sequence[Cost]) -> Affordable | None:
    """Returns the last round that it pays; None where it pays all.

    Args:
      first_round: The round that models start from.
      spent: What has been spent where training ends with that round, and with each after it.
    """
    row = max((row for row, cost in enumerate(spent) if self.pays(cost)), default=0)
    return None if row == len(spent) - 1 else Affordable(first_round + row, spent[row])

  def of_clusters(self, assignment: assignment_lib.ClusterAssignment, found: Cost) -> Affordable | None:
    """Returns how far clusters come that are trained as they are.

    Args:
      assignment: The clusters.
      found: What they cost before.
    """
    members = assignment.members_of_all
    each = (
      sum((self._trainer.cost_of_rounds(cluster, [number]) for cluster in members), Cost())
      for number in self._rounds
    )
    return self.last_paid(self._first_round, list(itertools.accumulate(each, initial=found)))
