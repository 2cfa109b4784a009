"""Federated EMNIST, kept by writer, through tff.simulation.datasets.emnist.

Pixels are float32 in [0, 1] with background 1.0, upright; with light ink they are 1 less these. Those that are whole 255ths
(LEAF's are) are kept as uint8, which is a quarter of the memory: dividing by float32 255 gives the very same numbers back.
"""

import contextlib
import os
import sqlite3
import urllib.parse
from typing import Any

import numpy as np

from tff_cluster.data import downloads, tff_database
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.partition import choose_writers
from tff_cluster.data.source import Source

_DATABASE = tff_database.Database('emnist', 'emnist_all.sqlite')
_BATCH = 4096


def load_emnist(config: DataConfig) -> Source:
  """Loads the writers that the configuration asks for: those drawn for by_writer, else all.

  Returns:
    x [rows, 28, 28, 1], writer after writer in the order of their ids; the owner is the writer's id.

  Raises:
    InputError: if fewer writers qualify than are asked for.
    EnvironmentFault: if the database is neither cached nor can be downloaded, or is damaged.
  """
  path = _DATABASE.path(config.data_dir)
  folder = os.path.dirname(path)
  with downloads.quiet():
    import tensorflow_federated as tff

    official = tff.simulation.datasets.emnist.load_data
    if not os.path.isfile(path):
      _DATABASE.download(official, folder)
    counts = _counts(path, config)
    with tff_database.reading(path):
      clients = official(only_digits=config.emnist_classes == 10, cache_dir=folder)
  chosen = _choose(config, *counts)
  with downloads.quiet():
    parts = []
    for data, count in zip(clients, counts, strict=True):
      with tff_database.reading(path):
        parts.append(_read(data, chosen, sum(count[writer] for writer in chosen)))
  (train_x, train_y, train_owner), (test_x, test_y, test_owner) = parts
  if train_x.dtype != test_x.dtype:
    train_x, test_x = _as_float(train_x), _as_float(test_x)
  if config.emnist_ink == 'light':
    train_x, test_x = inverted(train_x), inverted(test_x)
  ids = np.array(chosen)
  return Source(
    'emnist', train_x, train_y, config.emnist_classes, test_x, test_y, ids[train_owner], ids[test_owner]
  )  # fmt: skip


def check(config: DataConfig) -> int | None:
  """Tells, without importing anything slow, whether the writers that are asked for are there.

  Returns:
    How many rows will be read; None where the database has to be downloaded first.

  Raises:
    InputError, EnvironmentFault: see load_emnist.
  """
  path = _DATABASE.path(config.data_dir)
  if not _DATABASE.check(path):
    return None
  counts = _counts(path, config)
  chosen = _choose(config, *counts)
  return sum(count[writer] for count in counts for writer in chosen)


def _choose(config: DataConfig, train: dict[str, int], test: dict[str, int]) -> list[str]:
  if config.partition != 'by_writer':
    return sorted(set(train) & set(test))
  return choose_writers(config, train, test)


def _counts(path: str, config: DataConfig) -> tuple[dict[str, int], dict[str, int]]:
  """Returns the numbers of training and of test examples by writer. EnvironmentFault where the database is damaged."""
  _DATABASE.check_whole(path)
  kind = 'digits_only' if config.emnist_classes == 10 else 'all'
  try:
    return _counts_of(path, f'{kind}_train'), _counts_of(path, f'{kind}_test')
  except sqlite3.Error as error:
    raise tff_database.damaged(path, error) from error


def _counts_of(path: str, split: str) -> dict[str, int]:
  """Numbers of examples by writer, from the database's own table, so that no image is decoded."""
  query = 'SELECT client_id, num_examples FROM client_metadata WHERE split_name = ?'
  with contextlib.closing(
    sqlite3.connect(f'file:{urllib.parse.quote(path)}?mode=ro', uri=True)
  ) as connection:
    return dict(connection.execute(query, (split,)))


def _read(data: Any, writers: list[str], rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Reads all rows of the writers in one pass: x, y int32[rows], and each row's position in `writers`."""
  import tensorflow as tf

  examples_of = data.serializable_dataset_fn

  def with_position(position, writer):
    return examples_of(writer).map(lambda row: (row['pixels'], row['label'], position))

  dataset = (
    tf.data.Dataset.from_tensor_slices((np.arange(len(writers), dtype=np.int32), writers))
    .interleave(with_position, cycle_length=16, block_length=512, num_parallel_calls=4, deterministic=True)
    .batch(_BATCH)
  )
  pixels, labels, positions = [], [], []
  for x, y, position in dataset.as_numpy_iterator():
    pixels.append(as_bytes(x))
    labels.append(y)
    positions.append(position)
  if any(x.dtype != np.uint8 for x in pixels):
    pixels = [_as_float(x) for x in pixels]
  owner = np.concatenate(positions)
  if len(owner) != rows:
    raise ValueError(f'{len(owner)} examples found, {rows} expected')
  order = np.argsort(owner, kind='stable')
  return (
    np.concatenate(pixels)[order][..., None],
    np.concatenate(labels).astype(np.int32)[order],
    owner[order],
  )


def as_bytes(pixels: np.ndarray) -> np.ndarray:
  """Returns float32 pixels as uint8 where that loses nothing (all are k / 255), else as they are."""
  bytes_ = np.rint(pixels * np.float32(255)).clip(0, 255).astype(np.uint8)
  return bytes_ if np.array_equal(_as_float(bytes_), pixels) else pixels


def inverted(pixels: np.ndarray) -> np.ndarray:
  """Returns pixels with black for white and white for black: 255 less those of uint8, 1 less those of float32."""
  return np.array(255 if pixels.dtype == np.uint8 else 1, pixels.dtype) - pixels


def _as_float(pixels: np.ndarray) -> np.ndarray:
  return pixels.astype(np.float32) / np.float32(255) if pixels.dtype == np.uint8 else pixels
