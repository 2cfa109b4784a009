"""Runs behind a published table: planned, estimated, run once, shared; on a made-up table of tiny experiments."""

import dataclasses

import numpy as np
import pytest

from tests.made_up import in_json
from tff_cluster.base.errors import InputError
from tff_cluster.engine.machine import Machine
from tff_cluster.experiment import results
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.papers import briggs2020, catalogue
from tff_cluster.papers.briggs2020 import tables as briggs_tables
from tff_cluster.papers.rohith2020 import tables as rohith2020
from tff_cluster.phases import cost_estimates, cross_validation, run_experiment
from tff_cluster.scorecard.cells import standard
from tff_cluster.scorecard.published import PAPER, Published, Scale
from tff_cluster.scorecard.rows import BASELINE, CLUSTERS, Row, gather
from tff_cluster.storage import files as files_lib
from tff_cluster.studies import runs as studies_runs
from tff_cluster.studies.reproduction import page as page_lib
from tff_cluster.studies.reproduction import runs as runs_lib

FIXED = {'method': 'hierarchical', 'signature': 'updates', 'linkage': 'ward', 'metric': 'l2', 'name': 'ward'}
CHOSEN = {**FIXED, 'name': 'chosen', 'distance_threshold': 'validation'}
WIDE = {**FIXED, 'distance_threshold': '1e9'}


def settings(n):
  return {'cohort_fraction': 0.5, 'phase1_rounds': n, 'phase2_rounds': 5 - n}


CELLS = ((90.0, 1.1), (95.0, 1.0), None, (50.0, None))
TABLE = Published(
  'made_up/table1', 'A made-up table', 'nobody, table 1', 'demo',
  (Row('n 1', settings(1), WIDE), Row('n 2', settings(2), WIDE), Row('n 2, chosen', settings(2), CHOSEN)),
  cells=tuple(cell for name in ('n 1', 'n 2', 'n 2, chosen') for cell in standard(name, CELLS)),
)  # fmt: skip
TINY = Scale(
  'tiny',
  '4 clients, 4 rounds',
  {'num_clients': 4, 'rows_per_client': 40, 'model': 'logistic', 'cluster_start': 'global_model'},
  rounds=4,
)
SILENT = run_experiment.Silent()


def alone(batch, epochs):
  told = {'batch_size': batch, 'local_epochs': epochs, 'phase1_rounds': 1, 'phase2_rounds': 3}
  return Row(f'B {batch or "inf"}, E {epochs}', told, {})


# What would ask for signatures, were there anything to cluster.
LEAN = dataclasses.replace(
  TINY, changes=TINY.changes | {'cluster_start': 'members_mean', 'sketch_dimension': 5}
)
ALONE = dataclasses.replace(TABLE, name='made_up/figure2', rows=(alone(10, 1), alone(0, 2)), cells=())


def test_rows_that_differ_in_their_clustering_only_are_one_run_and_fedavg_alone_is_its_own(tmp_path):
  jobs = runs_lib.plan(TABLE, TINY, (0, 7), tmp_path)
  assert [[row.name for row in job.rows] for job in jobs] == 2 * [['n 1']] + 2 * [['n 2', 'n 2, chosen']]
  assert [job.seed for job in jobs] == [0, 7, 0, 7]
  assert len({job.folder.root for job in jobs}) == 4
  for job in jobs:
    training = job.config.training
    assert training.phase1_rounds + training.phase2_rounds == 4
    assert (training.seed, job.config.data.data_seed, job.config.data.num_clients) == (job.seed, job.seed, 4)
    assert [c.label for c in job.config.clusterings] == [row.clustering['name'] for row in job.rows]
  jobs = runs_lib.plan(ALONE, TINY, (0,), tmp_path)
  names = [(job.rows[0].name, job.folder.root.name.rpartition('_')[0]) for job in jobs]
  assert names == [('B 10, E 1', 'B10_E1_n1_seed0'), ('B inf, E 2', 'B0_E2_n1_seed0')]
  assert [job.config.clusterings for job in jobs] == [(), ()]


