"""Releases a stage's figures round by round through tff.program: a CSV file and a TensorBoard folder."""

import collections
import contextlib
import glob
import pathlib
import re
from collections.abc import Iterator, Mapping

import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.federated import event_loop
from tff_cluster.storage import files, output_folders

# Names the files of events beside it that a log has written.
_OURS = '.tff_cluster-events.json'


class RoundLog:
  """The figures of one stage, one row a round.

  A stage that goes on after a stop hands over its earlier rounds again (trajectory.run does), so the log
  begins anew each time and is whole at the end, whatever a killed process left of it.
  """

  def __init__(self, csv_file: pathlib.Path, tensorboard_folder: pathlib.Path):
    """Begins the log; raises EnvironmentFault where it cannot be written."""
    output_folders.check(csv_file)  # The managers make folders without being asked.
    self._csv_file = csv_file
    self._remove_rows()
    # Other events in the folder are not ours.
    ours = tensorboard_folder / _OURS
    for name in _names(ours):
      if re.fullmatch(r'events\.out\.tfevents\.[^/]+', name):
        (tensorboard_folder / name).unlink(missing_ok=True)
    there = set(tensorboard_folder.glob('events.*'))
    with self._whole_or_gone('the first line of'):
      self._managers = (
        tff.program.CSVFileReleaseManager(csv_file, key_fieldname='round'),
        tff.program.TensorBoardReleaseManager(tensorboard_folder),
      )
    files.save_json(ours, [path.name for path in set(tensorboard_folder.glob('events.*')) - there])

  def release(self, round_number: int, figures: Mapping[str, float]) -> None:
    """Adds a row.

    Args:
      round_number: From 1, ascending.
      figures: Scalars by name, the same names in every round.

    Raises:
      EnvironmentFault: the figures cannot be written; what was half written is gone.
    """

    async def release_to_all() -> None:
      for manager in self._managers:
        await manager.release(collections.OrderedDict(figures), round_number)

    with self._whole_or_gone(f'round {round_number} in'):
      event_loop.complete(release_to_all())

  @contextlib.contextmanager
  def _whole_or_gone(self, what: str) -> Iterator[None]:
    """Tells what TensorFlow's files raise for a full or failing disk in one line, and removes what was half written."""
    try:
      yield
    except tf.errors.OpError as error:
      self._remove_rows()
      raise EnvironmentFault(f'{what} {self._csv_file}: {error.message}') from error

  def _remove_rows(self) -> None:
    """Removes the CSV file, and what a killed process had half written beside it."""
    for path in self._csv_file.parent.glob(f'{glob.escape(self._csv_file.name)}*'):
      if re.fullmatch(r'(_temp[0-9]{4})?', path.name.removeprefix(self._csv_file.name)):
        path.unlink(missing_ok=True)


def _names(listed: pathlib.Path) -> list[str]:
  """Returns the names that a file of ours lists; none where it is not there, or not whole."""
  try:
    names = files.load_json(listed)
  except (FileNotFoundError, files.DamagedFile):
    return []
  return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
