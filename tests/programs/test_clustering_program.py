"""phases.clustering on files of vectors, against SciPy, worked examples and planted groups."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster import hierarchy

from phases import clustering
from tests.made_up import after_phase_1
from tff_cluster.cli import program
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig
from tff_cluster.storage import files

ROOT = Path(__file__).parents[2]
# On a line, so that distances are plain differences.
LINE = np.array([[0.0], [1.0], [2.0], [10.0]])


def save(path, vectors, **ids):
  np.savez(path, signatures=vectors, **ids)
  return path


def call(path, folder, *arguments):
  everything = ['p', f'--signatures_file={path}', f'--output_dir={folder}', *arguments]
  return program.execute(clustering.main, clustering.define_flags, everything)


def clusters(path, folder, *arguments):
  assert call(path, folder, *arguments) == 0
  return json.loads((folder / 'clusters.json').read_text())


def planted(seed=0, features=6):
  """float32[30, features]: three groups of ten far from one another, shuffled; and int[30], the groups."""
  rng = np.random.default_rng(seed)
  groups = rng.permutation(np.repeat(np.arange(3), 10))
  centres = np.eye(3, features) * 20
  return (centres[groups] + rng.normal(size=(30, features)) * 0.1).astype(np.float32), groups


def as_sets(found):
  return {frozenset(members) for members in found}


def groups_as_sets(groups):
  return {frozenset(np.flatnonzero(groups == group).tolist()) for group in np.unique(groups)}


@pytest.mark.parametrize(
  ('arguments', 'expected', 'threshold'),
  [
    (['--distance_threshold=1'], [[0, 1], [1, 2], [3]], 1.0),
    (['--distance_threshold=1', '--variant=neighbourhoods'], [[0, 1, 2], [3]], 1.0),
    (['--distance_threshold=0.5'], [[0], [1], [2], [3]], 0.5),
    (['--distance_threshold=10'], [[0, 1, 2, 3]], 10.0),
    # Distances 1 2 10 1 9 8: their mean is 31/6, and their median lies halfway between 2 and 8.
    ([], [[0, 1, 2], [3]], 31 / 6),
    (['--distance_threshold=quantile:0.5'], [[0, 1, 2], [3]], 5.0),
    (['--distance_threshold=quantile:0'], [[0, 1], [1, 2], [3]], 1.0),
    (['--distance_threshold=quantile:1'], [[0, 1, 2, 3]], 10.0),
  ],
)
def test_dynamic_distance_by_hand(arguments, expected, threshold, tmp_path):
  found = clusters(save(tmp_path / 'v.npz', LINE), tmp_path / 'out', *arguments)
  assert found['clusters'] == expected
  assert found['num_clusters'] == len(expected)
  assert found['threshold'] == pytest.approx(threshold)
  assert found['method'] == 'dynamic_distance'
  assert found['client_ids'] == [0, 1, 2, 3]


def test_the_worked_example_of_the_paper(tmp_path):
  # Rohith et al. 2020, section 5.2.2: vectors with exactly these pairs within 1 of each other are the
  # columns of a square root of a positive definite matrix of inner products.
  neighbours = {1: [9, 10], 2: [9], 5: [9]}
  links = np.zeros((11, 11))
  for one, others in neighbours.items():
    for other in others:
      links[one, other] = links[other, one] = 0.1
  vectors = np.linalg.cholesky(np.eye(11) + links)
  distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
  assert ((distances < 1.38) == (links + np.eye(11) > 0)).all()
  found = clusters(save(tmp_path / 'v.npz', vectors), tmp_path / 'out', '--distance_threshold=1.38')
  assert as_sets(found['clusters']) == {
    frozenset(c) for c in ([5, 9], [9, 1], [10, 1], [2, 9], [0], [3], [4], [6], [7], [8])
  }


@pytest.mark.parametrize(
  'method',
  [[], ['--distance_threshold=5'], ['--method=kmeans', '--num_clusters=3'], ['--method=hierarchical', '--distance_threshold=5'],
   ['--method=spectral', '--num_clusters=3'], ['--method=spectral', '--num_clusters=3', '--affinity=rbf']],
)  # fmt: skip
def test_planted_groups_are_found(method, tmp_path):
  vectors, groups = planted()
  found = clusters(save(tmp_path / 'v.npz', vectors), tmp_path / 'out', *method)
  assert as_sets(found['clusters']) == groups_as_sets(groups)


@pytest.mark.parametrize('linkage', ['single', 'complete', 'average', 'ward'])
@pytest.mark.parametrize('metric', ['l1', 'l2', 'cosine'])
def test_hierarchical_is_scipys(metric, linkage, tmp_path):
  if linkage == 'ward' and metric != 'l2':
    pytest.skip('an error, tested with the wrong command lines')
  vectors = np.random.default_rng(4).normal(size=(25, 4))
  name = {'l1': 'cityblock', 'l2': 'euclidean', 'cosine': 'cosine'}[metric]
  merges = hierarchy.linkage(vectors, linkage, name)
  limit = float(merges[14:16, 2].mean())
  labels = hierarchy.fcluster(merges, limit, 'distance')
  found = clusters(
    save(tmp_path / 'v.npz', vectors), tmp_path / 'out', '--method=hierarchical', f'--distance_threshold={limit}',
    f'--metric={metric}', f'--linkage={linkage}',
  )  # fmt: skip
  assert as_sets(found['clusters']) == groups_as_sets(labels)
  assert found['parameters'] == {'distance_threshold': str(limit), 'metric': metric, 'linkage': linkage}
  assert found['threshold'] == limit


def test_kmeans_says_its_parameters_and_repeats(tmp_path):
  path = save(tmp_path / 'v.npz', np.random.default_rng(1).normal(size=(20, 3)))
  arguments = ['--method=kmeans', '--num_clusters=4', '--seed=5']
  first = clusters(path, tmp_path / 'one', *arguments)
  assert first['parameters'] == {'num_clusters': 4, 'seed': 5}
  assert first['threshold'] is None
  assert clusters(path, tmp_path / 'two', *arguments) == first


def test_spectral_says_its_parameters_and_repeats(tmp_path):
  path = save(tmp_path / 'v.npz', np.random.default_rng(1).normal(size=(20, 3)))
  arguments = ['--method=spectral', '--num_clusters=4', '--affinity=nearest_neighbors', '--seed=5']
  first = clusters(path, tmp_path / 'one', *arguments)
  assert first['parameters'] == {'num_clusters': 4, 'affinity': 'nearest_neighbors', 'seed': 5}
  assert (first['method'], first['threshold'], first['num_clusters']) == ('spectral', None, 4)
  assert clusters(path, tmp_path / 'two', *arguments) == first


# Cosines 0.8 (0, 1), -0.6, -1, 0 (1, 2), -0.8 and 0.6 (2, 3): the pairs part at 0, and 0.6 lies within the second.
DIRECTIONS = np.array([[1.0, 0.0], [4.0, 3.0], [-3.0, 4.0], [-1.0, 0.0]])


@pytest.mark.parametrize(
  ('arguments', 'expected', 'note'),
  [
    ([], [[7, 5], [6, 4]], 'halves of 2 and 2 clients'),
    (['--min_cluster_size=2', '--min_similarity_gap=0.59'], [[7, 5], [6, 4]], 'the similarity gap 0.6'),
    (['--min_cluster_size=3'], [[7, 5, 6, 4]], 'not split: a half of 2 clients, at least 3 asked for (min_cluster_size)'),
    (['--min_similarity_gap=0.7'], [[7, 5, 6, 4]], 'not split: a similarity gap of 0.6, at least 0.7 asked for'),
    (['--max_cross_similarity=-0.01'], [[7, 5, 6, 4]], 'at most -0.01 asked for (max_cross_similarity)'),
  ],
)  # fmt: skip
def test_bipartition_by_hand(arguments, expected, note, tmp_path):
  path = save(tmp_path / 'v.npz', DIRECTIONS, client_ids=np.array([7, 5, 6, 4]))
  found = clusters(path, tmp_path / 'out', '--method=bipartition', *arguments)
  assert found['clusters'] == expected
  assert found['num_clusters'] == len(expected)
  assert found['cross_similarity'] == pytest.approx(0.0, abs=1e-12)
  assert found['similarity_gap'] == pytest.approx(0.6)
  assert any(note in line for line in found['notes'])
  given = dict(argument.removeprefix('--').split('=') for argument in arguments)
  assert found['parameters'] == {
    'min_cluster_size': int(given.get('min_cluster_size', 1)),
    'min_similarity_gap': float(given.get('min_similarity_gap', 0)),
    'max_cross_similarity': float(given.get('max_cross_similarity', 1)),
  }
  assert (found['method'], found['threshold']) == ('bipartition', None)


def test_bipartition_parts_two_planted_directions(tmp_path):
  rng = np.random.default_rng(6)
  groups = rng.permutation(np.repeat([0, 1], [4, 9]))
  vectors = (rng.normal(size=(2, 40))[groups] + 0.2 * rng.normal(size=(13, 40))).astype(np.float32)
  found = clusters(save(tmp_path / 'v.npz', vectors), tmp_path / 'out', '--method=bipartition')
  assert as_sets(found['clusters']) == groups_as_sets(groups)
  assert found['similarity_gap'] > 0.3


def test_only_bipartition_has_similarities(tmp_path):
  path = save(tmp_path / 'v.npz', LINE)
  one = clusters(path, tmp_path / 'one')
  two = clusters(path, tmp_path / 'two', '--method=bipartition')
  assert two.keys() - one.keys() == {'cross_similarity', 'similarity_gap'}
  alone = clusters(save(tmp_path / 'w.npz', LINE[:1]), tmp_path / 'alone', '--method=bipartition')
  assert alone.keys() == two.keys()
  assert (alone['clusters'], alone['cross_similarity'], alone['similarity_gap']) == ([[0]], None, None)


@pytest.mark.parametrize(
  ('ids', 'expected'),
  [
    ({}, [0, 1, 2, 3]),
    ({'client_ids': np.array([7, 5, -1, 10**12])}, [7, 5, -1, 10**12]),
    ({'client_ids': np.array(['b', 'a', '7', 'é'])}, ['b', 'a', '7', 'é']),
  ],
)
def test_ids_come_back_as_they_were_given(ids, expected, tmp_path):
  found = clusters(save(tmp_path / 'v.npz', LINE, **ids), tmp_path / 'out', '--distance_threshold=1')
  assert found['client_ids'] == expected
  assert found['clusters'] == [expected[:2], expected[1:3], expected[3:]]


def test_permuting_clients_permutes_the_clusters(tmp_path):
  vectors, _ = planted(3)
  order = np.random.default_rng(9).permutation(len(vectors))
  one = clusters(save(tmp_path / 'a.npz', vectors), tmp_path / 'a', '--distance_threshold=quantile:0.2')
  other = clusters(
    save(tmp_path / 'b.npz', vectors[order], client_ids=order),
    tmp_path / 'b',
    '--distance_threshold=quantile:0.2',
  )
  assert as_sets(one['clusters']) == as_sets(other['clusters'])
  assert other['client_ids'] == order.tolist()


def test_a_plain_npy(tmp_path):
  np.save(tmp_path / 'v.npy', LINE)
  assert clusters(tmp_path / 'v.npy', tmp_path / 'out', '--distance_threshold=1')['num_clusters'] == 3


@pytest.mark.parametrize(
  'arguments',
  [
    [],
    ['--method=kmeans', '--num_clusters=1'],
    ['--method=spectral', '--num_clusters=1'],
    ['--method=hierarchical', '--distance_threshold=1'],
    ['--method=bipartition'],
  ],
)
def test_one_client(arguments, tmp_path):
  assert clusters(save(tmp_path / 'v.npz', LINE[:1]), tmp_path / 'out', *arguments)['clusters'] == [[0]]


def test_notes_say_that_everybody_is_alone_or_together(tmp_path):
  path = save(tmp_path / 'v.npz', LINE)
  alone = clusters(path, tmp_path / 'out', '--distance_threshold=0')
  together = clusters(path, tmp_path / 'out', '--distance_threshold=100')
  assert any('alone' in note for note in alone['notes'])
  assert any('one cluster' in note for note in together['notes'])


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
  return program.execute(
    clustering.main, clustering.define_flags, ['p', f'--output_dir={run.root}', *arguments]
  )


THREE = [[f'c{k:02d}' for k in range(start, start + 4)] for start in (0, 4, 8)]


def test_the_clusterings_of_a_run(run, capsys):
  assert on_run(run) == 0, capsys.readouterr().err
  assert files.load_json(run.clusters('dynamic_distance'))['clusters'] == THREE
  assert run.load_config() == STARTED
  assert not (run.root / '.tff_cluster-lock').exists()


def test_a_clustering_is_added_to_a_run(run, capsys):
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


def test_what_a_stopped_call_left_is_made_anew(run, capsys):
  files.save_json(run.clusters('kmeans'), {'clusters': 'of other flags'})
  assert on_run(run, '--method=kmeans', '--num_clusters=3') == 0, capsys.readouterr().err
  assert files.load_json(run.clusters('kmeans'))['clusters'] == THREE


def test_a_run_without_phase_1(run, capsys):
  run.phase1.unlink()
  assert on_run(run) == 2
  assert 'run python -m phases.phase1' in capsys.readouterr().err


def test_as_a_process_without_tensorflow(tmp_path):
  path = save(tmp_path / 'v.npz', LINE)
  script = (
    'import sys\nfrom phases import clustering\nfrom tff_cluster.cli import program\n'
    'code = program.execute(clustering.main, clustering.define_flags, sys.argv)\n'
    'print(code, [m for m in sys.modules if m.split(".")[0] in ("tensorflow", "tensorflow_federated", "keras")])\n'
  )
  arguments = [f'--signatures_file={path}', f'--output_dir={tmp_path / "out"}', '--distance_threshold=1']
  done = subprocess.run([sys.executable, '-c', script, *arguments], cwd=ROOT, capture_output=True, text=True)
  target = tmp_path / 'out' / 'clusters.json'
  assert done.stdout == f'dynamic_distance: 3 clusters, 4 clients\n{target}\n0 []\n'
  assert done.stderr == ''
  as_program = [sys.executable, '-m', 'phases.clustering', *arguments]
  done = subprocess.run(as_program, cwd=ROOT, capture_output=True, text=True)
  assert (done.returncode, done.stdout) == (0, f'dynamic_distance: 3 clusters, 4 clients\n{target}\n')