@pytest.mark.parametrize(
  ('told', 'words'),
  [
    ({'phase2_rounds': 3}, 'scale tiny: .* does not say its phase1_rounds'),
    ({'phase1_rounds': 4}, 'scale tiny: 4 rounds leave none after .* phase1_rounds=4'),
  ],
)
def test_rows_that_a_scale_cannot_shorten_are_told(told, words, tmp_path):
  table = dataclasses.replace(TABLE, rows=(Row('r', told, WIDE),), cells=())
  with pytest.raises(InputError, match=words):
    runs_lib.plan(table, TINY, (0,), tmp_path)


def test_all_rows_of_a_table_are_read_at_the_rounds_that_the_clusters_of_each_have():
  # Of eight rounds n = 1 leaves seven to the clusters, n = 2 six, and a quarter is two; of four a quarter is one.
  eight = dataclasses.replace(TINY, rounds=8)
  assert [runs_lib.window_rounds(table, eight) for table in (TABLE, ALONE)] == [2, 2]
  assert [runs_lib.window_rounds(table, TINY) for table in (TABLE, ALONE)] == [1, 1]
  table3 = catalogue.PUBLISHED['fl_hc/table3']
  # 50 rounds and at least 40 of the clusters; 15 and five.
  assert (runs_lib.window_rounds(table3, PAPER), runs_lib.window_rounds(table3, table3.small)) == (10, 3)
  # Of 40 rounds a quarter is all ten.
  assert runs_lib.window_rounds(catalogue.PUBLISHED['rohith2020/table1'], PAPER) == 10


def test_a_scale_multiplies_fields_of_each_row(tmp_path):
  rows = tuple(
    Row(f'm {number}', {'num_clients': number, 'phase1_rounds': 1, 'phase2_rounds': rounds}, WIDE)
    for number, rounds in ((120, 50), (40, 2))
  )
  table = dataclasses.replace(TABLE, rows=rows, cells=())
  fewer = dataclasses.replace(
    TINY, changes={}, factors={'num_clients': 1 / 8, 'phase2_rounds': 0.2}, rounds=None
  )
  jobs = runs_lib.plan(table, fewer, (0,), tmp_path)
  found = [(job.config.data.num_clients, job.config.training.phase2_rounds) for job in jobs]
  assert found == [(15, 10), (5, 1)]  # At least a round is left.


def test_fl_hc_at_the_papers_scale_is_what_the_paper_says(tmp_path):
  for published in briggs2020.PUBLISHED.values():
    for job in runs_lib.plan(published, PAPER, (3,), tmp_path):
      training, data = job.config.training, job.config.data
      assert training.phase1_rounds + training.phase2_rounds == briggs_tables.ROUNDS
      assert (training.batch_size, training.local_epochs, training.learning_rate) == (10, 3, 0.1)
      assert training.cluster_start == 'global_model'
      assert data.num_clients == (367 if data.dataset == 'emnist' else 100)
      assert job.config.evaluation.target_accuracy == (0.8 if data.dataset == 'emnist' else 0.99)


def test_rows_are_chosen_by_a_part_of_their_name_or_by_all_of_it(tmp_path):
  def chosen(published, only):
    jobs = runs_lib.plan(published, TINY, (0,), tmp_path, only=only)
    return [row.name for job in jobs for row in job.rows]

  assert chosen(TABLE, 'chosen') == ['n 2, chosen']
  told = r'^rows=n 9: made_up/table1 has no such row; its rows are: n 1; n 2; n 2, ch'
  with pytest.raises(InputError, match=told):
    chosen(TABLE, 'n 9')
  # A whole name means one row, also where another one contains it.
  longer = dataclasses.replace(alone(20, 1), name='not B 10, E 1')
  both = dataclasses.replace(ALONE, rows=(*ALONE.rows, longer))
  assert chosen(both, 'B 10, E 1') == ['B 10, E 1']
  assert chosen(both, 'E 1') == ['B 10, E 1', 'not B 10, E 1']


@pytest.fixture
def store(tmp_path):
  folder = tmp_path / 'store'
  folder.mkdir()
  return folder


def _estimated(seeds, root, store):
  jobs = runs_lib.plan(TABLE, TINY, seeds, root)
  return list(zip(jobs, cost_estimates.estimates(jobs, store, SILENT), strict=True))


