"""phases.experts: what it writes, and what is wrong with its input told in one line, without TensorFlow."""

import json

import numpy as np
import pytest

from tests.made_up.expert_outputs import HAND
from tests.programs import children
from tff_cluster.aggregation.rules import fedex


def call(folder, *arguments, **arrays):
  """Writes the arrays to a file beside the folder, and runs the program on it."""
  path = folder.parent / 'x.npz'
  np.savez(path, **arrays)
  return children.run_here('phases.experts', f'--outputs_file={path}', f'--output_dir={folder}', *arguments)


def written(folder):
  with np.load(folder / 'predictions.npz', allow_pickle=False) as archive:
    arrays = dict(archive)
  return arrays, json.loads((folder / 'experts.json').read_text())


def test_the_files(tmp_path, capsys):
  folder = tmp_path / 'out'
  assert call(folder, '--num_shuffles=6', outputs=HAND, labels=np.array([0, 0, 0])) == 0
  arrays, document = written(folder)
  # Vote: one each for 0 and 2 (means 3/8 both: 0), for 1 and 0 or 2 (1 has the mean 0.4), for 0 and 1 (0.35, 0.275).
  # Oracle: an expert puts 0 first in the first and the last sample, and in the second (2/5 ties with class 2).
  expected = {
    'fedex': [0, 1, 0],
    'mean': [0, 1, 2],
    'vote': [0, 1, 0],
    'confidence': [0, 1, 0],
    'oracle': [0, 0, 0],
  }
  assert {name: array.tolist() for name, array in arrays.items() if name != 'weights'} == expected
  assert {array.dtype for name, array in arrays.items() if name != 'weights'} == {np.dtype(np.int64)}
  np.testing.assert_allclose(arrays['weights'], [[73 / 112, 7 / 12, 1 / 2], [39 / 112, 5 / 12, 1 / 2]])
  third = 1 / 3
  assert document['accuracy'] == pytest.approx(
    {'fedex': 2 * third, 'mean': third, 'vote': 2 * third, 'confidence': 2 * third, 'oracle': 1.0}
  )
  assert document['expert_accuracy'] == pytest.approx([2 * third, third])
  assert [document[f'num_{size}'] for size in ('experts', 'samples', 'classes')] == [2, 3, 3]
  for one in expected:
    for other in expected:
      share = np.mean(np.array(expected[one]) == expected[other])
      assert document['agreement'][one][other] == pytest.approx(share)
  order = document['order_sensitivity']
  assert (order['seed'], order['num_shuffles'], len(order['agreement'])) == (0, 6, 6)
  # The second sample is class 1 in every order: its lead is 0.1, and FedEx is wrong there, so it is as accurate as it
  # agrees with [0, 1, 0] in the others. Those are class 2 where the last comes first, as the mean has it.
  assert order['accuracy'] == pytest.approx([a - third for a in order['agreement']])
  assert max(1 - a for a in order['agreement']) - 1e-9 <= order['changed'] <= 2 * third + 1e-9
  out, err = capsys.readouterr()
  assert err == ''
  assert out.splitlines()[0] == '2 experts, 3 samples, 3 classes'
  assert 'fedex           66.67%   100.00%' in out and 'oracle         100.00%' in out
  assert out.splitlines()[-2:] == [str(folder / 'predictions.npz'), str(folder / 'experts.json')]
  assert sorted(path.name for path in folder.iterdir() if path.name != '.tff_cluster-lock') == [
    'experts.json',
    'predictions.npz',
  ]


def test_without_labels_there_is_no_oracle_and_no_accuracy(tmp_path, capsys):
  assert call(tmp_path / 'out', outputs=HAND.astype(np.float32)) == 0
  arrays, document = written(tmp_path / 'out')
  assert set(arrays) == {'fedex', 'mean', 'vote', 'confidence', 'weights'}
  assert document['accuracy'] is None and document['expert_accuracy'] is None
  assert document['order_sensitivity']['accuracy'] is None
  assert len(document['order_sensitivity']['agreement']) == 10
  assert 'accuracy ' not in capsys.readouterr().out.splitlines()[-3]


def test_start_weights_and_seed(tmp_path):
  rng = np.random.default_rng(2)
  outputs, start = rng.dirichlet(np.ones(5), (3, 80)), rng.random((3, 5))
  found = []
  for seed in (0, 0, 1):
    folder = tmp_path / f'out{len(found)}'
    assert call(folder, f'--seed={seed}', outputs=outputs, start_weights=start, __checksum__=start) == 0
    found.append(written(folder))
  predictions, weights = fedex.fedex(outputs, start)
  np.testing.assert_array_equal(found[0][0]['fedex'], predictions)
  np.testing.assert_array_equal(found[0][0]['weights'], weights)
  assert (predictions != fedex.fedex(outputs)[0]).any()
  orders = [document['order_sensitivity']['agreement'] for _, document in found]
  assert orders[0] == orders[1] != orders[2]
  assert found[0][1] == found[1][1]
