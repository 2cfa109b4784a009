"""FedEx's tables: every printed number, typed a second time, and experiments that are valid and as the paper says."""

import dataclasses
import pathlib

import numpy as np
import pytest

from tff_cluster.data.partitioners import matching, pathological, rows
from tff_cluster.experiment import preset
from tff_cluster.papers import mcmahan2017, miles2024
from tff_cluster.papers.miles2024 import tables
from tff_cluster.scorecard.published import PAPER
from tff_cluster.studies.reproduction import runs

ROOT = pathlib.Path(__file__).parents[2]
# The lines of the paper's two tables, as they are printed; the last two experts of table 2 are printed "(3 Clusters)".
TABLE_1 = """
Baseline 1.48 97.43%
Cluster 1 (3 Clusters) 1.77 71.31%
Cluster 2 (3 Clusters) 1.75 72.11%
Cluster 3 (3 Clusters) 1.72 74.78%
Total (3 Clusters) 77.98%
Cluster 0 (4 Clusters) N/A N/A
Cluster 1 (4 Clusters) 1.93 52.91%
Cluster 2 (4 Clusters) 1.82 52.91%
Cluster 3 (4 Clusters) 1.82 64.12%
Total (4 Clusters) 9.01%
"""
TABLE_2 = """
Baseline 84.72%
Cluster 0 (3 Clusters) 76.33%
Cluster 1 (3 Clusters) 40.04%
Cluster 2 (3 Clusters) 52.11%
Total 80.20%
Cluster 0 (4 Clusters) 54.52%
Cluster 1 (4 Clusters) 48.57%
Cluster 2 (3 Clusters) 45.82%
Cluster 3 (3 Clusters) 40.17%
Total 63.88%
"""


def _numbers(expert):
  """A model as it is printed: loss, where there is one, and accuracy."""
  if expert is None:
    return ['N/A', 'N/A']
  return ([] if expert.loss is None else [f'{expert.loss:.2f}']) + [f'{expert.accuracy:.2f}%']


@pytest.mark.parametrize(('name', 'text'), [('fedex/table1', TABLE_1), ('fedex/table2', TABLE_2)])
def test_every_number_is_the_printed_one(name, text):
  lines = [line.split() for line in text.strip().splitlines()]
  ends = [i for i, line in enumerate(lines) if line[0] == 'Total']
  blocks = {'3 clusters': lines[1 : ends[0] + 1], '4 clusters': lines[ends[0] + 1 :]}
  printed = tables.PRINTED[name]
  assert list(printed) == ['3 clusters', '4 clusters'] == [row.name for row in miles2024.PUBLISHED[name].rows]
  for row, block in blocks.items():
    assert _numbers(printed[row].fedavg) == lines[0][1:]
    assert [_numbers(expert) for expert in printed[row].experts] == [line[4:] for line in block[:-1]]
    assert f'{printed[row].fedex:.2f}%' == block[-1][-1]
    assert len(printed[row].experts) == int(row[0])


def test_ranks_are_by_accuracy_then_by_loss_and_what_is_not_printed_comes_last():
  four = tables.PRINTED['fedex/table1']['4 clusters']
  best = [tables.Measured(64.12, 1.82), tables.Measured(52.91, 1.82), tables.Measured(52.91, 1.93)]
  assert list(four.ranked) == [*best, None]
  noisy = tables.PRINTED['fedex/table2']['3 clusters']
  assert [expert.accuracy for expert in noisy.ranked] == [76.33, 52.11, 40.04]


def test_the_printed_losses_are_those_of_a_softmax_of_a_softmax():
  # An expert that is sure: outputs 1 and nine times 0, so log(e + 9) - 1 where it is right and log(e + 9) elsewhere.
  all_wrong = 2.461150
  of_table = [row.experts for row in tables.PRINTED['fedex/table1'].values()]
  known = [e for experts in of_table for e in experts if e] + [
    tables.PRINTED['fedex/table1']['3 clusters'].fedavg
  ]
  off = [e for e in known if abs(all_wrong - e.accuracy / 100 - e.loss) > 0.025]
  assert off == [tables.Measured(52.91, 1.82)] and len(known) == 7


CLUSTERED = [published for published in miles2024.PUBLISHED.values() if published.name != 'fedex/figure1']


@pytest.mark.parametrize('published', CLUSTERED, ids=lambda p: p.name)
@pytest.mark.parametrize('scale', ['paper', 'small'])
def test_every_row_is_a_valid_experiment(published, scale, tmp_path):
  # Figures have four clusters and print no numbers.
  assert [row.name[0] for row in published.rows] == (['4'] if published.is_figure else ['3', '4'])
  assert bool(published.cells) != published.is_figure
  jobs = runs.plan(published, published.scale(scale), (0, 1), tmp_path)
  assert len(jobs) == 2  # All rows are clusterings of one Phase 1.
  for job in jobs:
    training, data = job.config.training, job.config.data
    assert (training.phase1_rounds, training.cluster_start) == (1, 'global_model')
    rounds = 200 if scale == 'paper' else 20
    # Figures 2 and 3 show the clusters alone, which are made after one round.
    assert training.phase1_rounds + training.phase2_rounds == (2 if published.is_figure else rounds)
    assert job.config.evaluation.experts is True
    assert [c.options.num_clusters for c in job.config.clusterings] == [
      int(row.name[0]) for row in published.rows
    ]
    assert {(c.method, c.signature) for c in job.config.clusterings} == {('spectral', 'weights')}
    noisy = published.name in ('fedex/table2', 'fedex/figure3')
    assert data.noise_clients == (0.15 if noisy else 0.0)
    # 15 of 100 clients are noise, 3 of 20.
    assert data.num_clients == (100 if scale == 'paper' else 20)


