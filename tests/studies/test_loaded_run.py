"""A loaded run against the JSON that it was loaded from, read by hand; and folders that hold no run."""

import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import tff_cluster
from tests.made_up import finished_run
from tff_cluster.aggregation import rules
from tff_cluster.base.errors import InputError
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.scorecard import summary
from tff_cluster.studies import loaded_run

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> pathlib.Path:
  path = tmp_path_factory.mktemp('run')
  finished_run.write_run(path)
  return path


@pytest.fixture(scope='module')
def written(folder):
  return json.loads((folder / 'results.json').read_bytes())


@pytest.fixture(scope='module')
def run(folder):
  return tff_cluster.load(folder)


def clustering_of(written, label):
  return next(each for each in written['clusterings'] if each['label'] == label)


def test_a_run_has_its_configuration_and_results_and_says_what_it_is(run, written, folder):
  assert run.config.to_json() == written['config'] and run.results.digest == written['digest']
  assert repr(run).startswith(f'<run {folder}: ') and 'kmeans' in repr(run)


def test_the_history_has_every_round_of_every_contender(run, written):
  history = run.history().set_index(['contender', 'round'])
  for label, of in ((FEDAVG, written['baseline']), ('kmeans', clustering_of(written, 'kmeans'))):
    found, told = history.loc[label], of['history']
    assert found.index.tolist() == told['rounds']
    for figure in ('validation_accuracy', 'test_accuracy', 'share_at_target'):
      assert found[figure].tolist() == told[figure]
  phases = history.loc[FEDAVG, 'phase']
  assert phases.value_counts().to_dict() == {
    1: written['phase1']['rounds'],
    2: written['baseline']['rounds'] - written['phase1']['rounds'],
  }


def test_clients_are_in_the_clusters_that_list_them_and_gain_over_fedavg(run, written):
  clients = run.clients()
  assert clients.groupby('contender').size().unique().tolist() == [len(written['population']['client_ids'])]
  for label in ('kmeans', 'dynamic_distance'):
    told = clustering_of(written, label)
    for line in clients[clients.contender == label].itertuples():
      assert list(line.clusters) == [
        k for k, members in enumerate(told['clusters']) if line.client in members
      ]
    gains = clients[clients.contender == label].gain
    before, after = (
      each['client_accuracy'] for each in (written['baseline']['evaluation'], told['evaluations']['own'])
    )
    np.testing.assert_allclose(gains, np.subtract(after, before))
  alone = clients[clients.contender == FEDAVG].set_index('client')
  counts = written['population']['label_counts']
  assert alone.train_rows.tolist() == [sum(row) for row in counts]
  assert alone.num_labels.tolist() == [len([n for n in row if n]) for row in counts]
  truth = next(iter(written['population']['truths'].values()))
  assert alone.group.tolist() == [column.index(1.0) for column in zip(*truth, strict=True)]
  assert not alone.malicious.any() and set(alone.clusters) == {()}


def test_clusters_have_their_members_scores_and_commonest_group(run, written):
  clusters = run.clusters()
  assert len(clusters) == sum(each['num_clusters'] for each in written['clusterings'])
  group_of = run.clients().drop_duplicates('client').set_index('client').group
  for line in clusters.itertuples():
    told = clustering_of(written, line.contender)
    assert list(line.members) == told['clusters'][line.cluster] and line.size == len(line.members)
    assert line.accuracy == told['cluster_scores']['unblended']['members'][line.cluster]
    assert line.global_accuracy == told['cluster_scores']['unblended']['global'][line.cluster]
    assert line.best_validation == told['best_validation'][line.cluster]
    votes = group_of[list(line.members)].value_counts()
    assert votes[line.group] == votes.max() and line.group_share == votes.max() / line.size


