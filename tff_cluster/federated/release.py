"""Releases a stage's figures round by round through tff.program: a CSV file and a TensorBoard folder."""

import collections
import pathlib
from collections.abc import Mapping

import tensorflow as tf
import tensorflow_federated as tff

from tff_cluster import holding
from tff_cluster.errors import EnvironmentFault
from tff_cluster.federated import awaiting


class RoundLog:
  """The figures of one stage, one row a round.

  A stage that goes on after a stop hands over its earlier rounds again (trajectory.run does), so the log
  begins anew each time and is whole at the end, whatever a killed process left of it.
  """

  def __init__(self, csv_file: pathlib.Path, tensorboard_folder: pathlib.Path):
    holding.check(csv_file)  # The managers make folders without being asked.
    self._csv_file = csv_file
    self._remove_rows()
    for events in tensorboard_folder.glob('events.out.tfevents.*'):
      events.unlink(missing_ok=True)
    self._managers = (
      tff.program.CSVFileReleaseManager(csv_file, key_fieldname='round'),
      tff.program.TensorBoardReleaseManager(tensorboard_folder),
    )

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

    try:
      awaiting.complete(release_to_all())
    except tf.errors.OpError as error:  # What TensorFlow's files raise for a full or failing disk.
      self._remove_rows()
      raise EnvironmentFault(f'the figures of round {round_number}: {error.message}') from error

  def _remove_rows(self) -> None:
    """Removes the CSV file, and what a killed process had half written beside it."""
    for path in self._csv_file.parent.glob(f'{self._csv_file.name}*'):
      path.unlink(missing_ok=True)