@pytest.mark.tensorflow
def test_a_table_is_estimated_run_once_and_then_stored(tmp_path, store):
  jobs = runs_lib.plan(TABLE, TINY, (0,), tmp_path)
  before = cost_estimates.estimates(jobs, store, SILENT)
  # FedAvg is 4 rounds of 2 of 4 clients; all 4 send an update; a cluster of everybody is FedAvg's rounds again.
  assert (before[0].asked, before[0].stored) == (4 * 2 + 4 + 3 * 2, 0)
  # The second run's FedAvg is the first one's.
  assert before[1].stored == 4 * 2
  assert all(estimate.seconds > 0 for estimate in before)
  # So it is under every seed, though a seed's runs do not follow one another.
  seeds = [(job.seed, each.stored) for job, each in _estimated((0, 1), tmp_path, store)]
  assert seeds == [(0, 0), (1, 0), (0, 4 * 2), (1, 4 * 2)]
  assert list(store.iterdir()) == [] and not any(job.folder.root.exists() for job in jobs)

  done = studies_runs.run_all(jobs, store, SILENT)
  assert done[0].asked == 4 * 2 + 4 + 3 * 2
  assert done[0].trained == 4 * 2 + 4  # And the cluster of everybody finds them in the store.
  assert done[1].trained <= done[1].asked - 4 * 2
  assert [done.trained for done in studies_runs.run_all(jobs, store, SILENT)] == [0, 0]
  assert not list(tmp_path.rglob('*.keras'))
  after = cost_estimates.estimates(jobs, store, SILENT)
  assert after[0].stored == after[0].asked == before[0].asked
  assert after[1].stored == after[1].asked

  runs = [(job.rows, job.seed, d.results) for job, d in zip(jobs, done, strict=True)]
  rows = gather(runs)
  assert list(rows) == ['n 1', 'n 2', 'n 2, chosen']
  for name in ('n 1', 'n 2'):  # One cluster of everybody that goes on from the global model is FedAvg.
    assert dict(rows[name].columns) == dict(rows[name].baseline_columns)
    assert rows[name].num_clusters == (1,) and rows[name].choice == (None,)
  assert (rows['n 2'].rounds_after, rows['n 2'].rounds_end) == (3, 4)
  for name in rows:  # All rows together are the sum of what is right, of as many as there are.
    run, ours = rows[name].runs[0], rows[name]
    test = run.results.population.rows.test
    assert ours.over_rows[0] / 100 * test == pytest.approx(round(ours.over_rows[0] / 100 * test), abs=1e-6)
    assert ours.baseline_over_rows == (100 * run.results.baseline.evaluation.clients.accuracy,)
    assert ours.alone_over_rows == () and ours.empty_models == (None,)
    # Nobody is mixed; one cluster of four clients in four groups is right for one of them.
    assert ours.pure_error == {'group': (0.0,)}
    assert ours.num_clusters != (1,) or ours.share_error == {'group': (0.75,)}
    assert [len(models) for models in ours.cluster_accuracy] == list(ours.num_clusters)
  assert rows['n 1'].over_rows == rows['n 1'].baseline_over_rows
  chosen = done[1].results.clusterings[1]
  assert rows['n 2, chosen'].columns['accuracy_after'] == (100 * chosen.history.test_accuracy[0],)
  assert rows['n 2, chosen'].columns['share_end'] == (100 * chosen.history.share_at_target[-1],)
  # Both rows of a run stand on one FedAvg, and FedAvg and a finer cut are no one training.
  assert rows['n 2'].trained(BASELINE) == rows['n 2, chosen'].trained(BASELINE)
  finer = rows['n 2, chosen'].num_clusters != (1,)
  assert (rows['n 2'].trained(CLUSTERS) != rows['n 2, chosen'].trained(CLUSTERS)) is finer
  assert rows['n 2, chosen'].choice == (chosen.choice,)

  # A call for some rows shows the others too, but not those of other clients, or of other seeds.
  (job,) = runs_lib.plan(TABLE, TINY, (0,), tmp_path, only='chosen')
  found = dataclasses.replace(done[1].results, clusterings=[chosen])
  shown = runs_lib.finished(TABLE, TINY, tmp_path, [(job, found)])
  assert sorted(row.name for rows, *_ in shown for row in rows) == ['n 1', 'n 2', 'n 2, chosen']
  again = {name: dict(row.columns) for name, row in gather(shown).items()}
  assert again == {name: dict(row.columns) for name, row in rows.items()}
  others = dataclasses.replace(found, population=dataclasses.replace(found.population, digest='other'))
  assert len(runs_lib.finished(TABLE, TINY, tmp_path, [(job, others)])) == 1
  elsewhere = [(dataclasses.replace(job, seed=5), found)]
  assert len(runs_lib.finished(TABLE, TINY, tmp_path, elsewhere)) == 1

  words = page_lib.write(TABLE, runs, TINY, {'command': 'none'}, tmp_path / 'page').read_text()
  assert TINY.words in words and 'Thresholds that were tried' in words


