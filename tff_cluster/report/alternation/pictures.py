"""The figure of a clustering whose method alternates between clustering and training, with a caption that explains it."""

from collections.abc import Iterator

import numpy as np

from tff_cluster.clustering.membership_history import own_models
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.report.figures import base, ordering, ways
from tff_cluster.report.finished_run import FinishedRun


def way_figures(run: FinishedRun, clustering: Clustering, name: str) -> Iterator[base.Drawn]:
  """Yields (file name, section, title, caption, figure), none where a method does not alternate or its memberships are not there.

  Args:
    run: The run.
    clustering: One of the run's.
    name: The clustering's part of file names.
  """
  shares, found = run.ways(clustering), clustering.alternation
  if shares is None or found is None:
    return
  label, count = clustering.label, len(run.client_ids)
  truth_name, truth = next(iter(run.truths.items()), ('', None))
  clusters = ordering.matched_kinds(run.shares(clustering), truth)
  kinds = ordering.model_kinds(clusters, found.models, found.num_models)
  several = bool((own_models(shares).sum(axis=1) > 1).any() or ((shares > 0.0) & (shares < 1.0)).any())
  yield (
      f'ways_{name}', f'rounds {label}', f'Every client’s model over the rounds, {label}',
      'Above, a row is a client, a column a round, the colour the client’s model after that round'
      + (', and where it has shares in several, its row is divided by them' if several else '')
      + (f'. On the left the planted groups (“{truth_name}”): a model has the colour of the group that its last clients match best, '
         'so where the groups were found a row has the colour that it begins with. Clients are sorted by group, then by the model '
         'of the last round' if truth is not None else '. Clients are sorted by the model of the last round')
      + '. A model is called by the cluster that it is at the end, and counts the clients that have their largest share in it. White: '
      'nothing known of the client yet. '
      + (f'{base.MOST_PIXELS} of {count:,} clients are shown. ' if count > base.MOST_PIXELS else '')
      + 'Below, how many clients had another model than after the round before.',
      ways.client_ways(
          shares, found.first_round, found.changed, run.client_ids, _order(shares[-1], truth), kinds, found.names,
          f'{base.short(label, 40)}: the ways of the clients', truth, truth_name,
      ),
  )  # fmt: skip


def _order(last: np.ndarray, truth: np.ndarray | None) -> np.ndarray:
  """Returns int64[clients], by planted group, then by final model, then by shares, the largest first.

  Args:
    last: float[models, clients], shares after the last round.
    truth: float[groups, clients].
  """
  keys = [np.arange(last.shape[1]), -last.max(axis=0), last.argmax(axis=0)]
  if truth is not None:
    keys += [truth.argmax(axis=0)]
  return np.lexsort(keys)
