"""Clients that took no part: assigned to clusters from one local update, and measured (data/new_clients.py draws them).

A new client trains for one round from the global model that the others' signatures started from, with the visit orders of
that round, and sends what they sent. It is assigned by the rule that belongs to the method (`join` in its file in clustering/methods), and
uses the mean of the models of its clusters, as everybody does. Nothing is trained on its rows: no model changes.

For CFL, which alternates, a signature is not what was clustered. There a new client goes down the tree of splits: at
each it trains for the round whose updates were split, from that cluster's model, and is on the side of the client whose
update is most similar. A server has those clients' updates from that round. Here they are made again, because a run keeps
their similarities only: keeping all updates of every split would take as much room as the clients' signatures each time.

Costs: counted are the new clients' local updates, one each, with CFL one for each split on the way, none for the
oracle, what new clients send where training rows are read (PACFL's singular vectors), and for methods that alternate the models that
a new client measures. The updates that are made again count in the timing, but in no cost.

For a method that clusters clients by their training rows (PACFL) a new client trains nothing: what it sends follows from its
own training rows, as with the others.

A new client whose training goes to NaN or infinity joins the largest cluster, of a split the larger half, and that is told
as a fallback; clients that took part and diverged decide nothing (clustering/diverged_clients.py).
"""

from typing import TYPE_CHECKING

import numpy as np

from tff_cluster.aggregation import mixing
from tff_cluster.base.cost import Cost
from tff_cluster.base.types import Weights
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.measured import JoinedClients
from tff_cluster.phases import client_scores, client_signatures, cluster_training, own_models, recursion
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files as files_lib

if TYPE_CHECKING:
  from tff_cluster.clustering import outcome
  from tff_cluster.federated import trainer as trainer_lib


def run_baseline(experiment: live_experiment_lib.Experiment) -> None:
  """Measures FedAvg without clusters on the new clients, and saves `new_clients/baseline.json`."""
  folder, training = experiment.folder, experiment.config.training
  if experiment.new_clients is None or folder.new_clients_baseline.exists():
    return
  kept = folder.load_finished(folder.baseline, phase_files.Baseline).trajectory
  last = training.last_round
  with experiment.timed('new clients without clusters') as figures:
    model = experiment.load(kept, 'phase2', last)[last]
    accuracy = _accuracy(experiment, model, np.arange(experiment.new_clients.num_clients))
    files_lib.save_json(
      folder.new_clients_baseline,
      phase_files.NewClientsBaseline(accuracy.tolist(), figures(accuracy=float(np.mean(accuracy)))),
    )


def run_clustering(
  experiment: live_experiment_lib.Experiment, clustering: config_lib.ClusteringConfig
) -> None:
  """Assigns the new clients to a clustering's clusters, measures them, and saves `new_clients/clustering_LABEL.json`."""
  folder, label = experiment.folder, clustering.label
  if experiment.new_clients is None or folder.new_clients_of(label).exists():
    return
  folder.load_finished(folder.phase3(label), phase_files.Phase3)
  everyone = np.arange(experiment.new_clients.num_clients)
  with experiment.timed(f'new clients of {label}') as figures:
    loaded = cluster_training.load_clusters(experiment, label)
    joined, cost = _join(experiment, clustering, loaded)
    models = loaded.models
    with experiment.progress.stage(f'new clients {label}', len(models) + 1):
      accuracies = []
      for weights in models:
        accuracies.append(_accuracy(experiment, weights, everyone))
        experiment.progress.update()
      of_clusters = np.stack(accuracies)
      if clustering.rule.joins_predictions:
        split = experiment.new_clients.test
        own = own_models.joined(experiment, models, joined.membership, split).client_accuracy
      else:
        own = _own_accuracy(experiment, models, joined.membership, of_clusters)
      experiment.progress.update()
    found = JoinedClients(
      assigned=[np.flatnonzero(column).tolist() for column in joined.membership.T],
      fallback=joined.fallback.tolist(),
      client_accuracy=own.tolist(),
      cluster_accuracy=of_clusters.tolist(),
      regret=(of_clusters.max(axis=0) - own).tolist(),
      cost=cost,
      shares=_shares(joined.membership),
    )
    timing = figures(accuracy=float(np.mean(own)))
    files_lib.save_json(folder.new_clients_of(label), phase_files.NewClientsJoined(found, timing))