def test_the_papers_scale_is_that_of_its_replication_and_the_preset_is_table_1(tmp_path):
  (job,) = runs.plan(miles2024.PUBLISHED['fedex/table1'], PAPER, (0,), tmp_path)
  data, training = job.config.data, job.config.training
  assert (data.dataset, data.partition, data.shards_per_client) == ('mnist', 'pathological', 2)
  assert (training.model, training.batch_size, training.local_epochs) == ('mnist_cnn', 10, 1)
  assert (training.learning_rate, training.cohort_fraction) == (0.1, 0.1)
  given = [line for line in (ROOT / 'flags/fedex_mnist.flags').read_text().splitlines() if line[:1] == '-']
  asked = [line.removeprefix('--clustering=') for line in given if line.startswith('--clustering=')]
  assert asked == [
    f'spectral,name={c.label},signature={c.signature},num_clusters={c.options.num_clusters}'
    for c in job.config.clusterings
  ]
  assert preset.read_preset('fedex_mnist', {}, job.config.clusterings) == job.config


FIGURE_1 = miles2024.PUBLISHED['fedex/figure1']


@pytest.mark.parametrize(('scale', 'rounds'), [('paper', 200), ('small', 20)])
def test_figure_1_is_every_setting_of_fedavg_alone(scale, rounds, tmp_path):
  jobs = runs.plan(FIGURE_1, FIGURE_1.scale(scale), (4,), tmp_path)
  asked = {
    (partition, batch, epochs)
    for partition in ('iid', 'pathological') for batch in (10, 50, 0) for epochs in (1, 5, 20)
  }  # fmt: skip
  told = [
    (j.config.data.partition, j.config.training.batch_size, j.config.training.local_epochs) for j in jobs
  ]
  assert set(told) == asked and len(jobs) == 18
  for job, (partition, batch, epochs) in zip(jobs, told, strict=True):
    (row,) = job.rows
    kind = {'iid': 'IID', 'pathological': 'non-IID'}[partition]
    assert row.name == f'{kind}, B {batch or "inf"}, E {epochs}' and row.clustering == {}
    training = job.config.training
    assert job.config.clusterings == () and training.phase1_rounds + training.phase2_rounds == rounds
    assert (training.learning_rate, training.cohort_fraction) == (0.1, 0.1 if scale == 'paper' else 0.5)
  assert len({job.folder.root for job in jobs}) == 18
  assert 'pathological_B0_E20_n1_seed4' in {job.folder.root.name.rpartition('_')[0] for job in jobs}


@pytest.mark.parametrize('scale', ['paper', 'small'])
def test_non_iid_b_10_e_1_is_the_fedavg_of_table_1(scale, tmp_path):
  table = miles2024.PUBLISHED['fedex/table1']
  (ours,) = runs.plan(FIGURE_1, FIGURE_1.scale(scale), (0,), tmp_path, only='non-IID, B 10, E 1')
  (theirs,) = runs.plan(table, table.scale(scale), (0,), tmp_path)
  assert dataclasses.replace(theirs.config, clusterings=()) == ours.config


def test_every_row_of_figure_1_has_rounds_of_mcmahan():
  printed = {cell.row: cell.published for cell in FIGURE_1.cells if cell.published is not None}
  assert set(printed) == {row.name for row in FIGURE_1.rows}
  for row in FIGURE_1.rows:
    partition = {'iid': 'IID', 'pathological': 'non-IID'}[row.settings['partition']]
    setting = (partition, row.settings['batch_size'] or None, row.settings['local_epochs'])
    assert printed[row.name] == mcmahan2017.ROUNDS_TO_TARGET[setting].rounds


@pytest.mark.parametrize('seed', [0, 1])
def test_iid_all_test_rows_are_one_clients_and_non_iid_nearly_all(seed):
  # How often each digit is in MNIST.
  train = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
  test = np.repeat(np.arange(10), (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009))
  rng = np.random.default_rng(seed)
  labels = rng.permutation(np.repeat(np.arange(10), train))
  for held in (rows.iid(60000, 100, rng), pathological.pathological(labels, 100, 2, rng)):
    counts = np.stack([np.bincount(labels[client], minlength=10) for client in held])
    dealt = matching.match_test_rows(counts, test, rng)
    sizes, given = [len(client) for client in dealt], np.concatenate(dealt)
    assert len(np.unique(given)) == len(given)
    if (counts > 0).all():
      assert sizes == [100] * 100
    else:
      assert min(sizes) >= 98 and max(sizes) == 100 and 20 <= 10000 - len(given) <= 60
