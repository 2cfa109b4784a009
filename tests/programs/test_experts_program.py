"""phases.experts: what it writes, and what is wrong with its input told in one line, without TensorFlow."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from phases import experts as program_of_experts
from tff_cluster.aggregation.rules import fedex
from tff_cluster.cli import program
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.config import ExperimentConfig

# The three steps by hand of tests/aggregation/test_experts.py.
HAND = np.array(
  [
    [[1 / 2, 1 / 4, 1 / 4], [1 / 5, 3 / 5, 1 / 5], [12 / 20, 1 / 20, 7 / 20]],
    [[1 / 4, 1 / 4, 1 / 2], [2 / 5, 1 / 5, 2 / 5], [2 / 20, 10 / 20, 8 / 20]],
  ]
)
GOOD = np.full((2, 3, 4), 0.25, np.float32)
BROKEN = GOOD.copy()
BROKEN[1, 2, 0] = np.nan


def call(folder, *arguments, **arrays):
  """Writes the arrays to a file beside the folder, and runs the program on it."""
  path = folder.parent / 'x.npz'
  np.savez(path, **arrays)
  line = ['experts', f'--outputs_file={path}', f'--output_dir={folder}', *arguments]
  return program.execute(program_of_experts.main, program_of_experts.define_flags, line)


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


BAD = [
  ({'output': GOOD}, "has no array 'outputs' [experts, samples, classes], found output"),
  ({}, "has no array 'outputs' [experts, samples, classes], found nothing"),
  ({'outputs': GOOD, 'label': [0, 1, 2]}, "has an unknown array 'label'; allowed are outputs, labels, start_weights"),
  ({'outputs': GOOD[0]}, 'outputs must be [experts, samples, classes] with at least one of each, found shape [3, 4]'),
  ({'outputs': GOOD[:0]}, 'found shape [0, 3, 4]'),
  ({'outputs': BROKEN}, 'outputs[1, 2, 0] is nan; allowed are finite numbers from 0'),
  ({'outputs': -GOOD}, 'outputs[0, 0, 0] is -0.25; allowed are finite numbers from 0 to 1e+100; give probabilities, not logits'),
  ({'outputs': GOOD.astype(str)}, 'outputs must be numbers, found dtype <U'),
  ({'outputs': np.array([[[{}]]], object)}, 'holds Python objects'),
  ({'outputs': GOOD, 'labels': [0, 1]}, 'labels must be [samples], one for each of 3, found shape [2]'),
  ({'outputs': GOOD, 'labels': [0, 1, 4]}, 'labels[2] is 4; labels go from 0 to 3'),
  ({'outputs': GOOD, 'labels': [0, -1, 0]}, 'labels[1] is -1; labels go from 0 to 3'),
  ({'outputs': GOOD, 'labels': [0.5, 1, 1]}, 'labels must be whole numbers, found dtype float64'),
  ({'outputs': GOOD, 'start_weights': np.ones((4, 2))}, 'start_weights must be [experts, classes], here [2, 4], found shape [4, 2]'),
  ({'outputs': GOOD, 'start_weights': np.full((2, 4), np.inf)}, 'start_weights[0, 0] is inf'),
]  # fmt: skip


@pytest.mark.parametrize(('arrays', 'words'), BAD)
def test_bad_files_are_one_line_with_the_path(arrays, words, tmp_path, capsys):
  folder = tmp_path / 'out'
  assert call(folder, **arrays) == 2
  out, err = capsys.readouterr()
  assert out == '' and err.count('\n') == 1 and words in err
  assert err.startswith(f'error: --outputs_file={tmp_path}/x.npz: ')
  assert not folder.exists()


@pytest.mark.parametrize(
  ('arguments', 'words'),
  [
    ('', '--outputs_file=FILE is required'),
    ('--outputs_file={tmp}/none.npz', 'none.npz: no such file'),
    ('--outputs_file={tmp}', 'not a file'),
    ('--outputs_file={tmp}/text.npz', 'is not an .npz (or is cut off)'),
    ('--outputs_file=x.npz --num_shuffles=0', '--num_shuffles=0: must be at least 1'),
    ('--outputs_file=x.npz --seed=-1', '--seed=-1: must be at least 0'),
    ('--outputs_file=x.npz --labels=y', 'unknown flag --labels'),
  ],
)
def test_bad_flags_are_one_line(arguments, words, tmp_path, capsys):
  (tmp_path / 'text.npz').write_text('outputs')
  line = ['experts', *arguments.format(tmp=tmp_path).split(), f'--output_dir={tmp_path}/out']
  assert program.execute(program_of_experts.main, program_of_experts.define_flags, line) == 2
  out, err = capsys.readouterr()
  assert out == '' and err.startswith('error: ') and err.count('\n') == 1 and words in err
  assert not (tmp_path / 'out').exists()


def test_the_folder_of_a_run_is_left_alone(tmp_path, capsys):
  run_claim.claim_output_dir(tmp_path / 'run', ExperimentConfig()).write()
  run_claim.release_output_dirs()
  assert call(tmp_path / 'run', outputs=GOOD) == 2
  assert 'holds a run; choose another folder for --outputs_file' in capsys.readouterr().err
  assert not (tmp_path / 'run' / 'predictions.npz').exists()


@pytest.mark.program
def test_it_runs_as_a_process_and_imports_neither_tensorflow_nor_scikit_learn(tmp_path):
  np.savez(tmp_path / 'x.npz', outputs=HAND)
  code = (
    'import sys; from phases import experts; from tff_cluster.cli import program\n'
    "done = program.execute(experts.main, experts.define_flags, ['e', *sys.argv[1:]])\n"
    "assert not {'tensorflow', 'tensorflow_federated', 'sklearn'} & set(sys.modules); sys.exit(done)"
  )
  command = [sys.executable, '-c', code, f'--outputs_file={tmp_path}/x.npz', f'--output_dir={tmp_path}/out']
  done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {'PYTHONPATH': '.'})
  assert (done.returncode, done.stderr) == (0, '')
  assert sorted(path.name for path in (tmp_path / 'out').iterdir()) == ['experts.json', 'predictions.npz']
