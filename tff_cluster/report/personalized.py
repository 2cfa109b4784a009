"""What the answer of a report says of baselines without clusters in which every client has a model of its own."""

from tff_cluster.base.words import interval_points, series
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.measured import Personalized
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.experiment.results import Results
from tff_cluster.scorecard.contenders import client_accuracy
from tff_cluster.scorecard.intervals import Interval
from tff_cluster.scorecard.summary import over_clients


def sentence(results: Results, clustering: Clustering) -> str:
  """Returns how a clustering's own models differ from each of them; empty where there are none."""
  own, seed = client_accuracy(results_lib.own(clustering)), results.config.training.seed

  def against(found: Personalized) -> str:
    return (
      f'{with_interval(over_clients(own - client_accuracy(found.evaluation), seed))} against {found.title}'
    )

  told = series([against(found) for found in results.personalized])
  return f'Beside baselines in which every client has its own model: {told}.' if told else ''


def with_interval(found: Interval) -> str:
  """Returns '+1.2 points (95% interval over clients +0.3 to +2.1 points)'."""
  mean, span = interval_points(found.mean, found.low, found.high)
  return f'{mean} ({f"95% interval over clients {span}" if span else "no interval: one client"})'
