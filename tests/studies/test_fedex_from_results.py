"""From results.json to FedEx's pages: what is gathered is what the results hold, and the paper's own page is written."""

import json

import numpy as np
import pytest

from tests.made_up import fedex_rows, in_json
from tests.made_up import finished_run as made_up
from tff_cluster.base import records
from tff_cluster.papers import miles2024
from tff_cluster.scorecard.published import PAPER
from tff_cluster.scorecard.rows import gather
from tff_cluster.studies.reproduction import page

TABLE2 = miles2024.PUBLISHED['fedex/table2']


def _results(seed):
  """Results of a run with two planted groups called 'source', the second as CIFAR-10, and experts."""
  value, _ = made_up.make_run(num_clients=12, groups=2, methods=('kmeans:experts4',), seed=seed)
  (clustering,) = value['clusterings']
  name, truth = next(iter(value['population']['truths'].items()))
  value['population']['truths'] = {'source': truth}
  clustering['recovery'] = {'source': clustering['recovery'][name]}
  clustering['choice'] = None
  count = clustering['num_clusters']
  clustering['experts'] = records.plain(fedex_rows.experts(0.6, np.linspace(0.3, 0.5, count), [2.0] * count))
  return in_json.typed(value)


@pytest.fixture(scope='module')
def runs():
  return [((TABLE2.rows[1],), seed, _results(seed)) for seed in (0, 1)]


def test_rows_hold_what_the_results_hold(runs):
  (row,) = gather(runs).values()
  for i, (_, _, results) in enumerate(runs):
    (clustering,) = results.clusterings
    assert row.experts[i] == clustering.experts
    assert row.baseline_global[i] == 100 * results.baseline.evaluation.global_test.accuracy
    population = results.population
    cluster = {member: k for k, members in enumerate(clustering.clusters) for member in members}
    counted = np.zeros((2, clustering.num_clusters), int)
    for client, noisy in zip(population.client_ids, population.truths['source'][1], strict=True):
      counted[int(noisy), cluster[client]] += 1
    assert row.shared['source'][i] == counted.tolist()
    assert len(row.together) == 2


def test_the_papers_own_page_is_written(runs, tmp_path):
  path = page.write(TABLE2, runs, PAPER, {'command': 'none'}, tmp_path)
  text = path.read_text()
  assert 'Where the loss comes from' in text and 'What the clusters hold' in text
  records = json.loads((tmp_path / 'scorecard.json').read_text())
  columns = {record['column'] for record in records if record['row'] == '4 clusters'}
  assert {'fedavg_accuracy', 'fedex_accuracy', 'expert1_accuracy'} <= columns
  assert not columns & {'accuracy_after', 'share_end'}
  fedex = next(r for r in records if (r['row'], r['column']) == ('4 clusters', 'fedex_accuracy'))
  assert (fedex['published'], fedex['ours']) == (63.88, pytest.approx(60.0))
  assert next(r for r in records if r['row'] == '3 clusters')['verdict'] == 'not run'
  assert (tmp_path / 'figures/labels_4_clusters.png').exists()
