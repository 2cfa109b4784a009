"""Plays in two made-up languages: after a letter comes one of two others, which ones the language says."""

import numpy as np

from tff_cluster.base import seeding

LETTERS = 'abcdefgh'
LANGUAGES = ('north', 'south')


def followers(language: str) -> dict[str, str]:
  """Returns the two letters that may follow each letter; no letter has the same follower in both languages."""
  steps = {'north': (1, 2), 'south': (-1, -2)}[language]
  return {
    letter: ''.join(LETTERS[(place + step) % len(LETTERS)] for step in steps)
    for place, letter in enumerate(LETTERS)
  }


def speech(language: str, length: int, rng: np.random.Generator) -> str:
  """Returns so many letters of a language; the first of the two followers is three times as frequent as the other."""
  after, text = followers(language), LETTERS[0]
  for _ in range(length - 1):
    text += after[text[-1]][int(rng.random() < 0.25)]
  return text


def plays(speakers: int, length: int, seed: int = 0) -> str:
  """Returns a file of two plays, one a language, with so many speakers each, who speak so many letters each."""
  rng = seeding.generator(seed, 'two languages')
  blocks = []
  for language in LANGUAGES:
    blocks.append(f'# {language} / a play of the {language}')
    blocks += [f'SPEAKER {k}.\n{speech(language, length, rng)}' for k in range(speakers)]
  return '\n\n'.join(blocks) + '\n'
