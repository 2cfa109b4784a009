"""phases.clustering on files of vectors and on runs: what it writes. What a method finds is tested in tests/clustering."""

import dataclasses
import json

import numpy as np
import pytest

from tests.conftest import make_population
from tests.made_up import after_phase_1
from tests.programs.children import run_here
from tff_cluster.data import saved
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig
from tff_cluster.phases import clustering as clustering_lib
from tff_cluster.storage import files

# On a line, so that distances are plain differences.
LINE = np.array([[0.0], [1.0], [2.0], [10.0]])


def save(path, vectors, **ids):
  np.savez(path, signatures=vectors, **ids)
  return path


def call(path, folder, *arguments):
  return run_here('phases.clustering', f'--signatures_file={path}', f'--output_dir={folder}', *arguments)


def clusters(path, folder, *arguments):
  assert call(path, folder, *arguments) == 0
  return json.loads((folder / 'clusters.json').read_text())


# Cosines 0.8 (0, 1), -0.6, -1, 0 (1, 2), -0.8 and 0.6 (2, 3): the pairs part at 0, and 0.6 lies within the second.
DIRECTIONS = np.array([[1.0, 0.0], [4.0, 3.0], [-3.0, 4.0], [-1.0, 0.0]])
NO_GUARDS = {'min_cluster_size': 1, 'min_similarity_gap': 0.0, 'max_cross_similarity': 1.0}


@pytest.mark.parametrize(
  ('vectors', 'arguments', 'expected', 'threshold', 'parameters'),
  [
    (LINE, '--distance_threshold=1', [[0, 1], [1, 2], [3]], 1.0, {'distance_threshold': '1'}),
    (LINE, '--distance_threshold=1 --variant=neighbourhoods', [[0, 1, 2], [3]], 1.0, {'variant': 'neighbourhoods'}),
    # Distances 1 2 10 1 9 8: their mean is 31/6, and their median lies halfway between 2 and 8.
    (LINE, '', [[0, 1, 2], [3]], 31 / 6, {'variant': 'cliques'}),
    (LINE, '--distance_threshold=quantile:0.5', [[0, 1, 2], [3]], 5.0, {}),
    (LINE, '--method=hierarchical --distance_threshold=1.2 --linkage=complete', [[0, 1], [2], [3]], 1.2,
     {'distance_threshold': '1.2', 'metric': 'l2', 'linkage': 'complete'}),
    (LINE, '--method=kmeans --num_clusters=2 --seed=5', [[0, 1, 2], [3]], None, {'num_clusters': 2, 'seed': 5}),
    (LINE, '--method=spectral --num_clusters=2 --affinity=rbf --seed=5', [[0, 1, 2], [3]], None,
     {'num_clusters': 2, 'affinity': 'rbf', 'seed': 5}),
    (DIRECTIONS, '--method=bipartition', [[0, 1], [2, 3]], None, NO_GUARDS),
    (DIRECTIONS, '--method=bipartition --min_cluster_size=3', [[0, 1, 2, 3]], None, NO_GUARDS | {'min_cluster_size': 3}),
  ],
)  # fmt: skip
def test_methods_by_hand(vectors, arguments, expected, threshold, parameters, tmp_path):
  path = save(tmp_path / 'v.npz', vectors)
  found = clusters(path, tmp_path / 'out', *arguments.split())
  assert found['clusters'] == expected
  assert (found['num_clusters'], found['client_ids']) == (len(expected), [0, 1, 2, 3])
  assert found['threshold'] == (threshold and pytest.approx(threshold))
  assert found['parameters'].items() >= parameters.items()
  assert f'--method={found["method"]}' in arguments or found['method'] == 'dynamic_distance'
  assert clusters(path, tmp_path / 'again', *arguments.split()) == found
  similarities = {name: found[name] for name in ('cross_similarity', 'similarity_gap') if name in found}
  if found['method'] == 'bipartition':
    assert similarities == pytest.approx({'cross_similarity': 0.0, 'similarity_gap': 0.6}, abs=1e-12)
    notes = {
      2: 'halves of 2 and 2 clients',
      1: 'not split: a half of 2 clients, at least 3 asked for (min_cluster_size)',
    }
    assert any(notes[len(expected)] in note for note in found['notes'])
  else:
    assert similarities == {}


@pytest.mark.parametrize('ids', [[7, 5, -1, 10**12], ['b', 'a', '7', 'é']], ids=['numbers', 'names'])
def test_ids_come_back_as_they_were_given(ids, tmp_path):
  path = save(tmp_path / 'v.npz', LINE, client_ids=np.array(ids))
  found = clusters(path, tmp_path / 'out', '--distance_threshold=1')
  assert (found['client_ids'], found['clusters']) == (ids, [ids[:2], ids[1:3], ids[3:]])


