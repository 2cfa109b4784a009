"""Trajectories: kept, gone on with, found again, never trained twice and never mixed up."""

import contextlib
import dataclasses
import fcntl
import json
import logging
import os
import pathlib
import shutil
import threading

import numpy as np
import pytest

from tests.conftest import make_population
from tests.federated.small_trainer import (
  EVERYBODY,
  SETTINGS,
  Stopped,
  assert_same,
  assert_same_models,
  go,
  make_trainer,
)
from tff_cluster.storage import artifacts as artifacts_lib
from tff_cluster.storage import files as files_lib
from tff_cluster.storage import saved_rounds

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope='module')
def trainer(tff_context):
  return make_trainer(make_population(clients=4), cohort_fraction=0.5)


@pytest.fixture(scope='module')
def five(trainer, tmp_path_factory):
  """Five rounds without interruption, all of them kept."""
  return go(trainer, tmp_path_factory.mktemp('five'), 5, keep=range(1, 6))


def artifacts(folder):
  return sorted(folder.glob('fedavg-*'))


def test_history_and_weights_are_what_the_trainer_gives(trainer, five):
  outcome, told = five
  population = trainer.population
  state = trainer.start(trainer.computations.model.weights)
  for number in range(1, 6):
    state, figures = trainer.round(state, trainer.cohort(EVERYBODY, number), number)
    weights = trainer.weights(state)
    assert_same_models(outcome.weights, {number: weights}, [number])
    for split in ('validation', 'test'):
      measured = trainer.measure(weights, getattr(population, split), EVERYBODY)
      np.testing.assert_array_equal(
        getattr(outcome.history, f'{split}_correct')[number - 1], measured.correct
      )
      np.testing.assert_array_equal(getattr(outcome.history, f'{split}_loss')[number - 1], measured.loss_sum)
      assert told[number - 1][1][f'{split}_accuracy'] == pytest.approx(measured.client_accuracy.mean())
    assert (
      outcome.history.train_loss[number - 1] == figures['train_loss'] == told[number - 1][1]['train_loss']
    )
  assert outcome.history.rounds.tolist() == [n for n, _ in told] == [1, 2, 3, 4, 5]
  assert outcome.cost.client_rounds == outcome.client_rounds_trained == 5 * 2
  assert sorted(outcome.weights) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
  ('earlier', 'asked', 'costs'),
  [
    ({'last': 5, 'stop_at': 1}, {'last': 5}, 4 * 2),
    ({'last': 5, 'stop_at': 3}, {'last': 5}, 2 * 2),
    ({'last': 5, 'stop_at': 5}, {'last': 5}, 0),
    ({'last': 3}, {'last': 5}, 2 * 2),
    ({'last': 5, 'keep': (3,)}, {'last': 3}, 0),
    ({'last': 5}, {'last': 3}, 3 * 2),
    ({'last': 5, 'keep': (2,)}, {'last': 5, 'keep': (2, 4)}, 2 * 2),  # Only the way from round 2 to round 4.
    # Rounds 1 and, from round 3 that is there, 4 are missing; rounds 2 and 3 are not trained again.
    ({'last': 5, 'keep': (3,)}, {'last': 5, 'keep': (1, 4)}, 2 * 2),
  ],
  ids=str,
)
def test_who_asks_after_another_pays_what_is_missing_and_gets_the_same_bits(
  earlier, asked, costs, trainer, five, tmp_path
):
  with pytest.raises(Stopped) if 'stop_at' in earlier else contextlib.nullcontext():
    go(trainer, tmp_path, **earlier)
  outcome, told = go(trainer, tmp_path, **asked)
  last = asked['last']
  assert (outcome.client_rounds_trained, outcome.cost.client_rounds) == (costs, last * 2)
  assert sorted(outcome.weights) == sorted({0, *asked.get('keep', ()), last})
  assert_same(outcome, five[0], last)
  assert told == five[1][:last]
  assert go(trainer, tmp_path, 5)[0].client_rounds_trained == 0


