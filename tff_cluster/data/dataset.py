"""What a data set is: one object that says everything about itself, so that nobody has to ask for its name."""

import dataclasses
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
  from tff_cluster.data.data_config import DataConfig
  from tff_cluster.data.source import Source


@dataclasses.dataclass(frozen=True)
class Outline:
  """What is known of a source before it is loaded.

  Attributes:
    rows: Training and test rows together.
    input_shape: Shape of an example.
    row_bytes: Bytes of an example.
    num_classes: Number of labels.
    missing_classes: Labels below the highest that no row has; 0 where that is not known yet.
  """

  rows: int
  input_shape: tuple[int, ...]
  row_bytes: int
  num_classes: int
  missing_classes: int = 0


class Dataset:
  """A data set that `dataset` names.

  Attributes:
    name: Its name; where it ends in ':NAME', it stands for all texts that begin so.
    position: Where messages and help name it.
    options: The fields of DataConfig that apply to it and not to every other one.
    is_of_users: Whether its rows are a user's own, so that there is no default partition, which changes labels.
    has_owners: Whether partition by_writer can keep the owners of its rows.
    picks_owners: Whether its outline is of the owners that are drawn, not of all rows.
    has_groups: Whether its rows can come with groups of their own, such as plays.
    is_text: Whether its rows are codes of characters, below the number of classes, and the label is the next one.
    takes_noise: Whether some clients can hold CIFAR-10 instead (`noise_clients`).
  """

  name: ClassVar[str] = ''
  position: ClassVar[int] = 0
  options: ClassVar[tuple[str, ...]] = ()
  is_of_users: ClassVar[bool] = False
  has_owners: ClassVar[bool] = False
  picks_owners: ClassVar[bool] = False
  has_groups: ClassVar[bool] = False
  is_text: ClassVar[bool] = False
  takes_noise: ClassVar[bool] = False

  def check_config(self, config: 'DataConfig') -> None:
    """Raises InputError where the configuration alone shows that it cannot be loaded."""

  def check(self, config: 'DataConfig') -> Outline | None:
    """Finds out what is wrong with the data, and how large it is, without importing anything slow.

    Returns:
      None where that is not known before it is downloaded.

    Raises:
      InputError: if a data file or what is asked of it is wrong.
      EnvironmentFault: if the data is neither there nor can be downloaded.
    """
    raise NotImplementedError

  def load(self, config: 'DataConfig') -> 'Source':
    """Returns the rows; raises as `check` does, also where what is there is damaged."""
    raise NotImplementedError
