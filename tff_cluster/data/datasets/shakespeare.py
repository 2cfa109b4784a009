"""Shakespeare's plays by character, as TFF has them (data/shakespeare.py)."""

from typing import TYPE_CHECKING

from tff_cluster.data.dataset import Dataset

if TYPE_CHECKING:
  from tff_cluster.data.data_config import DataConfig
  from tff_cluster.data.source import Source


class Shakespeare(Dataset):
  """int8[rows, text_window], codes of characters; characters of plays are the owners. How many rows is known when they are loaded."""

  name = 'shakespeare'
  position = 4
  options = ('data_dir', 'text_window', 'text_stride', 'text_classes')
  has_owners = True
  is_text = True

  def check(self, config: 'DataConfig') -> None:
    from tff_cluster.data import shakespeare

    shakespeare.DATABASE.check(shakespeare.DATABASE.path(config.data_dir))

  def load(self, config: 'DataConfig') -> 'Source':
    from tff_cluster.data import shakespeare

    return shakespeare.load_shakespeare(config)


DATASET = Shakespeare()