def test_rounds_beyond_what_is_asked_are_not_kept(trainer, five, tmp_path):
  outcome, _ = go(trainer, tmp_path, 3, keep=(0, 2, 4, 9))
  assert sorted(outcome.weights) == [0, 2, 3]
  assert_same(outcome, five[0], 3)
  (artifact,) = artifacts(tmp_path)
  assert sorted(p.name for p in artifact.glob('*.npz')) == ['round_00002.npz', 'round_00003.npz']


@pytest.mark.parametrize(
  'before', [{}, {'last': 5}, {'last': 2, 'keep': (1,)}, {'last': 5, 'stop_at': 3}], ids=str
)
def test_rounds_that_are_left_lie_in_the_store_and_not_in_memory(before, trainer, five, tmp_path):
  if before:
    with pytest.raises(Stopped) if 'stop_at' in before else contextlib.nullcontext():
      go(trainer, tmp_path, **before)
  outcome, told = go(trainer, tmp_path, 5, keep=(3,), leave=range(7))
  assert sorted(outcome.weights) == [0, 3, 5] == [0, *outcome.checkpoints.rounds]
  assert_same(outcome, five[0], 5)
  assert told == five[1]
  (artifact,) = artifacts(tmp_path)
  assert sorted(p.name for p in artifact.glob('*.npz')) == [f'round_{n:05d}.npz' for n in range(1, 6)]
  for number in range(1, 6):
    model = saved_rounds.model(files_lib.load_arrays(artifact / f'round_{number:05d}.npz'), 2)
    assert_same_models({number: model}, five[0].weights, [number])
  assert go(trainer, tmp_path, 5, leave=range(7))[0].client_rounds_trained == 0
  # What left the store, or was damaged, is trained again, and round 3, which lies between, is not.
  (artifact / 'round_00004.npz').unlink()
  damage(artifact / 'round_00002.npz')
  again, _ = go(trainer, tmp_path, 5, leave=range(7))
  assert again.client_rounds_trained == 2 * 2
  assert_same(again, five[0], 5)


def test_who_asks_for_the_same_finds_it_and_trains_nothing(trainer, five, tmp_path):
  first, _ = go(trainer, tmp_path, 3, members=[1, 3])
  files = {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*.npz')}
  second, told = go(trainer, tmp_path, 3, members=[1, 3], settings=dict(reversed(SETTINGS.items())))
  assert second.client_rounds_trained == 0 and second.cost.client_rounds == first.cost.client_rounds == 3
  assert_same(second, first, 3)
  assert [number for number, _ in told] == [1, 2, 3]
  assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob('*.npz')} == files
  assert second.members.tolist() == [1, 3]


@pytest.mark.parametrize(
  'other',
  [
    {'settings': SETTINGS | {'seed': 12}},
    {'settings': SETTINGS | {'learning_rate': 0.30000001}},
    {'members': [0, 1, 2]},
    {'start_round': 1, 'last': 3},
    {'start': 'other weights'},
  ],
  ids=str,
)
def test_who_asks_for_something_else_gets_another_artifact(other, trainer, tmp_path):
  go(trainer, tmp_path, 2)
  if 'start' in other:
    kernel, bias = trainer.computations.model.weights
    bias = bias.copy()
    bias[0] = np.nextafter(bias[0], np.float32(1))
    other = {'start': (kernel, bias)}
  outcome, _ = go(trainer, tmp_path, **({'last': 2} | other))
  assert outcome.client_rounds_trained == outcome.cost.client_rounds > 0
  assert len(artifacts(tmp_path)) == 2


def test_other_rows_of_a_member_give_another_artifact_and_those_of_a_stranger_do_not(trainer, tmp_path):
  population = trainer.population
  x = population.train.x.copy()
  x[population.train.offsets[3]] += 1
  changed = dataclasses.replace(population, train=dataclasses.replace(population.train, x=x))
  go(trainer, tmp_path, 1, members=[0, 1])
  trainer_of_changed = make_trainer(changed, cohort_fraction=0.5)
  outcome, _ = go(trainer_of_changed, tmp_path, 1, members=[0, 1])
  assert outcome.client_rounds_trained == 0
  go(trainer, tmp_path, 1, members=[0, 3])
  outcome, _ = go(trainer_of_changed, tmp_path, 1, members=[0, 3])
  assert outcome.client_rounds_trained == 1
  assert len(artifacts(tmp_path)) == 3


