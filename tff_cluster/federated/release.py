"""Releases a stage's figures round by round through tff.program: a CSV file and a TensorBoard folder."""

import asyncio
import collections
import pathlib
from collections.abc import Mapping

import tensorflow_federated as tff


class RoundLog:
  """The figures of one stage, one row a round.

  A stage that goes on after a stop hands over its earlier rounds again (trajectory.run does), so the log
  begins anew each time and is whole at the end, whatever a killed process left of it.
  """

  def __init__(self, csv_file: pathlib.Path, tensorboard_folder: pathlib.Path):
    for left_over in csv_file.parent.glob(f'{csv_file.name}*'):
      left_over.unlink(missing_ok=True)
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
    """

    async def release_to_all() -> None:
      for manager in self._managers:
        await manager.release(collections.OrderedDict(figures), round_number)

    asyncio.run(release_to_all())
