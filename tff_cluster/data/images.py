"""MNIST and CIFAR-10 through TensorFlow Datasets."""

import os
import pathlib
from typing import Any

import numpy as np

from tff_cluster.base.errors import EnvironmentFault, argument
from tff_cluster.data import downloads
from tff_cluster.data.source import Source

# Each set and an address that its library downloads from.
DATASETS = {
  'mnist': 'https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz',
  'cifar10': 'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz',
}
_BATCH = 1000


def load_images(name: str, data_dir: str | None) -> Source:
  """Loads a set of labelled images whole, downloading it where it is not cached.

  Args:
    name: 'mnist' (uint8[60000 and 10000, 28, 28, 1]) or 'cifar10' (uint8[50000 and 10000, 32, 32, 3]).
    data_dir: Folder of TFDS, or a folder that holds one called `tfds`; None: its default.

  Raises:
    EnvironmentFault: if the set is neither there nor can be downloaded, or is damaged.
  """
  folder = downloads.subfolder(data_dir, 'tfds')
  with downloads.quiet():
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    try:
      builder = tfds.builder(name, data_dir=folder)
    except Exception as error:
      # It parses a cached description here, with errors of many kinds (protobuf, JSON, its own).
      raise EnvironmentFault(
        f'{name} in {folder or "the folder of TFDS"} cannot be read ({downloads.one_line(error)}); '
        f'delete its folder {name} and run again to download it anew'
      ) from error
    if not (pathlib.Path(builder.data_dir) / 'dataset_info.json').is_file():
      _download(builder, name)
    try:
      train_x, train_y = _read(builder, 'train')
      test_x, test_y = _read(builder, 'test')
    except Exception as error:
      # TFDS meets a damaged cache with errors of many kinds (TensorFlow, protobuf, its own).
      raise EnvironmentFault(
        f'{name} in {builder.data_dir} cannot be read ({downloads.one_line(error)}); '
        'delete that folder and run again to download it anew'
      ) from error
  return Source(name, train_x, train_y, builder.info.features['label'].num_classes, test_x, test_y)


def check(name: str, data_dir: str | None) -> None:
  """Tells, without importing anything slow, that a set is neither there nor can be downloaded.

  Args:
    name, data_dir: See load_images.

  Raises:
    EnvironmentFault: if so.
  """
  default = os.environ.get('TFDS_DATA_DIR', '~/tensorflow_datasets')
  root = pathlib.Path(downloads.subfolder(data_dir, 'tfds') or os.path.expanduser(default))
  if not any((root / name).glob('*/dataset_info.json')) and (reason := downloads.unreachable(DATASETS[name])):
    raise _missing(name, root, '*', reason)


def _read(builder: Any, split: str) -> tuple[np.ndarray, np.ndarray]:
  import tensorflow_datasets as tfds

  dataset = builder.as_dataset(
    split=split, batch_size=_BATCH, shuffle_files=False, read_config=tfds.ReadConfig(try_autocache=False)
  )
  rows = builder.info.splits[split].num_examples
  x = np.empty((rows, *builder.info.features['image'].shape), np.uint8)
  y = np.empty(rows, np.int32)
  start = 0
  for batch in tfds.as_numpy(dataset):
    stop = start + len(batch['label'])
    x[start:stop], y[start:stop] = batch['image'], batch['label']
    start = stop
  if start != rows:
    raise ValueError(f'{split} has {start} rows, expected {rows}')
  return x, y


def _download(builder: Any, name: str) -> None:
  folder = pathlib.Path(builder.data_dir)
  root = folder.parents[1]
  reason = downloads.unreachable(DATASETS[name]) or downloads.writable_fault(root)
  if reason is None:
    try:
      with downloads.downloading():
        builder.download_and_prepare()
      return
    except Exception as error:
      # Network, disk and checksum errors come from several libraries, and mean the same to the user.
      reason = downloads.one_line(error)
  raise _missing(name, root, folder.name, reason)


def _missing(name: str, root: pathlib.Path, version: str, reason: str) -> EnvironmentFault:
  return EnvironmentFault(
    f'{name}: {root}/{name}/{version}/dataset_info.json does not exist, and downloading failed ({reason}); where there is a '
    f'network run python -c "import tensorflow_datasets as tfds; tfds.load({name!r}, data_dir={str(root)!r})", or give '
    f'the folder that holds {name}/{version} as {argument("data_dir")}'
  )
