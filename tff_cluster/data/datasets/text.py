"""Plays of a user's own file (data/plays.py): speakers are clients, and the label is the next character."""

import os
from typing import TYPE_CHECKING

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data.dataset import Dataset, Outline

if TYPE_CHECKING:
  from tff_cluster.data.data_config import DataConfig
  from tff_cluster.data.source import Source


class PlainText(Dataset):
  """int8[rows, text_window], codes of characters. The end of what each speaker says is for testing."""

  name = 'text'
  position = 5
  options = ('data_file', 'test_fraction', 'text_window', 'text_stride', 'text_classes')
  is_of_users = True
  has_owners = True
  has_groups = True
  is_text = True

  def check_config(self, config: 'DataConfig') -> None:
    if not config.data_file:
      raise InputError(f'{argument("dataset", "text")} needs {argument("data_file", "PLAYS.txt")}')

  def check(self, config: 'DataConfig') -> Outline:
    source = self.load(config)
    rows = len(source.train_y) + len(source.test[1])
    return Outline(rows, source.train_x.shape[1:], config.text_window, source.num_classes)

  def load(self, config: 'DataConfig') -> 'Source':
    from tff_cluster.data import characters, plays

    self.check_config(config)
    assert config.data_file is not None
    train: list[characters.Text] = []
    test: list[characters.Text] = []
    for speaker in plays.read_plays(config.data_file):
      length = len(speaker.text)
      # At least one window to test on.
      cut = length - max(config.text_window + 1, round(config.test_fraction * length))
      for part, text in ((train, speaker.text[: max(cut, 0)]), (test, speaker.text[max(cut, 0) :])):
        part.append(characters.Text(speaker.name, speaker.group, text))
    name = os.path.splitext(os.path.basename(config.data_file))[0]
    return characters.to_source(name, train, test, config)


DATASET = PlainText()
