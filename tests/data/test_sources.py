"""Sources that need no TensorFlow, and how the others fail."""

import pathlib
import sqlite3
import urllib.error
import urllib.request

import numpy as np
import pytest
from sklearn import datasets

from tff_cluster.base import seeding
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.data import downloads, emnist, populate, scaling, sources, tff_database
from tff_cluster.data.source import Source, hold_out
from tff_cluster.experiment import config
from tff_cluster.experiment.config import DataConfig

DATABASE = tff_database.Database('emnist', 'emnist_all.sqlite')


def test_digits_are_scikit_learns_scaled():
  source = sources.load(DataConfig())
  small, labels = datasets.load_digits(return_X_y=True)
  np.testing.assert_array_equal(source.train_y, labels)
  assert source.train_x.shape == (1797, 28, 28, 1) and source.train_x.dtype == np.uint8
  np.testing.assert_array_equal(
    source.train_x, scaling.to_mnist_size(small.reshape(-1, 8, 8).astype(int), 16)
  )


@pytest.mark.parametrize('malicious', [0.0, 0.3])
@pytest.mark.parametrize('grouped', [True, False])
@pytest.mark.parametrize('partition', config.PARTITIONS)
def test_what_is_planted_is_what_the_population_has(partition, grouped, malicious, tmp_path):
  rows = np.arange(240)
  group = {'group': rows // 120} if grouped else {}
  np.savez(tmp_path / 'rows.npz', x=np.ones((240, 4, 4, 1)), y=rows % 4, client_id=rows // 40, **group)
  over = 'group' if grouped and partition == 'dirichlet' else 'label'
  data = DataConfig(
    'file', data_file=str(tmp_path / 'rows.npz'), partition=partition, num_clients=6, num_groups=2,
    dirichlet_over=over, malicious_clients=malicious,
  )  # fmt: skip
  assert sources.planted(data) == tuple(populate.build_population(data).truths)


def _source(labels, owners=None):
  labels = np.asarray(labels, np.int32)
  x = np.arange(len(labels), dtype=np.float32)[:, None]
  return Source('made up', x, labels, int(labels.max()) + 1, train_owner=owners)


def test_hold_out_keeps_label_shares_and_loses_no_row():
  source = _source(np.repeat([0, 1, 2], [100, 50, 10]))
  held = hold_out(source, 0.2, False, seeding.generator(0, 'test'))
  np.testing.assert_array_equal(np.bincount(held.test_y), [20, 10, 2])
  rows = np.concatenate([held.train_x, held.test_x])[:, 0]
  np.testing.assert_array_equal(np.sort(rows), np.arange(160))
  np.testing.assert_array_equal(held.test_y, source.train_y[held.test_x[:, 0].astype(int)])
  again, other = (hold_out(source, 0.2, False, seeding.generator(seed, 'test')).test_x for seed in (0, 1))
  np.testing.assert_array_equal(again, held.test_x)
  assert not np.array_equal(other, held.test_x)


def test_hold_out_by_owner_takes_rows_of_every_owner_and_too_few_rows_are_refused():
  owners = np.repeat(['a', 'b', 'c'], [3, 20, 40])
  held = hold_out(_source(np.arange(63) % 2, owners), 0.1, True, seeding.generator(0, 'test'))
  ids, counts = np.unique(held.test_owner, return_counts=True)
  assert dict(zip(ids, counts, strict=True)) == {'a': 1, 'b': 2, 'c': 4}
  np.testing.assert_array_equal(owners[held.test_x[:, 0].astype(int)], held.test_owner)
  with pytest.raises(InputError, match='test_fraction'):
    hold_out(_source([0, 0]), 0.2, False, seeding.generator(0, 'test'))


def test_pixels_become_bytes_only_without_loss():
  exact = (np.arange(256, dtype=np.float32) / np.float32(255)).reshape(4, 64)
  assert emnist.as_bytes(exact).dtype == np.uint8
  np.testing.assert_array_equal(emnist.as_bytes(exact).ravel(), np.arange(256))
  np.testing.assert_array_equal(emnist.inverted(emnist.as_bytes(exact)).ravel(), np.arange(256)[::-1])
  np.testing.assert_array_equal(emnist.inverted(np.array([0.0, 0.25, 1.0], np.float32)), [1.0, 0.75, 0.0])
  for value in (0.5, -1 / 255, 256 / 255, np.nextafter(np.float32(3 / 255), np.float32(1))):
    inexact = exact.copy()
    inexact[2, 5] = value
    np.testing.assert_array_equal(emnist.as_bytes(inexact), inexact)


def test_unreachable_tells_hosts_that_answer_from_those_that_do_not(no_network, monkeypatch):
  address = 'https://example.org/x'
  assert downloads.unreachable(address) == 'no connection to example.org: Name or service not known'

  def answers(*_, **__):
    raise urllib.error.HTTPError(address, 403, 'forbidden', None, None)

  monkeypatch.setattr(urllib.request, 'urlopen', answers)
  assert downloads.unreachable(address) is None


@pytest.mark.tensorflow
@pytest.mark.parametrize(
  'dataset, looked_for',
  [('cifar10', 'cifar10/3.0.2'), ('emnist', 'emnist_all.sqlite'), ('shakespeare', 'shakespeare.sqlite')],
)
def test_offline_is_one_line_with_the_file_and_the_remedy(no_network, tmp_path, dataset, looked_for):
  with pytest.raises(EnvironmentFault) as caught:
    sources.load(DataConfig(dataset=dataset, data_dir=str(tmp_path)))
  message = str(caught.value)
  assert '\n' not in message
  assert f'{tmp_path}/{looked_for}' in message
  assert 'python -c' in message and 'data_dir' in message
  assert list(tmp_path.iterdir()) == []


@pytest.mark.tensorflow
def test_characters_of_shakespeare_say_what_tff_says_they_say(monkeypatch, tmp_path):
  import tensorflow_federated as tff

  official = tff.simulation.datasets.shakespeare
  made_up = official.get_synthetic()
  monkeypatch.setattr(official, 'load_data', lambda cache_dir: (made_up, made_up))
  with sqlite3.connect(tmp_path / 'shakespeare.sqlite') as connection:
    connection.execute('CREATE TABLE examples (split_name)')
  config = DataConfig(dataset='shakespeare', data_dir=str(tmp_path), text_window=5, text_classes=128)
  assert sources.check(config) is None
  source = sources.load(config)
  cupid = 'Hail to thee, worthy Timon, and to all'
  mine = source.train_owner == 'THE_TAMING_OF_THE_SHREW_CUPID'
  assert mine.sum() == 7 == len(range(0, len(cupid) - 5, 5))
  # Equal codes where Cupid's letters are equal, and nowhere else.
  letters = np.array([list(cupid[i : i + 6]) for i in range(0, len(cupid) - 5, 5)])
  codes = np.concatenate([source.train_x[mine], source.train_y[mine, None]], axis=1)
  np.testing.assert_array_equal(
    codes.ravel() == codes.ravel()[:, None], letters.ravel() == letters.ravel()[:, None]
  )
  np.testing.assert_array_equal(source.test_x, source.train_x)


def test_a_download_removes_what_a_killed_one_left_and_not_what_another_is_at(monkeypatch, tmp_path):
  monkeypatch.setattr(downloads, 'unreachable', lambda url: None)
  killed, holds_more, elses = (
    tmp_path / name
    for name in ('.tff_cluster-download-abc_1234', '.tff_cluster-download-thesis00', '.download-2024')
  )
  for folder in (killed, holds_more, elses):
    folder.mkdir()
    (folder / 'emnist_all.sqlite').write_bytes(b'x')
  (holds_more / 'thesis.tex').write_bytes(b'x')
  kept = {holds_more.name, elses.name}

  def slow(cache_dir):
    seen.append({path.name for path in tmp_path.iterdir()})
    if len(seen) == 1:
      with pytest.raises(EnvironmentFault, match='cut off'):
        DATABASE.download(slow, str(tmp_path))  # Another program, at the same time.
      seen.append({path.name for path in tmp_path.iterdir()})
    raise OSError('cut off')

  seen = []
  with pytest.raises(EnvironmentFault, match='cut off'):
    DATABASE.download(slow, str(tmp_path))
  first, both, after = seen
  assert len(first - kept) == 1 and killed.name not in first
  assert first < both and after == first
  assert {path.name for path in tmp_path.iterdir()} == kept
  assert all((tmp_path / name / 'emnist_all.sqlite').exists() for name in kept)
  assert (holds_more / 'thesis.tex').exists()


def test_a_broken_download_leaves_no_database_behind(monkeypatch, tmp_path):
  monkeypatch.setattr(downloads, 'unreachable', lambda url: None)

  def breaks_off(cache_dir):
    (pathlib.Path(cache_dir) / 'emnist_all.sqlite').write_bytes(b'SQLite format 3\0')
    raise ConnectionResetError('connection\nreset')

  with pytest.raises(EnvironmentFault, match='connection reset'):
    DATABASE.download(breaks_off, str(tmp_path))
  assert list(tmp_path.iterdir()) == []


def test_a_cut_off_database_is_recognised(tmp_path):
  whole = tmp_path / 'emnist_all.sqlite'
  connection = sqlite3.connect(whole)
  connection.execute('CREATE TABLE examples (split_name, client_id, serialized_example_proto)')
  connection.execute('INSERT INTO examples VALUES (?, ?, ?)', ('a', 'b', bytes(20000)))
  connection.commit()
  connection.close()
  DATABASE.check_whole(str(whole))
  content = whole.read_bytes()
  for length in (0, 50, 4096, len(content) - 1):
    whole.write_bytes(content[:length])
    with pytest.raises(EnvironmentFault, match='damaged'):
      DATABASE.check_whole(str(whole))


@pytest.mark.tensorflow
def test_a_damaged_tfds_folder_is_one_line(tmp_path):
  folder = tmp_path / 'mnist' / '3.0.1'
  folder.mkdir(parents=True)
  (folder / 'dataset_info.json').write_text('{')
  with pytest.raises(EnvironmentFault, match='delete its folder mnist'):
    sources.load(DataConfig(dataset='mnist', data_dir=str(tmp_path)))
