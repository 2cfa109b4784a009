"""The clustering benchmarks run at small sizes and end with one JSON line that can be believed."""

import importlib
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import planted

ROOT = pathlib.Path(__file__).parents[2]


def run(module, *arguments):
  done = subprocess.run([sys.executable, '-m', module, *arguments], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  assert done.stderr == ''
  *lines, last = done.stdout.splitlines()
  assert not any(line.startswith('{') for line in lines)
  return lines, json.loads(last)


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
  seconds = result['seconds']
  for name, ratio in result['ratio_to_pass_of'].items():
    np.testing.assert_allclose(ratio, seconds['replay'] / seconds[name], rtol=0.2, atol=0.5)
  of_one_metric = (result['ratio_to_pass_of'][metric] for metric in ('l1', 'l2', 'cosine'))
  assert 0 < result['ratio_to_one_pass'] < min(of_one_metric)
  assert lines


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
  # One starts the processes of a made-up cluster for others, one writes a page of docs/.
  assert sorted(table) == sorted(mains - {'benchmarks.sleeping_cluster', 'benchmarks.licences'})
