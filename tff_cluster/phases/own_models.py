"""How good the clients' own models are, where a client may have a share in several: after each round of a method that alternates."""

from collections.abc import Sequence

import numpy as np

from tff_cluster.aggregation import mixing
from tff_cluster.base.types import Weights
from tff_cluster.data import class_counts
from tff_cluster.data import population as population_lib
from tff_cluster.phases import client_scores, expert_evaluation
from tff_cluster.phases import live_experiment as live_experiment_lib

# No probability is taken for less: the loss of a row is finite.
_LEAST = 1e-30


def measure(
  experiment: live_experiment_lib.Experiment,
  models: Sequence[Weights],
  shares: np.ndarray,
  joins_predictions: bool,
) -> dict[str, np.ndarray]:
  """Measures every client's own model on its validation and test rows.

  Args:
    experiment: The experiment.
    models: The models.
    shares: float64[models, clients], columns sum to 1.
    joins_predictions: Whether a client's prediction is the mean of its models' probabilities, weighted by its shares; else
      its model is the mean of their weights.

  Returns:
    validation_correct, test_correct int64[clients] and validation_loss, test_loss float64[clients], as a trajectory's history.
  """
  population = experiment.population
  splits = (population.validation, population.test)
  validation, test = scores(experiment, models, shares, joins_predictions, splits)
  return {
    'validation_correct': validation.correct,
    'validation_loss': validation.loss_sum,
    'test_correct': test.correct,
    'test_loss': test.loss_sum,
  }


def scores(
  experiment: live_experiment_lib.Experiment,
  models: Sequence[Weights],
  shares: np.ndarray,
  joins_predictions: bool,
  splits: Sequence[population_lib.ClientRows],
) -> list[class_counts.Scores]:
  """Returns the scores of every client's own model, for each split a row a client; arguments as for `measure`."""
  if joins_predictions:
    return [joined(experiment, models, shares, split) for split in splits]
  return _mixed(experiment, models, shares, splits)


def joined(
  experiment: live_experiment_lib.Experiment,
  models: Sequence[Weights],
  shares: np.ndarray,
  split: population_lib.ClientRows,
) -> class_counts.Scores:
  """Returns the scores of joined predictions on the rows of a split, a row a client."""
  x, places = split.together(0, len(split.counts))

  def predict(k: int) -> np.ndarray:
    return expert_evaluation.finite(experiment.trainer.predict(models[k], x))

  predicted = experiment.each(predict, range(len(models)))
  counted, losses = [], []
  for client, place in enumerate(places):
    y = split.client(client)[1]
    rows = np.zeros((len(y), experiment.population.num_classes))
    for k, found in predicted.items():
      rows += shares[k, client, None] * found[place]
    counted.append(class_counts.of_predictions(rows.argmax(axis=1), y, experiment.population.num_classes))
    losses.append(_losses(rows, y, experiment.config.training.loss == 'double_softmax'))
  clients = np.repeat(np.arange(len(places)), split.counts)
  loss_sum = np.bincount(clients, np.concatenate(losses), minlength=len(places))
  return class_counts.Scores(class_counts.concatenate(counted).counts, loss_sum)


def _losses(probabilities: np.ndarray, y: np.ndarray, double_softmax: bool) -> np.ndarray:
  """Returns float64[rows], what clients minimise (federated.client_work.per_example_loss), of probabilities that were joined.

  Args:
    probabilities: float64[rows, classes].
    y: int[rows], labels.
    double_softmax: Whether probabilities are taken for logits.
  """
  true = probabilities[np.arange(len(y)), y]
  if double_softmax:
    return np.log(np.exp(probabilities).sum(axis=1)) - true
  return -np.log(np.maximum(true, _LEAST))


def _mixed(
  experiment: live_experiment_lib.Experiment,
  models: Sequence[Weights],
  shares: np.ndarray,
  splits: Sequence[population_lib.ClientRows],
) -> list[class_counts.Scores]:
  """Returns the scores of models whose weights are means of the models', for each split a row a client."""
  columns, users = client_scores.distinct(shares)
  stacked = [np.stack(arrays) for arrays in zip(*models, strict=True)]

  def measured(column: int) -> list[class_counts.Scores]:
    mean = mixing.mixed_model(stacked, columns[:, column])
    return experiment.trainer.measure_splits(mean, splits, users[column])

  found = experiment.each(measured, range(columns.shape[1]))
  back = np.argsort(np.concatenate(users))
  return [
    class_counts.concatenate([found[column][place] for column in range(columns.shape[1])]).select(back)
    for place in range(len(splits))
  ]
