"""FedEx: every printed number, typed a second time; experiments as the paper says; what claims rest on."""

import dataclasses

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.made_up import fedex_rows, in_json
from tests.made_up.scorecard_rows import make_ours, stacked
from tff_cluster.experiment import preset
from tff_cluster.papers import mcmahan2017, miles2024
from tff_cluster.papers.miles2024 import readings, tables
from tff_cluster.scorecard import cluster_contents
from tff_cluster.scorecard.published import PAPER
from tff_cluster.scorecard.rows import Run
from tff_cluster.studies.reproduction import runs

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
  rows = [row.name for row in miles2024.PUBLISHED[name].rows]
  assert list(printed) == list(blocks) == rows[:2]
  variants = ('PyTorch’s weights', 'double softmax', 'PyTorch’s weights, double softmax')
  assert rows[2:] == [f'{number} clusters, {variant}' for variant in variants for number in (3, 4)]
  # Variants have no printed numbers.
  assert {cell.row for cell in miles2024.PUBLISHED[name].cells if cell.published is not None} == set(printed)
  for row, block in blocks.items():
    assert _numbers(printed[row].fedavg) == lines[0][1:]
    assert [_numbers(expert) for expert in printed[row].experts] == [line[4:] for line in block[:-1]]
    assert f'{printed[row].fedex:.2f}%' == block[-1][-1]


def test_ranks_are_by_accuracy_then_by_loss_and_what_is_not_printed_comes_last():
  four = tables.PRINTED['fedex/table1']['4 clusters']
  best = [tables.Measured(64.12, 1.82), tables.Measured(52.91, 1.82), tables.Measured(52.91, 1.93)]
  assert list(four.ranked) == [*best, None]
  noisy = tables.PRINTED['fedex/table2']['3 clusters']
  assert [expert.accuracy for expert in noisy.ranked] == [76.33, 52.11, 40.04]


def test_a_loss_that_is_not_finite_in_a_seed_leaves_no_mean_of_the_others():
  row = next(r for r in miles2024.PUBLISHED['fedex/table1'].rows if 'loss' in r.settings)
  for last, known in ((1.5, [1.5, 1.5]), (None, [])):
    tests = ({'accuracy': 0.9, 'loss': 1.5}, {'accuracy': 0.9, 'loss': last})
    made = [in_json.typed({'config': {}, 'baseline': {'evaluation': {'global': each}}}) for each in tests]
    ours = make_ours(
      row,
      runs=tuple(Run(seed, each, None) for seed, each in enumerate(made)),
      baseline_global=(90.0, 90.0),
      experts=(None, None),
    )
    assert readings.numbers(ours)['fedavg_loss'] == known


def test_the_printed_losses_are_those_of_a_softmax_of_a_softmax():
  # An expert that is sure: outputs 1 and nine times 0, so log(e + 9) - 1 where it is right and log(e + 9) elsewhere.
  three, four = tables.PRINTED['fedex/table1'].values()
  known = [e for e in (*three.experts, *four.experts, three.fedavg) if e]
  off = [e for e in known if abs(2.461150 - e.accuracy / 100 - e.loss) > 0.025]
  assert off == [tables.Measured(52.91, 1.82)] and len(known) == 7


CLUSTERED = [published for published in miles2024.PUBLISHED.values() if published.name != 'fedex/figure1']