def test_the_summary_is_what_the_run_told(folder, tmp_path):
  value, arrays = finished_run.make_run()
  told = summary.of_run(tff_cluster.load(folder).results)
  finished_run.save(tmp_path, value | {'summary': [line.to_json() for line in told]}, arrays)
  run = tff_cluster.load(tmp_path)
  found, means = (
    run.summary().set_index('contender'),
    run.clients().groupby('contender')[['accuracy', 'gain']].mean(),
  )
  assert found.index.tolist() == [FEDAVG, 'kmeans', 'dynamic_distance', 'hierarchical']
  np.testing.assert_allclose(found.mean_client_accuracy, means.accuracy[found.index])
  np.testing.assert_allclose(found.difference[1:], means.gain[found.index[1:]])
  assert (found.low[1:] <= found.difference[1:]).all() and (found.difference[1:] <= found.high[1:]).all()
  assert (
    np.isnan(found.low[FEDAVG]) and found.num_clusters[FEDAVG] is pd.NA and found.num_clusters['kmeans'] == 4
  )


def test_evaluations_have_every_rule_and_the_means_of_their_clients(run, written):
  evaluations = run.evaluations().set_index(['contender', 'rule'])
  for told in written['clusterings']:
    for rule, found in told['evaluations'].items():
      line = evaluations.loc[(told['label'], rule)]
      assert line.mean_client_accuracy == pytest.approx(np.mean(found['client_accuracy']))
      assert line.loss == found['clients']['loss']
      of_global = found['global']
      assert (
        np.isnan(line.global_accuracy) if of_global is None else line.global_accuracy == of_global['accuracy']
      )
  assert evaluations.loc[(FEDAVG, '')].global_loss == written['baseline']['evaluation']['global']['loss']


def test_rules_that_came_or_went_since_change_nothing_but_the_words(run, monkeypatch):
  evaluations = run.evaluations()
  found = dict(rules.RULES)
  found['newer'] = dataclasses.replace(found.pop('weighted'), name='newer')
  monkeypatch.setattr(rules, '_found', lambda: found)
  later = run.evaluations()
  pd.testing.assert_frame_equal(later.drop(columns='words'), evaluations.drop(columns='words'))
  assert set(later.words) - set(evaluations.words) == {'weighted'}


TABLES = {name: getattr(loaded_run.LoadedRun, name) for name in loaded_run.COLUMNS}


@pytest.mark.parametrize('name', TABLES)
def test_tables_have_the_columns_that_are_declared_and_documented_and_stack(name, run):
  found, declared = TABLES[name](run), loaded_run.COLUMNS[name]
  assert list(found) == list(declared)
  stacked = pd.concat({'one': found, 'other': found}, names=['run'])
  assert len(stacked) == 2 * len(found) and (stacked.dtypes == found.dtypes).all()
  page = (ROOT / 'docs/howto/read_a_run.md').read_text().partition(f'### `.{name}()`')[2].partition('\n#')[0]
  assert re.findall(r'^\| `(\w+)` \| (.*) \|$', page, re.M) == list(declared.items())


def test_reading_writes_nothing_and_imports_no_tensorflow(folder):
  before = {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob('*')]}
  script = (
    f'import sys, tff_cluster\nrun = tff_cluster.load({str(folder)!r})\nassert "pandas" not in sys.modules\n'
    f'for name in {list(TABLES)}: getattr(run, name)()\nassert "pandas" in sys.modules\n'
    'assert not {"tensorflow", "tensorflow_federated", "keras", "matplotlib"} & {*sys.modules}'
  )
  subprocess.run([sys.executable, '-c', script], cwd=ROOT, check=True)
  assert {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob('*')]} == before


