"""Sets of labelled images of TensorFlow Datasets, read whole."""

import json
import math
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tff_cluster.base.errors import EnvironmentFault, InputError, argument
from tff_cluster.data import downloads
from tff_cluster.data.dataset import Outline
from tff_cluster.data.source import Source

# Where a set is downloaded from, as far as it is known; of others it is asked whether there is a network at all.
_URLS = {
  'mnist': 'https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz',
  'cifar10': 'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz',
}
_OTHERS = 'https://storage.googleapis.com/tfds-data'
_BATCH = 1000
_TYPES = {'uint8': np.uint8, 'float32': np.float32}


def load(name: str, data_dir: str | None, called: str | None = None) -> Source:
  """Loads a set whole, downloading it where it is not cached.

  Args:
    name: As TFDS has it, for instance 'mnist' or 'emnist/letters'.
    data_dir: Folder of TFDS, or a folder that holds one called `tfds`; None: its default.
    called: What `dataset` called it; None: its name.

  Returns:
    x uint8 or float32 [rows, height, width, channels], without test rows where it has no split `test`.

  Raises:
    InputError: if TFDS has no such set, or it is not one of labelled images of one size.
    EnvironmentFault: if it is neither there nor can be downloaded, or is damaged.
  """
  called, folder = called or name, downloads.subfolder(data_dir, 'tfds')
  with downloads.quiet():
    import tensorflow_datasets as tfds
    from google.protobuf import json_format  # type: ignore[import-untyped]

    tfds.disable_progress_bar()
    try:
      builder = tfds.builder(name, data_dir=folder)
    except tfds.core.DatasetNotFoundError as error:
      raise InputError(
        f'{argument("dataset", called)}: TensorFlow Datasets knows no set {name!r}, and none is in {folder or "its folder"}'
      ) from error
    except Exception as error:
      # It parses a cached description here, with errors of many kinds (protobuf, JSON, its own).
      raise EnvironmentFault(
        f'{name} in {folder or "the folder of TFDS"} cannot be read ({downloads.one_line(error)}); '
        f'delete its folder {name} and run again to download it anew'
      ) from error
    # Before it is downloaded, which can take hours.
    shape, dtype, num_classes = _features(json_format.MessageToDict(builder.info.features.to_proto()), called)
    if not (pathlib.Path(builder.data_dir) / 'dataset_info.json').is_file():
      _download(builder, name)
    try:
      parts = {
        split: _read(builder, split, shape, dtype)
        for split in ('train', 'test')
        if split in builder.info.splits
      }
    except MemoryError as error:
      raise EnvironmentFault(f'{name} in {builder.data_dir} does not fit into memory') from error
    except Exception as error:
      # TFDS meets a damaged cache with errors of many kinds (TensorFlow, protobuf, its own).
      raise EnvironmentFault(
        f'{name} in {builder.data_dir} cannot be read ({downloads.one_line(error)}); '
        'delete that folder and run again to download it anew'
      ) from error
  _check_splits(list(builder.info.splits), called)
  for split, (_, labels) in parts.items():
    if labels.min(initial=0) < 0:
      raise InputError(
        f'{argument("dataset", called)}: rows of its split {split} have no label; take another data set'
      )
  test_x, test_y = parts.get('test', (None, None))
  return Source(name, *parts['train'], num_classes, test_x, test_y)