def test_rounds_are_numbered_from_where_they_start(trainer, five, tmp_path):
  outcome, told = go(trainer, tmp_path, 5, start=five[0].weights[3], start_round=3)
  assert outcome.history.rounds.tolist() == [4, 5] == [number for number, _ in told]
  assert_same_models(outcome.weights, five[0].weights, [5])
  np.testing.assert_array_equal(outcome.history.test_correct, five[0].history.test_correct[3:])


def test_who_starts_where_the_same_clients_have_been_goes_on_from_there(trainer, five, tmp_path):
  go(trainer, tmp_path, 4, keep=(3,))
  outcome, told = go(trainer, tmp_path, 5, keep=(4,), start=five[0].weights[3], start_round=3)
  assert len(artifacts(tmp_path)) == 1
  # Round 5 of two clients was missing; rounds 4 and 5 are what was asked for.
  assert (outcome.client_rounds_trained, outcome.cost.client_rounds) == (2, 2 * 2)
  assert [number for number, _ in told] == [4, 5] == outcome.history.rounds.tolist()
  assert [figures for _, figures in told] == [figures for _, figures in five[1][3:]]
  for field in dataclasses.fields(outcome.history):
    one, two = (getattr(o.history, field.name) for o in (outcome, five[0]))
    np.testing.assert_array_equal(one, two[3:], err_msg=field.name)
  assert set(outcome.weights) >= {3, 4, 5} and min(outcome.weights) == 3
  assert_same_models(outcome.weights, five[0].weights, (3, 4, 5))


@pytest.mark.parametrize(('members', 'round_before'), [([0, 1, 2], 3), (EVERYBODY, 2)])
def test_other_clients_and_other_rounds_go_a_way_of_their_own(members, round_before, trainer, five, tmp_path):
  go(trainer, tmp_path, 4, keep=(2, 3))
  go(trainer, tmp_path, 5, members=members, start=five[0].weights[3], start_round=round_before)
  assert len(artifacts(tmp_path)) == 2


ADAM = {'optimizer': 'adam', 'learning_rate': 0.05}


@pytest.mark.parametrize(
  ('options', 'remembers'),
  [
    ({'aggregator': 'clipping'}, True),
    ({'server': ADAM}, True),
    # Such a server has no memory, and clients remember nothing.
    ({'server': {'learning_rate': 0.5}, 'optimizer': 'momentum', 'learning_rate_decay': 0.5}, False),
  ],
  ids=str,
)
def test_a_server_that_remembers_earlier_rounds_does_not_go_on(options, remembers, tmp_path, tff_context):
  trainer, settings = (
    make_trainer(make_population(clients=4), 0.5, **options),
    SETTINGS | {'of': str(options)},
  )
  whole, _ = go(trainer, tmp_path, 5, keep=(3,), settings=settings)
  outcome, _ = go(trainer, tmp_path, 5, settings=settings, start=whole.weights[3], start_round=3)
  if not remembers:
    assert outcome.client_rounds_trained == 0 and len(artifacts(tmp_path)) == 1
    return
  assert outcome.client_rounds_trained == 2 * 2 and len(artifacts(tmp_path)) == 2
  # It starts as a cluster does: from the model alone.
  state = trainer.start(whole.weights[3])
  for number in (4, 5):
    state, _ = trainer.round(state, trainer.cohort(EVERYBODY, number), number)
  assert_same_models(outcome.weights, {5: trainer.weights(state)}, [5])
  if 'server' in options:
    assert any(np.any(a != b) for a, b in zip(outcome.weights[5], whole.weights[5], strict=True))


