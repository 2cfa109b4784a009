"""What people say as rows: some characters, and as the label the next one."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.source import Source


@dataclasses.dataclass(frozen=True)
class Text:
  """A piece of text and whose it is.

  Attributes:
    owner: The speaker.
    group: What it is grouped by.
    characters: The text.
  """

  owner: str
  group: str
  characters: str


@dataclasses.dataclass(frozen=True, eq=False)
class Alphabet:
  """Which character has which class.

  Attributes:
    kept: Characters with a class of their own, the most frequent first; equally frequent ones by their code points.
    num_classes: Those, and one class for all others where there are any.
  """

  kept: str
  num_classes: int

  def codes(self, text: str) -> np.ndarray:
    """Returns int8[characters], the class of each character."""
    classes = {character: code for code, character in enumerate(self.kept)}
    return np.array([classes.get(character, len(self.kept)) for character in text], np.int8)


def alphabet_of(texts: Iterable[str], most: int) -> Alphabet:
  """Returns the alphabet of all texts together.

  Args:
    most: Classes at most, from 2 to 128, so that a code is an int8.
  """
  counts = collections.Counter[str]()
  for text in texts:
    counts.update(text)
  ranked = sorted(counts, key=lambda character: (-counts[character], character))
  kept = ranked if len(ranked) <= most else ranked[: most - 1]
  return Alphabet(''.join(kept), min(len(ranked), most))


def to_source(name: str, train: Sequence[Text], test: Sequence[Text], config: DataConfig) -> Source:
  """Returns the rows of texts.

  Args:
    name: The source's name.
    train, test: Texts to train and to test on. Windows are taken of each piece on its own, so none is in both.
    config: text_window, text_stride and text_classes.

  Returns:
    x int8[rows, text_window], codes that are taken as they are, and y int32[rows], the code of the next character. The owner is the
    speaker, and the group the position of the text's group among all, sorted; rows have none where there is one group only.

  Raises:
    InputError: if there is nothing to train or to test on.
  """
  alphabet = alphabet_of((text.characters for text in (*train, *test)), config.text_classes)
  groups = {group: place for place, group in enumerate(sorted({text.group for text in (*train, *test)}))}
  parts = [_Rows.of(texts, alphabet, groups, config) for texts in (train, test)]
  for part, purpose in zip(parts, ('training', 'testing'), strict=True):
    if not len(part.labels):
      raise InputError(
        f'{argument("text_window", config.text_window)}: in {name} nobody has a piece of {config.text_window + 1} characters for '
        f'{purpose}; give a longer text or a smaller text_window'
      )
  trained, tested = parts
  kinds = [part.groups if len(groups) > 1 else None for part in parts]
  return Source(
    name, trained.codes, trained.labels, max(alphabet.num_classes, 2), tested.codes, tested.labels,
    trained.owners, tested.owners, *kinds,
  )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class _Rows:
  """Windows int8[rows, window], labels int32[rows], and the owner str[rows] and group int64[rows] of each row."""

  codes: np.ndarray
  labels: np.ndarray
  owners: np.ndarray
  groups: np.ndarray

  @staticmethod
  def of(texts: Sequence[Text], alphabet: Alphabet, groups: Mapping[str, int], config: DataConfig) -> '_Rows':
    width, stride = config.text_window + 1, config.text_stride or config.text_window
    long = [text for text in texts if len(text.characters) >= width]
    found = [np.empty((0, width), np.int8)]
    for text in long:
      codes = alphabet.codes(text.characters)
      found.append(np.lib.stride_tricks.sliding_window_view(codes, width)[::stride])
    windows, counts = np.concatenate(found), [len(each) for each in found[1:]]
    return _Rows(
      np.ascontiguousarray(windows[:, :-1]),
      windows[:, -1].astype(np.int32),
      np.repeat(np.array([text.owner for text in long], np.str_), counts),
      np.repeat(np.array([groups[text.group] for text in long], np.int64), counts),
    )