def test_a_method_of_ones_own_refuses_vectors_as_it_refuses_experiments(tmp_path, monkeypatch, capsys):
  (tmp_path / 'fussy.py').write_text(
    'from tff_cluster.base.errors import InputError\n'
    'from tff_cluster.clustering.method import Method\n'
    'class Fussy(Method):\n'
    '  def check_experiment(self, options, num_clients, cohort_fraction, words=""):\n'
    '    raise InputError(f"{num_clients} clients are not mine")\n'
    '  def cluster(self, options, evidence):\n'
    '    raise AssertionError("asked all the same")\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  assert call(save(tmp_path / 'v.npz', LINE), tmp_path / 'out', '--clustering=fussy:Fussy') == 2
  assert '4 clients are not mine' in capsys.readouterr().err
  assert not (tmp_path / 'out').exists()


def test_a_method_of_ones_own_that_raises_ends_with_one_line_after_its_traceback(
  tmp_path, monkeypatch, capsys
):
  (tmp_path / 'faulty_method.py').write_text(
    'from tff_cluster.clustering.method import Method\n'
    'class Faulty(Method):\n'
    '  def cluster(self, options, evidence):\n'
    '    return 1 // 0\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  assert call(save(tmp_path / 'v.npz', LINE), tmp_path / 'out', '--clustering=faulty_method:Faulty') == 2
  *_, last = capsys.readouterr().err.splitlines()
  assert last == 'error: clustering Faulty: ZeroDivisionError: integer division or modulo by zero'
  assert not (tmp_path / 'out' / 'clusters.json').exists()


def test_a_plain_npy(tmp_path):
  np.save(tmp_path / 'v.npy', LINE)
  assert clusters(tmp_path / 'v.npy', tmp_path / 'out', '--distance_threshold=1')['num_clusters'] == 3


def test_a_failing_call_keeps_what_was_there(tmp_path, capsys):
  path = save(tmp_path / 'v.npz', LINE)
  clusters(path, tmp_path / 'out')
  before = (tmp_path / 'out' / 'clusters.json').read_bytes()
  assert call(path, tmp_path / 'out', '--method=kmeans', '--num_clusters=9') == 2
  assert (tmp_path / 'out' / 'clusters.json').read_bytes() == before
  assert [file.name for file in (tmp_path / 'out').iterdir()] == ['clusters.json']


STARTED = ExperimentConfig(
  DataConfig(num_clients=12), clusterings=(ClusteringConfig(method='dynamic_distance'),)
)


@pytest.fixture
def run(tmp_path):
  """A run with 12 clients in three planted groups, as if its Phase 1 had just ended."""
  return after_phase_1.make(tmp_path / 'run', STARTED, np.repeat(np.arange(3), 4))


def on_run(run, *arguments):
  return run_here('phases.clustering', f'--output_dir={run.root}', *arguments)


THREE = [[f'c{k:02d}' for k in range(start, start + 4)] for start in (0, 4, 8)]


def test_the_clusterings_of_a_run(run, capsys):
  assert on_run(run) == 0, capsys.readouterr().err
  assert files.load_json(run.clusters('dynamic_distance'))['clusters'] == THREE
  assert run.load_config() == STARTED
  assert not (run.root / '.tff_cluster-lock').exists()


def test_a_method_of_training_rows_reads_them_and_no_other_rows_or_groups(run):
  plain, other = saved.load_population(run.population), make_population(clients=12, seed=1)

  def found(name, **changes):
    saved.save_population(dataclasses.replace(plain, **changes), run.population)
    clustering_lib.run_clustering(run, ClusteringConfig('pacfl', name, num_clusters=3), 0)
    told = files.load_json(run.clusters(name)) | {'label': 'pacfl'}
    return told, files.load_arrays(run.linkage(name))['linkage'].tolist()

  one = found('one')
  assert one[0]['signature'] == 'weights' and 'singular vectors of its training rows' in one[0]['notes'][-1]
  # Other validation and test rows, and other groups, are none of its business.
  groups = {'group': np.eye(3)[:, np.arange(12) % 3]}
  assert one == found('two', validation=other.validation, test=other.test, truths=groups)
  assert one != found('three', train=other.train)
  assert one != found('four', train=dataclasses.replace(plain.train, y=other.train.y))


def test_a_clustering_is_added_to_a_run(run, capsys):
  files.save_json(run.clusters('three'), {'clusters': 'of other flags'})  # A stopped call left it.
  arguments = ['--method=kmeans', '--num_clusters=3', '--name=three']
  for _ in range(2):
    assert on_run(run, *arguments) == 0, capsys.readouterr().err
    assert files.load_json(run.clusters('three'))['clusters'] == THREE
    assert run.load_config().clusterings == (
      *STARTED.clusterings,
      ClusteringConfig('kmeans', 'three', num_clusters=3),
    )
  assert on_run(run, '--method=kmeans', '--num_clusters=4', '--name=three') == 2
  assert "two clusterings are called 'three'" in capsys.readouterr().err
  assert on_run(run, '--method=kmeans', '--num_clusters=13') == 2
  assert len(run.load_config().clusterings) == 2
