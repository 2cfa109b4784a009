"""The clustering benchmarks run at small sizes and end with one JSON line that can be believed."""

import argparse
import importlib
import itertools
import re
import types

import numpy as np
import pytest

from benchmarks import planted, replay
from tests.benchmarks.program import ROOT, run


def test_planted_vectors_are_what_they_say():
  found = np.array(list(planted.vectors(12, 4000, 3, 2.0, 0)))
  groups = planted.groups(12, 3)
  assert found.dtype == np.float32 and sorted(np.bincount(groups)) == [4, 4, 4]
  same = groups[:, None] == groups[None]
  squared = ((found[:, None] - found[None]) ** 2).mean(axis=2)
  # Noise of variance 1 on both sides; centres of variance 4 on both sides.
  np.testing.assert_allclose(squared[same & ~np.eye(12, dtype=bool)], 2.0, rtol=0.15)
  np.testing.assert_allclose(squared[~same], 10.0, rtol=0.15)
  np.testing.assert_array_equal(found, list(planted.vectors(12, 4000, 3, 2.0, 0)))
  assert not np.array_equal(found, list(planted.vectors(12, 4000, 3, 2.0, 1)))


def test_replay():
  lines, result = run('benchmarks.replay', '--clients=16', '--features=50000', '--repeats=1')
  assert result['clusterings'] == result['families'] * result['thresholds'] == 80
  assert set(result['ari'].values()) == {1.0}
  assert result['relative_error'] < 1e-5
  assert result['seconds'].keys() == {'replay', 'l1', 'l2', 'cosine', 'scipy_pdist_euclidean'}
  assert lines


def test_ratios_of_a_replay_are_those_of_the_medians_of_its_seconds(tmp_path, monkeypatch):
  # Seconds of the replay, l1, l2, cosine and SciPy, in each of three repeats.
  took = [(30, 2, 1, 5, 8), (6, 2, 3, 1, 8), (12, 50, 4, 1, 8)]
  clock = itertools.accumulate(itertools.chain(*((0, seconds) for each in took for seconds in each)))
  monkeypatch.setattr(replay, 'time', types.SimpleNamespace(perf_counter=lambda: next(clock)))
  asked = argparse.Namespace(clients=8, features=500, num_thresholds=2, repeats=3, memory_mb=8, seed=0)
  replay._write(tmp_path / 'vectors.npy', asked)
  result = replay._measure(tmp_path / 'vectors.npy', asked)
  assert result['seconds'] == {'replay': 12, 'l1': 2, 'l2': 3, 'cosine': 1, 'scipy_pdist_euclidean': 8}
  assert result['ratio_to_one_pass'] == 2.0
  assert result['ratio_to_pass_of'] == {'l1': 6.0, 'l2': 4.0, 'cosine': 12.0, 'scipy_pdist_euclidean': 1.5}


def test_clustering_scale(tmp_path):
  lines, result = run(
    'benchmarks.clustering_scale', '--clients', '30', '60', '--features=600', '--dimension=128', '--num_groups=3',
    '--methods', 'kmeans', 'l2 ward', f'--output_dir={tmp_path}',
  )  # fmt: skip
  assert [size['clients'] for size in result['sizes']] == [30, 60]
  for size in result['sizes']:
    assert size['methods'].keys() == {'kmeans', 'l2 ward'}
    for method in size['methods'].values():
      assert (method['clusters'], method['ari']) == (3, 1.0)
      assert method['seconds'] > 0 and 20 < method['peak_mb'] < 2000
    assert 0 < size['distortion']['mean'] < 0.2
  assert result['worst_seconds'] == max(m['seconds'] for m in result['sizes'][1]['methods'].values())
  for ending in ('svg', 'png'):
    assert (tmp_path / f'clustering_scale.{ending}').stat().st_size > 1000
    assert str(tmp_path / f'clustering_scale.{ending}') in lines


@pytest.mark.parametrize(
  ('module', 'arguments'),
  [
    ('benchmarks.replay', ['--clients=1']),
    ('benchmarks.replay', ['--repeats=0']),
    ('benchmarks.clustering_scale', ['--clients', '1']),
    ('benchmarks.clustering_scale', ['--clients', '30', '0']),
    ('benchmarks.clustering_scale', ['--clients', '300', '--num_groups=200']),
  ],
)
def test_sizes_that_cannot_be_measured_are_told_in_one_line(module, arguments, capsys, monkeypatch):
  monkeypatch.setattr('sys.argv', [module, *arguments])
  assert importlib.import_module(module).main() == 2
  out, err = capsys.readouterr()
  assert (out, err.count('\n')) == ('', 1)
  assert arguments[0].partition('=')[0] in err


def test_the_table_of_the_readme_has_every_program():
  mains = {
    '.'.join(path.relative_to(ROOT).with_suffix('').parts).removesuffix('.__main__')
    for path in [*ROOT.glob('benchmarks/*.py'), *ROOT.glob('benchmarks/*/__main__.py')]
    if re.search(r'^def main\(', path.read_text(), re.M)
  }
  listed = (ROOT / 'benchmarks/README.md').read_text().partition('## Results')[0]
  table = re.findall(r'^\| `python -m (benchmarks\.\w+)` \|', listed, re.M)
  # It starts the processes of a made-up cluster for others.
  assert sorted(table) == sorted(mains - {'benchmarks.sleeping_cluster'})
