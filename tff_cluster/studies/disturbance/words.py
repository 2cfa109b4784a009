"""What the page of phases.disturb says in words: which clustering, at which value, and when half of its score is gone."""

from collections import Counter
from collections.abc import Container, Sequence
from typing import NamedTuple

from tff_cluster.base.words import capital, score, series, size
from tff_cluster.studies.disturbance.document import NEAREST, NOISE, RANDOM, Document, HalfLost

# An epsilon above it promises hardly anything.
_WEAK_EPSILON = 100.0
DISTURBANCES = {
  NOISE: 'noise',
  NEAREST: 'rounded to the nearest level',
  RANDOM: 'rounded at random',
}


class Names(NamedTuple):
  """What a clustering is called: in a panel of its signature, and elsewhere."""

  figure: str
  full: str


def names(document: Document) -> dict[str, Names]:
  """Returns what each clustering is called, by label: its method, or the label where a method has several of a signature."""
  rows = {row.label: row for row in document.rows}
  count = Counter((row.title, row.signature) for row in rows.values())
  found = {}
  for label, row in rows.items():
    name = row.title if count[row.title, row.signature] == 1 else label
    found[label] = Names(name, f'{name} on {row.signature}')
  return found


def value_words(disturbance: str, value: float) -> str:
  """Returns 'z = 0.01', '1 bit' or '8 bits'."""
  if disturbance == NOISE:
    return f'z = {value:g}'
  return f'{value:g} bit' if value == 1 else f'{value:g} bits'


def epsilon_words(epsilon: float | None) -> str:
  """Returns an epsilon with three digits, and 'none' where nothing is private."""
  if epsilon is None:
    return 'none'
  return f'{epsilon:,.0f}' if epsilon >= 99.95 else f'{epsilon:.3g}'


def loss_words(line: HalfLost, name: Names) -> str:
  """Returns where a clustering of this name has lost half of its score, as a sentence."""
  disturbance, kept, lost = line.disturbance, line.kept, line.lost
  start = f'{capital(name.full)}, {DISTURBANCES[disturbance]}:'
  full = score(line.undisturbed)
  if lost is None:
    if kept is None:
      return f'{start} found no groups undisturbed ({full}), so it has none to lose.'
    return f'{start} more than half of {full} is left even at {value_words(disturbance, kept)}.'
  gone = value_words(disturbance, lost)
  if kept is None:
    return f'{start} half of {full} is gone already at {gone}, the mildest that was asked.'
  return f'{start} half of {full} is gone at {gone}, and not yet at {value_words(disturbance, kept)}.'


def loss_cell(line: HalfLost) -> str:
  """Returns the same for a table: 'z = 0.1 (z = 0.03)'."""
  kept, lost = (
    None if value is None else value_words(line.disturbance, value) for value in (line.kept, line.lost)
  )
  if lost is None:
    return 'nothing to lose' if kept is None else f'nowhere ({kept})'
  return f'{lost}, the mildest asked' if kept is None else f'{lost} ({kept})'


def headline(document: Document) -> str:
  """Returns how far noise and compression can go, in two sentences at most."""
  sentences = []
  if document.privacy:
    sentences.append(_noise_headline(document))
  if document.compression:
    sentences.append(_bits_headline(document))
  return ' '.join(sentences)


def _noise_headline(document: Document) -> str:
  kept = _kept(document, (NOISE,))
  if not kept:
    return 'With noise no clustering keeps half of what it finds.'
  most = max(value for value, _, _ in kept)
  name, (go, keep, their) = _furthest(document, [label for value, label, _ in kept if value == most])
  if not most:
    return f'Any noise that was asked for costs more than half of the score; with clipping alone, {name} {keep} it.'
  epsilon, delta = document.epsilons[most], document.privacy[0].delta
  weak = ', which says next to nothing' if epsilon is not None and epsilon > _WEAK_EPSILON else ''
  return (
    f'Noise: {name} {go} furthest and {keep} more than half of {their} score up to a noise multiplier of z = {most:g}, where ε is '
    f'{epsilon_words(epsilon)} (δ = {delta:g}){weak}.'
  )


def _bits_headline(document: Document) -> str:
  kept = _kept(document, (NEAREST, RANDOM))
  if not kept:
    return 'With quantization no clustering keeps half of what it finds.'
  least, label, disturbance = min(kept, key=lambda found: found[0])
  best = [name for value, name, how in kept if (value, how) == (least, disturbance)]
  name, (go, keep, their) = _furthest(document, best)
  kind = next(row.signature for row in document.rows if row.label == label)
  whole, packed = document.num_bytes(kind), document.num_bytes(kind, least)
  return (
    f'Compression: {name} {go} furthest and {keep} more than half of {their} score down to '
    f'{value_words(disturbance, least)} a number, {DISTURBANCES[disturbance]}: {size(packed)} a client instead of {size(whole)}.'
  )


def _furthest(document: Document, labels: Sequence[str]) -> tuple[str, tuple[str, str, str]]:
  """Returns those that go furthest, with 'goes', 'keeps' and 'its' for them."""
  found = [names(document)[label].full for label in dict.fromkeys(labels)]
  return series(found), ('goes', 'keeps', 'its') if len(found) == 1 else ('go', 'keep', 'their')


def _kept(document: Document, disturbances: Container[str]) -> list[tuple[float, str, str]]:
  """Returns the furthest values at which more than half is left, with their labels and disturbances.

  Clusterings with less than half of the best score have little to lose, and are passed over.
  """
  best = max((line.undisturbed for line in document.half_lost), default=0.0)
  return [
    (line.kept, line.label, line.disturbance)
    for line in document.half_lost
    if line.disturbance in disturbances and line.kept is not None and line.undisturbed >= best / 2
  ]
