"""What the answer of a report says of baselines without clusters in which every client has a model of its own."""

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.words import interval_points, series
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.measured import Personalized
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.experiment.results import Results
from tff_cluster.scorecard.intervals import paired_bootstrap


def sentence(results: Results, clustering: Clustering) -> str:
  """Returns how a clustering's own models differ from each of them; empty where there are none."""
  own = results_lib.own(clustering).client_accuracy

  def against(found: Personalized) -> str:
    return f'{_difference(results, own, found.evaluation.client_accuracy)} against {found.title}'

  told = series([against(found) for found in results.personalized])
  return f'Beside baselines in which every client has its own model: {told}.' if told else ''


def _difference(results: Results, own: list[float], other: list[float]) -> str:
  # The same clients are drawn for every difference of a report.
  generator = seeding.generator(results.config.training.seed, 'report interval')
  found = paired_bootstrap(np.subtract(own, other), generator)
  mean, span = interval_points(found.mean, found.low, found.high)
  return f'{mean} ({f"95% interval over clients {span}" if span else "no interval: one client"})'
