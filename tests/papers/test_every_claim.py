"""Every claim of every paper, on made-up numbers: it holds, it fails, it is undecided, and one or two seeds decide nothing."""

import importlib
import pkgutil

import pytest

from tests.made_up import claims_of
from tests.made_up.scorecard_rows import stacked
from tff_cluster.papers import catalogue
from tff_cluster.scorecard.verdicts import NOT_DECIDABLE

# Toys have no seeds; tests/studies/test_toy_page.py lets each of their claims hold and fail.
_ALL = [
  (name, claim.words)
  for name, published in catalogue.PUBLISHED.items()
  if published.compute is None
  for claim in published.claims
]
_MODULES = [
  importlib.import_module(f'{claims_of.__name__}.{m.name}') for m in pkgutil.iter_modules(claims_of.__path__)
]
_OF = {name: module for module in _MODULES for name in module.NAMES}


def _claim(name, words):
  return next(claim for claim in catalogue.PUBLISHED[name].claims if claim.words == words)


@pytest.mark.parametrize(('name', 'words'), _ALL)
def test_it_holds_fails_and_is_undecided_and_needs_three_seeds(name, words):
  claim, module = _claim(name, words), _OF[name]
  good = module.good(name)
  for start, reason in getattr(module, 'UNDECIDABLE', {}).items():
    if words.startswith(start):
      finding = claim.check(stacked(good, good, good))
      assert finding.verdict == NOT_DECIDABLE and reason in finding.note
      return
  (bad,) = (rows for start, rows in module.bad(name) if words.startswith(start))
  for of_seeds, verdict in (
    ((good, good, good), 'holds'),
    ((bad, bad, bad), 'fails'),
    ((good, good, bad), 'undecided'),
    ((good,), 'one seed'),
    ((good, bad), 'two seeds'),
  ):
    assert claim.check(stacked(*of_seeds)).verdict == verdict, (verdict, claim.check(stacked(*of_seeds)))
  if getattr(claim, 'enough', None) is None:
    for gone in claim.names:
      rows = {key: found for key, found in stacked(good, good, good).items() if key != gone}
      finding = claim.check(rows)
      assert finding.verdict == 'not run' and (gone in finding.note or 'more' in finding.note)
