"""How good mixed models are on clients' test rows, measured a portion of models at a time; what is measured is kept.

A Phase 3 of thousands of clusters measures thousands of models, for clients and for clusters. Only a portion of them is in
memory at once, and each portion is saved in the store, so that a stopped Phase 3 goes on where it was.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tff_cluster.aggregation import mixing
from tff_cluster.base import digests
from tff_cluster.base.types import Json
from tff_cluster.data import class_counts
from tff_cluster.phases import global_scores
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files as files_lib

# Models whose scores are saved together. What is no more than that is not saved by itself.
PORTION = 128
# Of models that are in memory at once.
_BYTES = 64_000_000


def mixed(
  models: Sequence[np.ndarray], matrix: np.ndarray
) -> Iterator[tuple[slice, list[tuple[np.ndarray, ...]]]]:
  """Yields the models that a mixing matrix makes, a few at a time, with their positions.

  Args:
    models: Arrays with a leading axis [models].
    matrix: float64[models, columns], see aggregation.mixing.
  """
  at_once = max(_BYTES // max(sum(array[0].nbytes for array in models), 1), 1)
  for columns in _pieces(matrix.shape[1], at_once):
    arrays = mixing.apply_mixing(models, matrix[:, columns])
    yield columns, list(zip(*arrays, strict=True))


def measure(
  experiment: live_experiment_lib.Experiment,
  models: Sequence[np.ndarray],
  matrix: np.ndarray,
  users: Sequence[np.ndarray],
  known: dict[bytes, class_counts.Scores] | None = None,
) -> class_counts.Scores:
  """Measures the models that a mixing matrix makes on the test rows of the clients that use them.

  Args:
    experiment: The experiment.
    models: Arrays with a leading axis [models].
    matrix: float64[models, columns].
    users: int64[users] of each column, positions of clients.
    known: What was measured of the same models, by recipe and users; what is measured now is added. None: nothing is.

  Returns:
    Scores, one row a user, column after column.
  """
  if known is not None and matrix.shape[1] <= PORTION:
    return _of_columns(experiment, models, matrix, users, known)
  test = experiment.population.test

  def of_portion(columns: slice) -> class_counts.Scores:
    own = users[columns]
    return class_counts.concatenate(
      [
        experiment.trainer.measure_each(made, test, own[few])
        for few, made in mixed(models, matrix[:, columns])
      ]
    )

  of_clients = {'clients': list(experiment.population.client_digests), 'users': digests.of_arrays(users)}
  return _kept(experiment, models, matrix, of_clients, of_portion)


def distinct(matrix: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
  """Returns the different columns of a matrix [models, clients], and positions int64[users] of the clients that have each."""
  columns, uses = np.unique(matrix, axis=1, return_inverse=True)
  return columns, [np.flatnonzero(uses.reshape(-1) == column) for column in range(columns.shape[1])]


def global_accuracy(
  experiment: live_experiment_lib.Experiment, models: Sequence[np.ndarray], matrix: np.ndarray
) -> list[float]:
  """Returns the accuracy on the global test set of each model that a mixing matrix makes; arguments as for `measure`."""
  if matrix.shape[1] <= PORTION:
    return [
      global_scores.metrics(experiment, weights).accuracy
      for _, made in mixed(models, matrix)
      for weights in made
    ]

  def of_portion(columns: slice) -> class_counts.Scores:
    return class_counts.concatenate(
      [
        experiment.trainer.measure_global(weights)
        for _, made in mixed(models, matrix[:, columns])
        for weights in made
      ]
    )

  rows = {'rows': experiment.population.global_test_digest}
  return _kept(experiment, models, matrix, rows, of_portion).client_accuracy.tolist()


def _of_columns(
  experiment: live_experiment_lib.Experiment,
  models: Sequence[np.ndarray],
  matrix: np.ndarray,
  users: Sequence[np.ndarray],
  known: dict[bytes, class_counts.Scores],
) -> class_counts.Scores:
  """Returns the scores of all columns; those that are not known are measured together."""
  keys = [matrix[:, k].tobytes() + np.asarray(some).tobytes() for k, some in enumerate(users)]
  new = [k for k, key in enumerate(keys) if key not in known]
  if new:
    found = measure(experiment, models, matrix[:, new], [users[k] for k in new])
    edges = np.cumsum([0, *(len(users[k]) for k in new)])
    known |= {keys[k]: found.select(slice(edges[i], edges[i + 1])) for i, k in enumerate(new)}
  return class_counts.concatenate([known[key] for key in keys])


def _kept(
  experiment: live_experiment_lib.Experiment,
  models: Sequence[np.ndarray],
  matrix: np.ndarray,
  measured_on: Mapping[str, Json],
  of_portion: Callable[[slice], class_counts.Scores],
) -> class_counts.Scores:
  """Returns the scores of all portions of columns, which the store keeps where there are several."""
  count = matrix.shape[1]
  if count <= PORTION:
    return of_portion(slice(0, count))
  artifact = experiment.store.artifact(
    'client_scores',
    experiment.model_settings
    | {'models': digests.of_arrays(models), 'mixing': digests.of_arrays([matrix])}
    | dict(measured_on),
  )
  found = []
  # Held, so that of two runs side by side one measures and the other reads.
  with experiment.store.working_on(artifact):
    for columns in _pieces(count, PORTION):
      path = artifact / f'models_{columns.start:06d}_{columns.stop:06d}.npz'
      kept = files_lib.load_or_none(path)
      if kept is None:
        kept = vars(of_portion(columns))
        files_lib.save_arrays(path, kept)
      found.append(class_counts.Scores(**kept))
  return class_counts.concatenate(found)


def _pieces(count: int, size: int) -> Iterator[slice]:
  return (slice(start, min(start + size, count)) for start in range(0, count, size))
