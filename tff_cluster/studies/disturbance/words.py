"""What the page of phases.disturb says in words: which clustering, at which value, and when half of its score is gone."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tff_cluster.base.words import score, size

DISTURBANCES = {
  'noise': 'noise',
  'nearest': 'rounded to the nearest level',
  'random': 'rounded at random',
}


class Names(NamedTuple):
  """What a clustering is called: in a panel of its signature, and elsewhere."""

  figure: str
  full: str


def names(document: Mapping[str, Any]) -> dict[str, Names]:
  """Returns what each clustering is called, by label: its method, or the label where a method has several of a signature."""
  rows = {row['label']: row for row in document['rows']}
  methods = {label: row['title'] for label, row in rows.items()}
  count = Counter((methods[label], row['signature']) for label, row in rows.items())
  found = {}
  for label, row in rows.items():
    name = methods[label] if count[methods[label], row['signature']] == 1 else label
    found[label] = Names(name, f'{name} on {row["signature"]}')
  return found


def value_words(disturbance: str, value: float) -> str:
  """Returns 'z = 0.01', '1 bit' or '8 bits'."""
  if disturbance == 'noise':
    return f'z = {value:g}'
  return f'{value:g} bit' if value == 1 else f'{value:g} bits'


def epsilon_words(epsilon: float | None) -> str:
  """Returns an epsilon with three digits, and 'none' where nothing is private."""
  if epsilon is None:
    return 'none'
  return f'{epsilon:,.0f}' if epsilon >= 99.95 else f'{epsilon:.3g}'


def loss_words(line: Mapping[str, Any], name: Names) -> str:
  """Returns where a clustering has lost half of its score, as a sentence.

  Args:
    line: One of algorithms.disturbance's half_lost.
    name: What the clustering is called.
  """
  disturbance, kept, lost = line['disturbance'], line['kept'], line['lost']
  start = f'{_capital(name.full)}, {DISTURBANCES[disturbance]}:'
  full = score(line['undisturbed'])
  if kept is None and lost is None:
    return f'{start} found no groups undisturbed ({full}), so it has none to lose.'
  if lost is None:
    return f'{start} more than half of {full} is left even at {value_words(disturbance, kept)}.'
  gone = value_words(disturbance, lost)
  if kept is None:
    return f'{start} half of {full} is gone already at {gone}, the mildest that was asked.'
  return f'{start} half of {full} is gone at {gone}, and not yet at {value_words(disturbance, kept)}.'


def loss_cell(line: Mapping[str, Any]) -> str:
  """Returns the same for a table: 'z = 0.1 (z = 0.03)'; the arguments are those of loss_words."""
  kept, lost = (
    None if line[name] is None else value_words(line['disturbance'], line[name]) for name in ('kept', 'lost')
  )
  if lost is None:
    return 'nothing to lose' if kept is None else f'nowhere ({kept})'
  return f'{lost}, the mildest asked' if kept is None else f'{lost} ({kept})'


def headline(document: Mapping[str, Any]) -> str:
  """Returns how far noise and compression can go, in two sentences at most."""
  sentences = []
  if document['privacy']:
    sentences.append(_noise_headline(document))
  if document['compression']:
    sentences.append(_bits_headline(document))
  return ' '.join(sentences)


def _noise_headline(document: Mapping[str, Any]) -> str:
  kept = _kept(document, ('noise',))
  if not kept:
    return 'With noise no clustering keeps half of what it finds.'
  most, label, _ = max(kept, key=lambda found: found[0])
  epsilon = {line['noise_multiplier']: line['epsilon'] for line in document['privacy']}[most]
  name = names(document)[label].full
  if not most:
    return (
      f'Any noise that was asked for costs more than half of the score; with clipping alone, {name} keeps it.'
    )
  delta = document['privacy'][0]['delta']
  return (
    f'Noise: {name} goes furthest and keeps more than half of its score up to z = {most:g}, where ε is '
    f'{epsilon_words(epsilon)} (δ = {delta:g}).'
  )


def _bits_headline(document: Mapping[str, Any]) -> str:
  kept = _kept(document, ('nearest', 'random'))
  if not kept:
    return 'With quantization no clustering keeps half of what it finds.'
  least, label, disturbance = min(kept, key=lambda found: found[0])
  kind = next(row['signature'] for row in document['rows'] if row['label'] == label)
  whole = next(line['bytes'] for line in document['signatures'] if line['signature'] == kind)
  packed = next(
    line['bytes'] for line in document['compression'] if (line['signature'], line['bits']) == (kind, least)
  )
  return (
    f'Compression: {names(document)[label].full} goes furthest and keeps more than half of its score down to '
    f'{value_words(disturbance, least)} a number, {DISTURBANCES[disturbance]}: {size(packed)} a client instead of {size(whole)}.'
  )


def _kept(document: Mapping[str, Any], disturbances: Iterable[str]) -> list[tuple[float, str, str]]:
  """Returns the furthest values at which more than half is left, with their labels and disturbances."""
  return [
    (line['kept'], line['label'], line['disturbance'])
    for line in document['half_lost']
    if line['disturbance'] in disturbances and line['kept'] is not None
  ]


def _capital(text: str) -> str:
  return text[:1].upper() + text[1:]