@pytest.mark.tensorflow
def test_a_row_with_folds_is_estimated_run_in_processes_too_and_read(tmp_path, store):
  folded = dataclasses.replace(TABLE, rows=(Row('n 1', settings(1) | {'num_folds': 2}, WIDE),), cells=())
  jobs = runs_lib.plan(folded, TINY, (0, 1), tmp_path)
  planned = [run for job in jobs for run in cost_estimates.with_folds(job)]
  once = 4 * 2 + 4 + 3 * 2
  assert [each.asked for each in cost_estimates.estimates(planned, store, SILENT)] == 6 * [once]
  done = studies_runs.run_all(jobs, store, SILENT, Machine(), runs_in_parallel=2)
  for job, ran in zip(jobs, done, strict=True):
    assert cross_validation.is_done(job.folder, job.config)
    assert ran.asked == 3 * once  # As without folds, once more for each of them.
    found = ran.results.cross_validation
    assert found.folds == 2
    each = [results.read(path) for path in sorted(job.folder.root.glob('folds/*/results.json'))]
    own = [fold.clusterings[0].evaluations['own'].clients for fold in each]
    (ours,) = gather([(job.rows, job.seed, ran.results)]).values()
    assert rohith2020.over_folds('own')(ours) == pytest.approx(
      [100 * np.mean([e.mean_client_accuracy for e in own])]
    )
    assert rohith2020.over_folds('own', 'precision')(ours) == pytest.approx(
      [100 * np.mean([e.precision for e in own])]
    )
    fedavg = np.mean([fold.baseline.evaluation.clients.recall for fold in each])
    assert rohith2020.over_folds(BASELINE, 'recall')(ours) == pytest.approx([100 * fedavg])
  assert [
    ran.trained for ran in studies_runs.run_all(jobs, store, SILENT, Machine(), runs_in_parallel=2)
  ] == [
    0,
    0,
  ]
  next(jobs[0].folder.root.glob('folds/01/results.json')).unlink()
  assert not cross_validation.is_done(jobs[0].folder, jobs[0].config)


@pytest.mark.tensorflow
def test_fedavg_alone_is_estimated_run_and_shown(tmp_path, store):
  (job,) = runs_lib.plan(ALONE, LEAN, (0,), tmp_path, only='B 10, E 1')
  # 4 rounds of 4 clients, and nobody sends a signature.
  (before,) = cost_estimates.estimates([job], store, SILENT)
  assert (before.asked, before.stored) == (16, 0)
  done = studies_runs.run_all([job], store, SILENT)[0]
  assert (done.trained, studies_runs.run_all([job], store, SILENT)[0].trained) == (16, 0)
  assert done.results.clusterings == done.results.candidates == []
  assert done.results.baseline.history.rounds == [1, 2, 3, 4]
  assert files_lib.load_json(job.folder.phase1)['signatures'] == {}
  assert not list(store.glob('*signatures*'))
  # What clusterings stand on is the same training: a row with one finds it in the store.
  rows = (dataclasses.replace(ALONE.rows[0], clustering=WIDE),)
  table = dataclasses.replace(ALONE, name='made_up/table3', rows=rows)
  (other,) = runs_lib.plan(table, LEAN, (0,), tmp_path)
  assert cost_estimates.estimates([other], store, SILENT)[0].stored == 16
  assert studies_runs.run_all([other], store, SILENT)[0].results.baseline == done.results.baseline

  shown = runs_lib.finished(ALONE, LEAN, tmp_path, [(job, done.results)])
  page = page_lib.write(ALONE, shown, LEAN, {'command': 'none'}, tmp_path / 'page').read_text()
  assert 'Clusters that were found' not in page
  (row,) = gather(shown).values()
  curve = {number: 100 * a for number, a in enumerate(done.results.baseline.history.test_accuracy, 1)}
  assert (row.baseline_curve, row.accuracy_curve, row.num_clusters) == (curve, {}, ())


