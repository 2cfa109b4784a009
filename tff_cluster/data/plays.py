"""Plays as plain text: who speaks what, in which play."""

import dataclasses
import re
from collections.abc import Iterator

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data import own_file

# A speaker's line: a letter, then letters, digits, spaces and what names have, and a full stop or colon at its end.
_SPEAKER = re.compile(r"(?P<name>[^\W\d_][\w .'’&-]{0,38})[.:]")
_PLAY = '# '


@dataclasses.dataclass(frozen=True)
class Speaker:
  """All that somebody says in a play.

  Attributes:
    name: 'PLAY: SPEAKER'; 'SPEAKER' where the file names no play.
    group: The group of the play, such as its author or language; '' where the file names no play.
    text: What they say, one space between words.
  """

  name: str
  group: str
  text: str


def read_plays(path: str) -> list[Speaker]:
  """Reads a file of plays.

  A block is what stands between two blank lines. Its first line is a speaker's name where it ends with '.' or ':', is at most
  40 characters long, holds nothing but letters, digits, spaces and .'&-, and is not the block's only line; the lines
  that follow, up to the next name, are theirs. A line NAME<tab>TEXT has both. A line '# PLAY' begins a play, whose group it is,
  and '# GROUP / PLAY' one of a group. What stands before the first speaker of a play is left out.

  Returns:
    The speakers in the order in which they first speak.

  Raises:
    InputError: naming the file and what is wrong in it.
    EnvironmentFault: if the machine does not let us read it.
  """
  said: dict[tuple[str, str], list[str]] = {}
  for group, name, words in _lines(_read(path).splitlines()):
    said.setdefault((group, name), []).extend(words)
  if not said:
    raise InputError(
      f"{argument('data_file', path)}: nobody speaks in it; a speaker's name is the first line of a block and ends with '.' or ':', or "
      'stands before a tab'
    )
  return [Speaker(name, group, ' '.join(words)) for (group, name), words in said.items()]


def _read(path: str) -> str:
  try:
    with own_file.opened(path) as file:
      text = file.read().decode('utf-8-sig')
  except UnicodeDecodeError as error:
    raise InputError(
      f'{argument("data_file", path)}: is not UTF-8 (byte {error.start}); save it as UTF-8'
    ) from None
  if '\0' in text:
    raise InputError(f'{argument("data_file", path)}: holds zero bytes; allowed is plain text as UTF-8')
  return text


def _lines(lines: list[str]) -> Iterator[tuple[str, str, list[str]]]:
  """Yields the group of a play, the speaker, and the words of each line that somebody speaks."""
  group, prefix, name = '', '', ''
  for before, line, after in zip(['', *lines], lines, [*lines[1:], ''], strict=False):
    found = _SPEAKER.fullmatch(line.strip())
    spoken = line
    if line.startswith(_PLAY):
      play = ' '.join(line[len(_PLAY) :].split())
      group, name = play.partition(' / ')[0], ''
      prefix = f'{play}: ' if play else ''
      continue
    if '\t' in line.strip():
      name, _, spoken = line.strip().partition('\t')
    elif found and after.strip() and not (before.strip() and not before.startswith(_PLAY)):
      name, spoken = found['name'], ''
    if name.strip() and spoken.split():
      yield group, prefix + ' '.join(name.split()), spoken.split()
