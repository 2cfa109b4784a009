"""What a rule of Phase 3 makes of trained cluster models, measured on clients' test rows and on the global test set.

Rules see validation rows with labels, and test rows without.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tff_cluster.aggregation import mixing, rules
from tff_cluster.aggregation import rule as rule_lib
from tff_cluster.base.types import Weights
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.data import class_counts
from tff_cluster.engine import jobs as jobs_lib
from tff_cluster.experiment.measured import Evaluation
from tff_cluster.phases import cluster_training, evaluation, expert_evaluation, own_models, own_training
from tff_cluster.phases import live_experiment as live_experiment_lib

# Numbers of a mixing matrix that a results file holds; larger ones, of thousands of clusters, would fill it.
_MOST_SAVED = 100_000
# Of probabilities that are in memory at once.
_BYTES = 64_000_000


class ClusterModels:
  """The cluster models of a clustering.

  Attributes:
    assignment: Who belongs to which cluster.
    stacked: The cluster models, arrays with a leading axis [clusters].
    models: The same, one model a cluster: views of `stacked`.
    known: What was measured of mixed models, see client_scores.measure: where clusters are disjoint, a rule's model of a cluster
      is that of its clients.
  """

  def __init__(
    self,
    experiment: live_experiment_lib.Experiment,
    assignment: assignment_lib.ClusterAssignment,
    models: Sequence[Weights],
    best_validation: Sequence[float],
    joins_predictions: bool = False,
  ):
    """Takes the models as they are; `best_validation` as in results, `joins_predictions` as a method says."""
    self._experiment, self._best_validation = experiment, best_validation
    self._joins_predictions = joins_predictions
    self.assignment = assignment
    self.known: dict[bytes, class_counts.Scores] = {}
    self.stacked = [np.stack(arrays) for arrays in zip(*models, strict=True)]
    self.models = [tuple(array[row] for array in self.stacked) for row in range(len(models))]

  @functools.cached_property
  def evidence(self) -> rule_lib.Clusters:
    """What mixing rules can ask for."""
    population = self._experiment.population
    return rule_lib.Clusters(
      self.assignment.membership,
      self.assignment.membership if self.assignment.shares is None else self.assignment.shares,
      np.array(self._best_validation),
      population.train.counts,
      population.validation.counts,
      self._validation,
    )

  def evaluation(self, rule: rule_lib.Rule) -> Evaluation:
    """Returns how good the models of a rule are; InputError where the rule fails."""
    if self._joins_predictions and rule_lib.CLIENTS in rule.roles:
      test = self._experiment.population.test
      scores = own_models.joined(self._experiment, self.models, self.assignment.own, test)
      return Evaluation(None, scores.summary(), scores.client_accuracy.tolist())
    if isinstance(rule, rule_lib.MixingRule):
      matrix = rule.mixing(self.evidence)
      saved = matrix.tolist() if matrix.size <= _MOST_SAVED else None
      found = evaluation.evaluation(self._experiment, self.stacked, matrix, self.known)
      return dataclasses.replace(found, mixing=saved)
    if isinstance(rule, rule_lib.TrainingRule):
      return self._trained(rule)
    assert isinstance(rule, rule_lib.PredictionRule)
    return self._predicted(rule)

  def _validation(self) -> tuple[np.ndarray, np.ndarray]:
    """Returns float64[clusters, clients] accuracies, and losses, of all cluster models on all validation rows."""
    experiment = self._experiment
    measured = [
      experiment.trainer.measure(weights, experiment.population.validation, experiment.everyone)
      for weights in self.models
    ]
    accuracy = np.stack([found.client_accuracy for found in measured])
    return accuracy, np.stack([found.loss_sum / found.total for found in measured])

  def _trained(self, rule: rule_lib.TrainingRule) -> Evaluation:
    """Returns how good clients' own models are that they trained on."""
    validation = self._experiment.population.validation
    matrix = rules.with_role(rule_lib.CLIENTS).mixing(self.evidence)
    (before,) = own_models.scores(self._experiment, self.models, matrix, False, [validation])

    def start(client: int) -> Weights:
      return mixing.mixed_model(self.stacked, matrix[:, client])

    tuning = own_training.FineTuning(self._experiment, start, float(before.client_accuracy.mean()))
    chosen = rule.stop(tuning.train)
    scores = tuning.stopped(chosen).scores
    return Evaluation(None, scores.summary(), scores.client_accuracy.tolist(), own_rounds=chosen)

  def _predicted(self, rule: rule_lib.PredictionRule) -> Evaluation:
    """Returns how good a rule of predictions is: on each client's test rows, and on the global test set."""
    population, classes = self._experiment.population, self._experiment.population.num_classes
    found = class_counts.concatenate(
      [
        class_counts.of_predictions(rule.predict(given), population.test.client(client)[1], classes)
        for client, given in self._of_clients(rule)
      ]
    )
    everybodys = None
    if 'own_clusters' not in rule.needs:
      predicted = rule.predict(
        {
          'probabilities': self._probabilities(population.global_test_x),
          **self._seen(rule, population.validation.x, population.validation.y),
        }
      )
      everybodys = class_counts.of_predictions(predicted, population.global_test_y, classes).over_rows()
    return Evaluation(everybodys, found.summary(), found.client_accuracy.tolist())

  def _of_clients(self, rule: rule_lib.PredictionRule) -> Iterator[tuple[int, Mapping[str, np.ndarray]]]:
    """Yields each client with what a rule is given for its rows; models predict the rows of some clients at a time."""
    population, member = self._experiment.population, self.assignment.membership > 0.0
    test, validation = population.test, population.validation
    row_bytes = 8 * len(self.models) * population.num_classes
    sizes = (test.rows_added + validation.counts) * row_bytes
    rows, outputs = None, np.empty(0)
    for some in jobs_lib.portions(sizes.tolist(), _BYTES):
      first, last = some[0], some[-1] + 1
      x, places = test.together(first, last)
      seen, seen_places = validation.together(first, last)
      seen_y = validation.y[validation.offsets[first] : validation.offsets[last]]
      if x is not rows:  # Else all clients have these.
        rows, outputs = x, self._probabilities(x)
      known = self._seen(rule, seen, seen_y)
      for client, own, own_seen in zip(some, places, seen_places, strict=True):
        yield (
          client,
          {
            'probabilities': outputs[:, own],
            'own_clusters': member[:, client],
            **{n: each[own_seen] if each.ndim == 1 else each[:, own_seen] for n, each in known.items()},
          },
        )

  def _seen(self, rule: rule_lib.PredictionRule, x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Returns what is known of validation rows, as far as the rule takes it."""
    known: dict[str, np.ndarray] = {}
    if 'validation_labels' in rule.takes:
      known['validation_labels'] = y.astype(np.int64)
    if 'validation_probabilities' in rule.takes:
      known['validation_probabilities'] = self._probabilities(x)
    return known

  def _probabilities(self, x: np.ndarray) -> np.ndarray:
    """Returns float64[clusters, rows, classes]."""
    predict = self._experiment.trainer.predict
    return np.stack(
      [expert_evaluation.finite(predict(weights, x)).astype(np.float64) for weights in self.models]
    )


def of_phase2(experiment: live_experiment_lib.Experiment, label: str) -> ClusterModels:
  """Reads the cluster models that a finished Phase 2 kept; raises as cluster_training.load_clusters does."""
  loaded = cluster_training.load_clusters(experiment, label)
  clustering = experiment.config.clustering(label)
  joins, best = clustering.rule.joins_predictions, loaded.phase2.best_validation
  return ClusterModels(experiment, loaded.assignment, loaded.models, best, joins)