def check(name: str, data_dir: str | None, called: str | None = None) -> tuple[Outline, bool] | None:
  """Finds out, without importing anything slow, what is known of a set.

  Args:
    name, data_dir, called: See load.

  Returns:
    Its size, and whether it has a split `test`; None where it is not there yet, or only TFDS can tell which of several it is.

  Raises:
    InputError: if it is not one of labelled images of one size.
    EnvironmentFault: if it is neither there nor can be downloaded.
  """
  default = os.environ.get('TFDS_DATA_DIR', '~/tensorflow_datasets')
  root = pathlib.Path(downloads.subfolder(data_dir, 'tfds') or os.path.expanduser(default))
  plain, _, version = name.partition(':')
  found = sorted(root.glob(f'{plain}/{version or "*"}/dataset_info.json'))
  if not found and '/' not in plain and any(root.glob(f'{plain}/*/*/dataset_info.json')):
    return None  # One of its configurations.
  if not found:
    if reason := downloads.unreachable(_URLS.get(name, _OTHERS)):
      raise _missing(name, root / plain / (version or '*'), root, reason)
    return None
  try:
    info = json.loads(found[-1].read_text())
    features = json.loads(found[-1].with_name('features.json').read_text())
    rows = {split['name']: sum(map(int, split['shardLengths'])) for split in info['splits']}
  except (OSError, ValueError, KeyError, TypeError, AttributeError):
    return None  # TFDS says what is wrong with it.
  shape, dtype, num_classes = _features(features, called or name)
  _check_splits(list(rows), called or name)
  row_bytes = math.prod(shape) * np.dtype(dtype).itemsize
  return Outline(rows['train'] + rows.get('test', 0), shape, row_bytes, num_classes), 'test' in rows


def _features(described: Mapping[str, Any], called: str) -> tuple[tuple[int, ...], type, int]:
  """Returns an image's shape and type, and the number of classes, from what TFDS keeps in features.json."""
  features = described.get('featuresDict', {}).get('features', {})
  for name, kind, words in (('image', 'image', 'an image'), ('label', 'classLabel', 'a class label')):
    if kind not in features.get(name, {}):
      raise InputError(
        f'{argument("dataset", called)}: it has no feature {name!r} that is {words}; its features are {", ".join(sorted(features)) or "unnamed"}; only '
        'sets of labelled images can be clients’ rows'
      )
  image = features['image']['image']
  shape = tuple(int(side) for side in image.get('shape', {}).get('dimensions', ()))
  if len(shape) != 3 or min(shape) < 1:
    told = ' x '.join(str(side) if side > 0 else 'any' for side in shape) or 'unknown'
    raise InputError(
      f'{argument("dataset", called)}: its images are of no one size ({told}); a model takes one size'
    )
  dtype = image.get('dtype', 'uint8')
  if dtype not in _TYPES:
    raise InputError(
      f'{argument("dataset", called)}: its images are of type {dtype}; allowed are {" and ".join(_TYPES)}'
    )
  num_classes = int(features['label']['classLabel'].get('numClasses', 0))
  if num_classes < 1:
    raise InputError(f'{argument("dataset", called)}: it does not say how many classes its labels have')
  return shape, _TYPES[dtype], num_classes


def _check_splits(splits: list[str], called: str) -> None:
  if 'train' not in splits:
    raise InputError(
      f'{argument("dataset", called)}: it has no split train, but {", ".join(splits) or "none"}'
    )


def _read(builder: Any, split: str, shape: tuple[int, ...], dtype: type) -> tuple[np.ndarray, np.ndarray]:
  import tensorflow_datasets as tfds

  dataset = builder.as_dataset(
    split=split, batch_size=_BATCH, shuffle_files=False, read_config=tfds.ReadConfig(try_autocache=False)
  )
  rows = builder.info.splits[split].num_examples
  x: np.ndarray = np.empty((rows, *shape), dtype)
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
  root = folder.parents[builder.info.full_name.count('/')]
  reason = downloads.unreachable(_URLS.get(name, _OTHERS)) or downloads.writable_fault(root)
  if reason is None:
    try:
      with downloads.downloading():
        builder.download_and_prepare()
      return
    except Exception as error:
      # Network, disk and checksum errors come from several libraries, and mean the same to the user.
      reason = downloads.one_line(error)
  raise _missing(name, folder, root, reason)


def _missing(name: str, folder: pathlib.Path, root: pathlib.Path, reason: str) -> EnvironmentFault:
  return EnvironmentFault(
    f'{name}: {folder}/dataset_info.json does not exist, and downloading failed ({reason}); where there is a '
    f'network run python -c "import tensorflow_datasets as tfds; tfds.load({name!r}, data_dir={str(root)!r})", or give '
    f'the folder that holds {folder.relative_to(root)} as {argument("data_dir")}'
  )