@pytest.mark.parametrize('published', CLUSTERED, ids=lambda p: p.name)
@pytest.mark.parametrize('scale', ['paper', 'small'])
def test_every_row_is_a_valid_experiment(published, scale, tmp_path):
  # Figures have four clusters and print no numbers.
  assert [row.name[0] for row in published.rows] == (['4'] if published.is_figure else ['3', '4'] * 4)
  assert bool(published.cells) != published.is_figure
  jobs = runs.plan(published, published.scale(scale), (0, 1), tmp_path)
  # Rows of one variant are clusterings of one Phase 1.
  assert len(jobs) == (2 if published.is_figure else 8)
  for job in jobs:
    training, data = job.config.training, job.config.data
    assert (training.phase1_rounds, training.cluster_start) == (1, 'global_model')
    rounds = 200 if scale == 'paper' else 20
    # Figures 2 and 3 show the clusters alone, which are made after one round.
    assert training.phase1_rounds + training.phase2_rounds == (2 if published.is_figure else rounds)
    assert job.config.evaluation.experts is True
    asked = [c.options.num_clusters for c in job.config.clusterings]
    assert asked == [int(row.name[0]) for row in job.rows]
    (variant,) = {row.name.partition(' clusters')[2] for row in job.rows}
    assert training.initializer == ('fan_in_uniform' if 'PyTorch' in variant else 'model')
    assert training.loss == ('double_softmax' if 'double' in variant else 'cross_entropy')
    assert {(c.method, c.signature) for c in job.config.clusterings} == {('spectral', 'weights')}
    noisy = published.name in ('fedex/table2', 'fedex/figure3')
    assert data.noise_clients == (0.15 if noisy else 0.0)
    # 15 of 100 clients are noise, 3 of 20.
    assert data.num_clients == (100 if scale == 'paper' else 20)


def test_the_papers_scale_is_that_of_its_replication_and_the_preset_is_table_1(tmp_path):
  job, *_ = runs.plan(miles2024.PUBLISHED['fedex/table1'], PAPER, (0,), tmp_path)
  data, training = job.config.data, job.config.training
  assert (data.dataset, data.partition, data.shards_per_client) == ('mnist', 'pathological', 2)
  assert (training.model, training.batch_size, training.local_epochs) == ('mnist_cnn', 10, 1)
  assert (training.learning_rate, training.cohort_fraction) == (0.1, 0.1)
  assert preset.read_preset('fedex_mnist', {}, job.config.clusterings) == job.config
  given = (preset.FOLDER / 'fedex_mnist.flags').read_text().splitlines()
  asked = [line.removeprefix('--clustering=') for line in given if line.startswith('--clustering=')]
  assert asked == [
    f'spectral,name={c.label},signature={c.signature},num_clusters={c.options.num_clusters}'
    for c in job.config.clusterings
  ]


FIGURE_1 = miles2024.PUBLISHED['fedex/figure1']


@pytest.mark.parametrize(('scale', 'rounds'), [('paper', 200), ('small', 20)])
def test_figure_1_is_every_setting_of_fedavg_alone_with_the_rounds_of_mcmahan(scale, rounds, tmp_path):
  jobs = runs.plan(FIGURE_1, FIGURE_1.scale(scale), (4,), tmp_path)
  printed = {cell.row: cell.published for cell in FIGURE_1.cells if cell.published is not None}
  told = set()
  for job in jobs:
    (row,), training = job.rows, job.config.training
    kind = {'iid': 'IID', 'pathological': 'non-IID'}[job.config.data.partition]
    setting = (kind, training.batch_size or None, training.local_epochs)
    told.add(setting)
    assert (
      row.name == f'{kind}, B {training.batch_size or "inf"}, E {training.local_epochs}'
      and row.clustering == {}
    )
    assert printed[row.name] == mcmahan2017.ROUNDS_TO_TARGET[setting].rounds
    assert job.config.clusterings == () and training.phase1_rounds + training.phase2_rounds == rounds
    assert (training.learning_rate, training.cohort_fraction) == (0.1, 0.1 if scale == 'paper' else 0.5)
  assert (
    told == set(mcmahan2017.ROUNDS_TO_TARGET) and len(jobs) == len({job.folder.root for job in jobs}) == 18
  )
  assert 'pathological_B0_E20_n1_seed4' in {job.folder.root.name.rpartition('_')[0] for job in jobs}
  # Non-IID, B 10, E 1 is the FedAvg of table 1.
  table = miles2024.PUBLISHED['fedex/table1']
  (ours,) = runs.plan(FIGURE_1, FIGURE_1.scale(scale), (0,), tmp_path, only='non-IID, B 10, E 1')
  theirs, *_ = runs.plan(table, table.scale(scale), (0,), tmp_path)
  assert dataclasses.replace(theirs.config, clusterings=()) == ours.config


def _check(table, start, *of_seeds):
  (claim,) = (c for c in miles2024.PUBLISHED[table].claims if c.words.startswith(start))
  return claim.check(stacked(*of_seeds))