def test_a_server_that_remembers_goes_on_after_a_stop_with_the_same_bits(tmp_path, tff_context):
  def fresh():
    return make_trainer(make_population(clients=4), 0.5, server=ADAM, learning_rate_decay=0.9)

  whole, told = go(fresh(), tmp_path / 'whole', 4, keep=range(1, 5))
  with pytest.raises(Stopped):
    go(fresh(), tmp_path / 'stopped', 4, stop_at=2)
  outcome, again = go(fresh(), tmp_path / 'stopped', 4, keep=(3,))
  assert outcome.client_rounds_trained == 2 * 2 and again == told
  assert_same(outcome, whole, 4)
  (one,), (other,) = (artifacts(tmp_path / name) for name in ('whole', 'stopped'))
  arrays = [saved_rounds.state(files_lib.load_arrays(folder / 'round_00004.npz')) for folder in (one, other)]
  assert [a.tobytes() for a in arrays[0]] == [a.tobytes() for a in arrays[1]]
  assert len(arrays[0]) > 3 * len(whole.weights[0])  # Model, mean and square of the updates, and constants.


def damage(path):
  content = bytearray(path.read_bytes())
  middle = len(content) // 2
  # Longer than what the zip format does not read.
  content[middle : middle + 200] = bytes(byte ^ 1 for byte in content[middle : middle + 200])
  path.write_bytes(content)


@pytest.mark.parametrize(('kept', 'costs'), [((), 5 * 2), ((2,), 3 * 2)])
def test_a_damaged_file_is_named_set_aside_and_its_rounds_are_the_same_bits_again(
  kept, costs, trainer, five, tmp_path, caplog
):
  go(trainer, tmp_path, 5, keep=kept)
  (artifact,) = artifacts(tmp_path)
  newest = artifact / 'round_00005.npz'
  damage(newest)
  with caplog.at_level(logging.WARNING):
    outcome, _ = go(trainer, tmp_path, 5, keep=kept)
  assert str(newest) in caplog.text and 'damaged' in caplog.text
  assert outcome.client_rounds_trained == costs
  assert_same(outcome, five[0], 5)
  assert (artifact / 'round_00005.npz.damaged').exists()
  assert go(trainer, tmp_path, 5, keep=kept)[0].client_rounds_trained == 0


def test_the_artifact_says_what_determines_it(trainer, tmp_path):
  go(trainer, tmp_path, 1, members=[0, 2])
  (artifact,) = artifacts(tmp_path)
  determinants = json.loads((artifact / 'determinants.json').read_text())
  digests = trainer.population.client_digests
  assert determinants['clients'] == [digests[0], digests[2]]
  assert determinants['settings'] == SETTINGS and determinants['start_round'] == 0


def test_update_norms_are_the_distances_of_successive_models(five):
  outcome, told = five
  for number in range(1, 6):
    pairs = zip(outcome.weights[number], outcome.weights[number - 1], strict=True)
    moved = np.concatenate([np.ravel(new.astype(np.float64) - old) for new, old in pairs])
    assert outcome.history.update_norm[number - 1] == pytest.approx(np.linalg.norm(moved), rel=1e-9)
    assert np.any(moved != 0)
    assert told[number - 1][1]['update_norm'] == outcome.history.update_norm[number - 1]


@pytest.mark.parametrize('stored', [0, 2, 3, 5])
def test_a_trajectory_stops_where_it_is_told_to(stored, trainer, five, tmp_path):
  # Whatever the store has: nothing, rounds before the stop, the stop itself, or later rounds.
  if stored:
    go(trainer, tmp_path, stored)
  asked = []

  def stop(number, norm):
    asked.append((number, norm))
    return number >= 3

  outcome, told = go(trainer, tmp_path, 5, stop=stop)
  assert outcome.history.rounds.tolist() == [1, 2, 3] == [number for number, _ in told]
  assert sorted(outcome.weights) == [0, 2, 3]
  assert_same(outcome, five[0], 3)
  assert outcome.cost.client_rounds == 3 * 2
  assert asked[-1] == (3, five[0].history.update_norm[2]) or stored == 5
  # The models are kept, so that the same question costs nothing, and the trajectory can be gone on with.
  again, _ = go(trainer, tmp_path, 5, stop=stop)
  assert again.client_rounds_trained == 0 and sorted(again.weights) == [0, 2, 3]
  whole, _ = go(trainer, tmp_path, 5)
  assert_same(whole, five[0], 5)