def _join(
  experiment: live_experiment_lib.Experiment,
  clustering: config_lib.ClusteringConfig,
  loaded: cluster_training.Loaded,
) -> tuple['outcome.Joined', Cost]:
  """Returns the new clients' clusters, and what they spent on it."""
  from tff_cluster.clustering import diverged_clients, signatures
  from tff_cluster.clustering.method import Evidence, Newcomers

  folder, new = experiment.folder, experiment.new_client_trainer.population
  rule, options, seed = clustering.rule, clustering.options, experiment.config.training.seed
  assignment = loaded.assignment
  if rule.splits:
    tree = SplitTree(experiment, clustering.label)
    return rule.join(options, Newcomers(assignment, tree=tree)), tree.spent
  if rule.alternates:
    everyone, trainer = np.arange(new.num_clients), experiment.new_client_trainer
    arrived = Newcomers(assignment, losses=lambda: trainer.row_losses(loaded.models, new.train, everyone))
    return rule.join(options, arrived), trainer.cost_of_measuring(new.train, everyone, len(loaded.models))
  if rule.oracle:
    population = experiment.population
    unseen = signatures.Signatures(np.zeros((population.num_clients, 1)), population.client_ids)
    evidence = Evidence(unseen, seed, population.truths)
    return rule.join(options, Newcomers(assignment, evidence, truths=new.truths)), Cost()
  saved = folder.load_finished(folder.clusters(clustering.label), phase_files.Clusters)
  kind = saved.signature
  if rule.reads_rows:
    evidence = Evidence(
      client_signatures.load(folder, kind), seed, rows=experiment.population.training_rows()
    )
    by_rows = rule.join(options, Newcomers(assignment, evidence, rows=new.training_rows()))
    return by_rows, Cost(bytes_up=by_rows.sent_bytes or 0)
  # What a newcomer sends is compared with what the others sent, which is what clustering methods do.
  known = client_signatures.load(folder, kind)
  sent, joined = client_signatures.of_new_clients(experiment, kind), None
  if sent is not None:
    options = rule.for_clients(options, known.num_clients)
    joined = rule.join(options, Newcomers(assignment, Evidence(known, seed), sent, saved.threshold))
  ids = () if sent is None else sent.client_ids
  joined = diverged_clients.join_largest(joined, ids, new.client_ids, assignment)
  return joined, client_signatures.cost_of_new_clients(experiment)


class SplitTree:
  """The clusters of a recursion as a clustering.recursion.Tree; a segment of the recursion is a cluster of the tree.

  Attributes:
    segments, num_newcomers: See there.
    spent: What the newcomers spent.
  """

  def __init__(self, experiment: live_experiment_lib.Experiment, label: str):
    self._experiment = experiment
    path = experiment.folder.phase2(label)
    self._trajectories = experiment.folder.load_finished(path, phase_files.Phase2).trajectories
    self.segments = recursion.segments(experiment.folder, label)
    self.num_newcomers = experiment.new_client_trainer.population.num_clients
    self.spent = Cost()

  def arriving(self, node: int, reached: np.ndarray) -> np.ndarray:
    """Returns float32[reached, features], what newcomers send in the round in which a cluster was split."""
    trainer = self._experiment.new_client_trainer
    self.spent += trainer.cost(reached)
    return self._sent(trainer, node, reached)

  def sent(self, node: int, clients: np.ndarray) -> np.ndarray:
    """Returns float32[clients, features], what these clients sent in that round, made again; NaN where it diverged."""
    return self._sent(self._experiment.trainer, node, clients)

  def _sent(self, trainer: 'trainer_lib.Trainer', node: int, clients: np.ndarray) -> np.ndarray:
    number = self.segments[node].end_round
    return _updates(self._experiment, trainer, self._model(node, number - 1), clients, number)

  def _model(self, node: int | None, round_number: int) -> Weights:
    """Returns a cluster's model after a round; the one that it started from is that of the cluster that it was split from."""
    if node is None:
      return self._experiment.trainer.computations.model.weights
    if round_number == self.segments[node].start_round:
      return self._model(self.segments[node].parent, round_number)
    return self._experiment.load(self._trajectories[node], 'phase2', round_number)[round_number]


def _updates(
  experiment: live_experiment_lib.Experiment,
  trainer: 'trainer_lib.Trainer',
  base: Weights,
  clients: np.ndarray,
  number: int,
) -> np.ndarray:
  """Returns float32[clients, features], what the clients send in a round that starts from the base; NaN if it diverged."""
  experiment.asked += len(clients)
  experiment.trained += len(clients)
  return trainer.update_matrix(base, clients, number)


def _shares(membership: np.ndarray) -> list[list[float]] | None:
  """Returns what each newcomer has of each of its clusters, None where it has as much of each; [clusters, newcomers], at least 0."""
  own = [column[column > 0].astype(np.float64) for column in membership.T]
  if all((column == column[0]).all() for column in own):
    return None
  return [(column / column.sum()).tolist() for column in own]


def _own_accuracy(
  experiment: live_experiment_lib.Experiment,
  models: list[Weights],
  membership: np.ndarray,
  of_clusters: np.ndarray,
) -> np.ndarray:
  """Returns float64[new clients] of the mean models of their clusters; in one cluster it is that cluster's model."""
  own = np.empty(membership.shape[1])
  stacked = [np.stack(arrays) for arrays in zip(*models, strict=True)]
  columns, groups = client_scores.distinct(membership)
  for column, users in zip(columns.T, groups, strict=True):
    if np.count_nonzero(column) == 1:
      own[users] = of_clusters[np.argmax(column), users]
      continue
    mean = mixing.mixed_model(stacked, column / column.sum())
    own[users] = _accuracy(experiment, mean, users)
  return own


def _accuracy(
  experiment: live_experiment_lib.Experiment, weights: Weights, clients: np.ndarray
) -> np.ndarray:
  """Returns float64[clients], one model's accuracy on the test rows of some new clients."""
  trainer = experiment.new_client_trainer
  return trainer.measure(weights, trainer.population.test, clients).client_accuracy