def test_what_a_finding_says():
  # FedAvg is read after the last round, where FedEx is measured, and in the mean over clients and the last rounds.
  printed = fedex_rows.rows('fedex/table1')
  finding = _check(
    'fedex/table1', 'FedAvg without clusters is more accurate than FedEx with 3', *(printed,) * 3
  )
  assert (finding.verdict, finding.ours, finding.note) == ('holds', '+19.45 points (so in 2 of 2)', '3 seeds')
  near = fedex_rows.rows('fedex/table1', of3={'baseline_windows': {'accuracy_end': (78.2,)}})
  finding = _check(
    'fedex/table1', 'FedAvg without clusters is more accurate than FedEx with 3', printed, near, near
  )
  assert finding.verdict == 'undecided'


@pytest.mark.parametrize(
  ('clients', 'together', 'most'),
  [
    ([[40, 30, 15, 0], [0, 0, 15, 0]], 'holds', 'fails'),  # Half is not most.
    ([[40, 31, 14, 0], [0, 0, 15, 0]], 'holds', 'holds'),
    ([[82, 1, 1, 1], [15, 0, 0, 0]], 'holds', 'fails'),  # One lump of nearly everybody.
    ([[40, 45, 0, 0], [0, 0, 14, 1]], 'fails', 'holds'),
  ],
)
def test_noise_is_together_and_whether_it_makes_up_most_of_its_cluster(clients, together, most):
  rows = fedex_rows.rows('fedex/figure3', of4={'shared': {'source': (clients,)}})
  assert _check('fedex/figure3', 'All clients', rows, rows, rows).verdict == together
  assert _check('fedex/figure3', 'Clients that', rows, rows, rows).verdict == most


def test_rows_without_experts_or_without_noise_decide_nothing():
  without = {f'of{n}': {'experts': (None,)} for n in (3, 4)}
  rows = fedex_rows.rows('fedex/table1', **without)
  for claim in miles2024.PUBLISHED['fedex/table1'].claims:
    assert claim.check(stacked(rows, rows, rows)).verdict == 'not run'
  rows = fedex_rows.rows('fedex/figure3', of4={'shared': {}})
  assert _check('fedex/figure3', 'All clients', rows, rows, rows).verdict == 'not run'
  # Where all pairs of clients are alike, nothing is decided.
  rows = fedex_rows.rows('fedex/figure2', of4={'together': ((0.5, None),)})
  assert _check('fedex/figure2', 'Clients with', rows, rows, rows).verdict == 'not decidable here'


@st.composite
def _clustered(draw):
  """Cluster, source and rows by label of a few clients."""
  shape = draw(st.integers(2, 8))
  integers = [hnp.arrays(int, shape, elements=st.integers(0, largest)) for largest in (2, 1)]
  return (*map(draw, integers), draw(hnp.arrays(int, (shape, 4), elements=st.integers(0, 5))))


@hypothesis.settings(max_examples=50)
@hypothesis.given(_clustered())
def test_pairs_clients_and_rows_are_those_counted_one_by_one(drawn):
  labels, source, counts = drawn
  matrix, truth = np.arange(3)[:, None] == labels, np.arange(2)[:, None] == source
  same = {True: [], False: []}
  for i in range(len(labels)):
    for j in range(i):
      common = any(a and b for a, b in zip(counts[i], counts[j], strict=True))
      same[common].append(labels[i] == labels[j])
  expected = tuple(sum(v) / len(v) if v else None for v in (same[True], same[False]))
  assert cluster_contents.together(matrix, counts) == pytest.approx(expected)
  clients, rows = np.zeros((2, 3), int), np.zeros((2, 3, 4), int)
  for group, cluster, held in zip(source, labels, counts, strict=True):
    clients[group, cluster] += 1
    rows[group, cluster] += held
  assert cluster_contents.shared_clients(matrix, truth) == clients.tolist()
  assert (cluster_contents.rows_by_label(matrix, counts, truth) == rows).all()
  assert (cluster_contents.rows_by_label(matrix, counts)[0] == rows.sum(axis=0)).all()