def test_a_trajectory_that_is_never_told_to_stop_goes_to_the_end(trainer, five, tmp_path):
  outcome, _ = go(trainer, tmp_path, 5, stop=lambda number, norm: False)
  assert_same(outcome, five[0], 5)
  outcome, _ = go(trainer, tmp_path / 'other', 5, stop=lambda number, norm: True)
  assert outcome.history.rounds.tolist() == [1] and sorted(outcome.weights) == [0, 1]


def test_what_lacks_a_column_is_trained_again(trainer, five, tmp_path):
  go(trainer, tmp_path, 5)
  (artifact,) = artifacts(tmp_path)
  (path,) = artifact.glob('*.npz')
  record = files_lib.load_arrays(path)
  files_lib.save_arrays(path, {name: array for name, array in record.items() if name != 'update_norm'})
  outcome, _ = go(trainer, tmp_path, 5)
  assert outcome.client_rounds_trained == 5 * 2
  assert_same(outcome, five[0], 5)


def test_what_a_kill_left_of_a_round_is_removed_by_the_next_run(trainer, five, tmp_path):
  with pytest.raises(Stopped):
    go(trainer, tmp_path, 5, stop_at=3)
  (artifact,) = artifacts(tmp_path)
  # Killed between writing round 3 and removing round 2, and while round 4 was written.
  shutil.copy(artifact / 'latest_00003.npz', artifact / 'latest_00002.npz')
  (artifact / '.tff_cluster-0123456789abcdef-latest_00004.npz').write_bytes(b'half')
  outcome, _ = go(trainer, tmp_path, 3)
  assert sorted(path.name for path in artifact.iterdir()) == ['determinants.json', 'round_00003.npz']
  assert_same(outcome, five[0], 3)


def test_kept_rounds_are_read_while_another_run_trains_later_ones(trainer, five, tmp_path):
  go(trainer, tmp_path, 3, keep=[2])
  (artifact,) = artifacts(tmp_path)
  another = os.open(artifact, os.O_RDONLY)
  fcntl.flock(another, fcntl.LOCK_EX)
  # So that who waits for the other run fails here, and does not wait for ever.
  letting_go = threading.Timer(30, os.close, [another])
  letting_go.start()
  with files_lib.replacing(artifact / 'round_00004.npz'):
    (being_written,) = artifact.glob('.*')
    outcome, told = go(trainer, tmp_path, 2)
    assert being_written.exists()
  assert letting_go.is_alive()
  letting_go.cancel()
  os.close(another)
  assert outcome.client_rounds_trained == 0
  assert [number for number, _ in told] == [1, 2]
  assert_same(outcome, five[0], 2)


def test_who_finds_kept_rounds_sweeps_what_a_killed_run_left_beside_them(trainer, tmp_path):
  go(trainer, tmp_path, 2)
  (artifact,) = artifacts(tmp_path)
  (artifact / '.tff_cluster-0123456789abcdef-latest_00003.npz').touch()
  shutil.copy(artifact / 'round_00002.npz', artifact / 'latest_00001.npz')
  go(trainer, tmp_path, 2)
  assert sorted(path.name for path in artifact.iterdir()) == ['determinants.json', 'round_00002.npz']


def test_a_round_in_which_everybody_diverged_is_refused_wherever_it_comes_from(tmp_path, tff_context):
  from tff_cluster.base.errors import InputError
  from tff_cluster.federated import trajectory

  population = make_population(clients=2)
  population.train.x[:] *= 1e30
  own = make_trainer(population)

  def asked(may_diverge):
    store = artifacts_lib.Store(tmp_path)
    start = own.computations.model.weights
    return trajectory.Trajectory(own, store, SETTINGS, np.arange(2), start, 0, may_diverge=may_diverge)

  # That of a client alone, say, which a cluster of one client has in the store.
  outcome = trajectory.run(asked(True), 2, (), lambda *_: None)
  assert outcome.history.dropped.tolist() == [2, 2]
  with pytest.raises(InputError, match='round 1: training diverged on every client'):
    trajectory.run(asked(False), 2, (), lambda *_: None)


