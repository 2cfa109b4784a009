"""The tables of recovery scores: those for overlapping clusters only where something overlaps."""

import copy
import html
import re
from pathlib import Path

import pytest

from tests.made_up import finished_run as made_up
from tests.made_up.drawn import drawn
from tff_cluster.base.words import score
from tff_cluster.report import answer, cluster_sections
from tff_cluster.report.finished_run import FinishedRun

NEW = ('onmi', 'bcubed_f', 'bcubed_precision', 'bcubed_recall')


def cells(parts):
  """Returns the rows of the table among the parts of a section, the header first."""
  rows = re.findall(r'<tr[^>]*>(.*?)</tr>', ''.join(parts), re.S)
  return [re.findall(r'<t[hd][^>]*>(.*?)</t[hd]>', row, re.S) for row in rows]


def run_of(results):
  return FinishedRun(Path('run'), results, {})


def recovery_section(results):
  return drawn(cluster_sections.recovery_section(run_of(results)))


def candidates_section(results):
  return drawn(cluster_sections.candidates_section(run_of(results), lambda section: []))


def without_new_scores(results):
  """Returns the results as they were written before there were these scores."""
  old = copy.deepcopy(results)
  for entry in (*old['clusterings'], *old['candidates']):
    for scores in (entry['recovery'] or {}).values():
      for name in NEW:
        del scores[name]
  return old


@pytest.fixture(scope='module')
def disjoint():
  return made_up.make_run(num_clients=8, groups=2, methods=('kmeans', 'hierarchical'))[0]


@pytest.fixture(scope='module')
def overlapping():
  return made_up.make_run(num_clients=8, truth='overlapping', methods=('kmeans', 'dynamic_distance'))[0]


def test_where_nothing_overlaps_the_tables_are_as_before(disjoint):
  assert cells(recovery_section(disjoint))[0][3:] == ['ARI', 'NMI', 'Omega']
  assert cells(candidates_section(disjoint))[0][-2:] == ['ARI', 'Omega']
  assert 'BCubed' not in recovery_section(disjoint) + candidates_section(disjoint)


def test_overlapping_rows_have_the_scores_and_others_a_dash(overlapping):
  header, *rows = cells(recovery_section(overlapping))
  assert header[3:] == ['ARI', 'NMI', 'Omega', 'ONMI', 'BCubed F', 'precision', 'recall']
  assert 'BCubed precision says' in recovery_section(overlapping)
  entries = {entry['label']: entry for entry in overlapping['clusterings']}
  shown = set()
  for label, _, planted, ari, *others in rows:
    scores = entries[label]['recovery'][html.unescape(planted).rsplit(' (', 1)[0]]
    assert others[2:] == (['–'] * 4 if ari != '–' else [score(scores[name]) for name in NEW])
    shown.add((label, ari == '–'))
  # The planted groups overlap in one of two truths, the clusters of dynamic distance may.
  assert {('kmeans', True), ('kmeans', False)} <= shown


def test_candidates_have_two_of_the_scores(overlapping):
  header, *rows = cells(candidates_section(overlapping))
  assert header[-4:] == ['ARI', 'Omega', 'ONMI', 'BCubed F']
  assert 'ARI, Omega, ONMI and BCubed F are against “digit”.' in candidates_section(overlapping)
  for row, entry in zip(rows, overlapping['candidates'], strict=True):
    scores = (entry['recovery'] or {}).get('digit', {})
    assert row[-2:] == [score(scores.get('onmi')), score(scores.get('bcubed_f'))]
  assert rows[0][-2:] != ['–', '–'] and rows[-1][-2:] == ['–', '–']


def test_results_from_before_are_read(overlapping, disjoint):
  old = without_new_scores(overlapping)
  header, *rows = cells(recovery_section(old))
  assert header[3:] == ['ARI', 'NMI', 'Omega']
  assert rows == [row[:6] for row in cells(recovery_section(overlapping))[1:]]
  assert cells(candidates_section(old))[0][-2:] == ['ARI', 'Omega']
  assert answer.answer_run(old)[0] == answer.answer_run(overlapping)[0]
  assert recovery_section(without_new_scores(disjoint)) == recovery_section(disjoint)