FIGURE_1 = catalogue.PUBLISHED['fedex/figure1']


def had_run(root, name, data_dir='here', digest='a', seed=0, change=None):
  """Saves results of a row of figure 1 as if it had been run, with a changed configuration; returns job and results."""
  (job,) = runs_lib.plan(FIGURE_1, FIGURE_1.small, (seed,), root, data_dir, name)
  results = in_json.typed({'config': job.config.to_json(), 'population': {'digest': digest}})
  written = results.to_json()
  if change is not None:
    change(written['config'])
  job.folder.root.mkdir(parents=True, exist_ok=True)
  files_lib.save_json(job.folder.results, written)
  return job, results


def two_rows(root, change):
  """Returns the job of both rows of n = 2, and results in which a clustering of each label has its own number of clusters."""
  (job,) = [job for job in runs_lib.plan(TABLE, TINY, (0,), root) if len(job.rows) == 2]
  config = change(job.config)
  clusterings = [{'label': c.label, 'num_clusters': len(c.label)} for c in config.clusterings]
  return job, in_json.typed({'config': config.to_json(), 'clusterings': clusterings})


@pytest.mark.parametrize(
  'change',
  [
    lambda config: dataclasses.replace(config, clusterings=config.clusterings[::-1]),
    lambda config: config.with_clusterings((ClusteringConfig('dynamic_distance'),)),
    lambda config: config.with_aggregation(('fine_tuned',)),
  ],
)
def test_a_run_is_its_rows_whatever_the_order_and_whatever_was_added_to_it(change, tmp_path):
  job, found = two_rows(tmp_path, change)
  ((rows, seed, told),) = runs_lib.finished(TABLE, TINY, tmp_path, [(job, found)])
  assert (rows, seed) == (job.rows, 0)
  assert [c.label for c in told.clusterings] == [row.clustering['name'] for row in rows]
  assert [c.num_clusters for c in told.clusterings] == [len(c.label) for c in told.clusterings]
  assert {name: ours.num_clusters for name, ours in gather([(rows, seed, told)]).items()} == {
    row.name: (len(row.clustering['name']),) for row in rows
  }


def rows_shown(root, *latest):
  runs = runs_lib.finished(FIGURE_1, FIGURE_1.small, root, latest)
  return sorted(row.name for rows, *_ in runs for row in rows)


def test_rows_of_other_partitions_are_shown_where_their_data_lies_in_the_same_place(tmp_path):
  had_run(tmp_path, 'IID, B 10, E 1', digest='iid')
  had_run(tmp_path, 'IID, B 10, E 5', digest='iid', seed=1)
  had_run(tmp_path, 'non-IID, B 50, E 1', digest='skewed')
  mine = had_run(tmp_path, 'non-IID, B 10, E 1', digest='skewed')
  assert rows_shown(tmp_path, mine) == ['IID, B 10, E 1', 'non-IID, B 10, E 1', 'non-IID, B 50, E 1']
  # Other data of the same partition, and data that lies elsewhere, of which nothing is known.
  had_run(tmp_path, 'non-IID, B 50, E 1', digest='of other clients')
  had_run(tmp_path, 'IID, B 10, E 1', digest='iid', data_dir='elsewhere')
  assert rows_shown(tmp_path, mine) == ['non-IID, B 10, E 1']


def test_runs_of_before_an_option_was_added_are_shown_and_those_that_cannot_be_read_are_not(tmp_path):
  last = had_run(tmp_path, 'IID, B 10, E 1')
  had_run(tmp_path, 'IID, B 10, E 5', change=lambda config: config['evaluation'].pop('local_training'))
  had_run(tmp_path, 'IID, B 50, E 1', change=lambda config: config['training'].update(of_tomorrow=1))
  assert rows_shown(tmp_path, last) == ['IID, B 10, E 1', 'IID, B 10, E 5']