def in_cohorts_of_one(tmp_path, sick, clients=7, rounds=12):
  """Returns a trajectory with one client a round, some of whom diverge, and whom the rounds draw."""
  population = make_population(clients=clients)
  for k in sick:
    first, last = population.train.offsets[k : k + 2]
    population.train.x[first:last] = np.inf
  own, members = make_trainer(population, cohort_fraction=1 / clients), np.arange(clients)
  from tff_cluster.federated import trajectory

  start = own.computations.model.weights
  asked = trajectory.Trajectory(own, artifacts_lib.Store(tmp_path), SETTINGS, members, start, 0)
  return asked, [int(asked.cohort(number)[0]) for number in range(1, rounds + 1)]


def test_clients_that_diverge_where_they_are_drawn_alone_end_nothing(tmp_path, tff_context):
  from tff_cluster.federated import trajectory

  _, drawn = in_cohorts_of_one(tmp_path, ())
  asked, _ = in_cohorts_of_one(tmp_path, sick := {drawn[0], drawn[3]})
  assert len(set(drawn) - sick) >= 3
  outcome = trajectory.run(asked, 12, range(1, 13), lambda *_: None)
  assert outcome.history.dropped.tolist() == [int(k in sick) for k in drawn]
  for number, k in enumerate(drawn[1:], 2):
    same = all(map(np.array_equal, outcome.weights[number], outcome.weights[number - 1]))
    assert same == (k in sick), number


def test_a_training_that_diverges_is_refused_after_five_clients_and_again_when_it_is_asked_for_again(
  tmp_path, tff_context
):
  from tff_cluster.base.errors import InputError
  from tff_cluster.federated import trajectory

  asked, drawn = in_cohorts_of_one(tmp_path, range(7))
  fifth = next(number for number in range(1, 13) if len(set(drawn[:number])) == 5)
  for _ in range(2):
    with pytest.raises(InputError, match=f'^round {fifth}: training diverged on every client'):
      trajectory.run(asked, 12, (), lambda *_: None)


def test_a_latest_round_that_another_run_tidies_away_is_kept_all_the_same(tmp_path, monkeypatch):
  record = dict.fromkeys(saved_rounds.COLUMNS, np.ones((3, 2)))
  files_lib.save_arrays(tmp_path / 'latest_00003.npz', record)
  rename = os.rename

  def tidied(self, target):
    self.unlink(missing_ok=True)
    return rename(self, target)

  monkeypatch.setattr(pathlib.Path, 'rename', tidied)
  assert saved_rounds.keep(tmp_path, 3) is not None
  monkeypatch.undo()
  assert [path.name for path in tmp_path.iterdir()] == ['round_00003.npz']
  assert saved_rounds.load_kept(tmp_path, [3]) is not None


def test_what_a_result_names_is_loaded_without_a_round(trainer, five, tmp_path, monkeypatch):
  outcome, _ = go(trainer, tmp_path, 5, keep=(2,))
  monkeypatch.setattr(type(trainer), 'round', None)
  named = outcome.checkpoints
  assert (named.start_round, named.rounds) == (0, (2, 5))
  loaded = saved_rounds.load(artifacts_lib.Store(tmp_path), named, outcome.weights[0], 'run it')
  assert sorted(loaded) == [2, 5]
  assert_same_models(loaded, five[0].weights, loaded)


def test_a_round_that_was_the_latest_stays_once_a_result_names_it(trainer, tmp_path):
  with pytest.raises(Stopped):
    go(trainer, tmp_path, 5, stop_at=3)
  outcome, _ = go(trainer, tmp_path, 3)
  go(trainer, tmp_path, 5)
  named = outcome.checkpoints
  assert named.rounds == (3,)
  assert saved_rounds.load(artifacts_lib.Store(tmp_path), named, outcome.weights[0], 'run it').keys() == {3}