def test_the_scripts_of_the_page_run(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  for place in ('demo', 'compare_mixture/seed_0', 'compare_mixture/seed_1'):
    finished_run.write_run(tmp_path / 'runs' / place)
  for script in re.findall(
    r'^```python\n(.*?)^```$', (ROOT / 'docs/howto/read_a_run.md').read_text(), re.M | re.S
  ):
    exec(compile(script, script.split()[1], 'exec'), {})
  assert 'seed_1' in capsys.readouterr().out


FOREIGN = {
  'nothing': (lambda path: path.unlink(), 'no such file; give the output_dir of a finished run'),
  'a folder': (lambda path: (path.unlink(), path.mkdir()), 'give the output_dir of a finished run'),
  'other JSON': (lambda path: path.write_text('{"accuracy": 1}'), 'schema None'),
  'no JSON': (lambda path: path.write_text('accuracy: 1'), 'is damaged'),
  'half of it': (lambda path: path.write_bytes(path.read_bytes()[:1000]), 'is damaged'),
}


@pytest.mark.parametrize('kind', FOREIGN)
def test_a_folder_without_a_run_is_told_in_a_line(kind, folder, tmp_path):
  shutil.copytree(folder, tmp_path / 'run')
  change, words = FOREIGN[kind]
  change(tmp_path / 'run/results.json')
  with pytest.raises(InputError, match=words) as caught:
    tff_cluster.load(tmp_path / 'run')
  assert str(tmp_path / 'run/results.json') in str(caught.value) and '\n' not in str(caught.value)


def test_damaged_arrays_and_a_file_in_place_of_a_folder_are_told_too(folder, tmp_path):
  shutil.copytree(folder, tmp_path / 'run')
  (tmp_path / 'run/arrays.npz').write_bytes(b'PK')
  for path, words in (
    ('run', r'arrays\.npz is damaged'),
    ('run/arrays.npz', 'Not a directory; give the output_dir of a finished run'),
  ):
    with pytest.raises(InputError, match=words):
      tff_cluster.load(tmp_path / path)


def test_several_runs_are_loaded_by_the_names_of_their_folders(folder, run, tmp_path):
  for name in ('seed_1', 'seed_0'):
    shutil.copytree(folder, tmp_path / name)
  (tmp_path / 'store').mkdir()
  found = tff_cluster.load_all(tmp_path)
  assert list(found) == ['seed_0', 'seed_1']
  pd.testing.assert_frame_equal(found['seed_1'].history(), run.history())
  with pytest.raises(InputError, match='holds a finished run'):
    tff_cluster.load_all(tmp_path / 'store')


def test_the_page_on_choosing_a_rate_prints_validation_accuracy_by_round_contender_and_run(
  folder, run, tmp_path, monkeypatch, capsys
):
  for name in ('rate_0.03', 'rate_0.1'):
    shutil.copytree(folder, tmp_path / 'runs/choose' / name)
  page = pathlib.Path(__file__).parents[2] / 'docs/howto/choose.md'
  (script,) = re.findall(r'```python\n(.*?)```', page.read_text(), re.DOTALL)
  monkeypatch.chdir(tmp_path)
  exec(script, {})
  printed = capsys.readouterr().out
  contenders = run.history().dropna(subset='validation_accuracy')['contender'].unique()
  assert [printed.count(name) for name in ('rate_0.03', 'rate_0.1')] == [len(contenders)] * 2
  assert len(contenders) >= 2 and all(contender in printed for contender in contenders)


def test_who_is_malicious_is_no_group_of_clients(run):
  ids = run.finished.client_ids
  bad = np.array([[1.0] * (len(ids) - 1) + [0.0], [0.0] * (len(ids) - 1) + [1.0]])
  both = np.ones((2, len(ids)))
  for truths, found in (
    ({'group': both, 'malicious': bad}, ('', None)),
    ({'malicious': bad, 'group': bad[::-1]}, ('group', [1] * (len(ids) - 1) + [0])),
  ):
    told = {name: truth.tolist() for name, truth in truths.items()}
    population = dataclasses.replace(run.results.population, truths=told)
    results = dataclasses.replace(run.results, population=population)
    name, groups = dataclasses.replace(run.finished, results=results).main_groups
    assert (name, groups if groups is None else groups.tolist()) == found
