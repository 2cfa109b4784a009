"""Clusterings, and rules of Phase 3, that fail apart from the others."""

import contextlib
import logging
import pathlib
from collections.abc import Iterator, Mapping, Sequence

from tff_cluster.base.errors import EnvironmentFault, InputError, argument
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files, output_folders

_LOG = logging.getLogger(__name__)


class ClusteringsFailed(InputError):
  """Some clusterings of a run, or rules of Phase 3 that it was given, failed; it has the others.

  Attributes:
    done: Labels of the others.
    report: The report on them, where one was asked for.
  """

  def __init__(self, failed: Mapping[str, Exception], done: Sequence[str]):
    causes = '; '.join(cause(what, error) for what, error in failed.items())
    left = f'done: {", ".join(done)}' if done else 'the run has no other clustering'
    super().__init__(
      f'{causes.rstrip(".")}. What failed is not in the run any more: give it again with other parameters, or leave it out; {left}'
    )
    self.done = tuple(done)
    self.report: pathlib.Path | None = None


@contextlib.contextmanager
def apart(failed: dict[str, Exception], label: str) -> Iterator[None]:
  """Notes what goes wrong with one clustering, or one rule of Phase 3, so that the others go on; a failing machine ends all.

  Args:
    failed: Takes the error.
    label: Of the clustering; of a rule, Rule.called.
  """
  try:
    yield
  except Exception as error:
    if ends_all(error):
      raise
    if not isinstance(error, (InputError, MemoryError)):
      _LOG.error('%s failed where its traceback says', label, exc_info=True)
    failed[label] = error


def ends_all(error: Exception) -> bool:
  """Tells whether an error is the machine's, and no part of a run can go on."""
  return isinstance(error, EnvironmentFault | OSError) or output_folders.lost() is not None


def end(folder: RunFolder, config: config_lib.ExperimentConfig, failed: dict[str, Exception]) -> None:
  """Takes what failed out of a run and raises ClusteringsFailed where something did; see `drop`."""
  left = drop(folder, config, failed)
  if failed:
    raise ClusteringsFailed(failed, [clustering.label for clustering in left.clusterings])


def drop(
  folder: RunFolder, config: config_lib.ExperimentConfig, failed: dict[str, Exception]
) -> config_lib.ExperimentConfig:
  """Takes what failed out of a run, so that it can be given again in another way, and returns what is left.

  What was saved of it stays until another of its name comes. What starts from a clustering that failed goes with it though it
  was trained: the name that it tells may be another one's then.

  Args:
    folder: The run.
    config: What it was to have.
    failed: What failed; takes what cannot stand without that.
  """
  if not failed:
    return config
  left = config.without(failed)
  while fallen := left.unsupported():
    failed |= fallen
    left = left.without(fallen)
  files.save_json(folder.config, left.to_json())
  return left


def cause(what: str, error: Exception) -> str:
  """Returns what went wrong with a clustering of this label, or a rule of Phase 3 that is called so."""
  told = _told(error)
  # What is said of a rule begins with what it is called, unless it is a fault of this software.
  if what.startswith(argument('aggregation')):
    return told if told.startswith(what) else f'{what}: {told}'
  return f'clustering {what}: {told}'


def _told(error: Exception) -> str:
  """Returns the cause, with the marks of the arguments that it names: see errors.Fault."""
  if isinstance(error, InputError):
    return error.marked
  return (
    f'not enough memory ({error})' if isinstance(error, MemoryError) else f'{type(error).__name__}: {error}'
  )
