"""The tables of recovery scores: those for overlapping clusters only where something overlaps."""

from tests.made_up import finished_run as made_up
from tests.made_up.drawn import drawn, rows, run_of
from tff_cluster.base.words import score
from tff_cluster.report.cluster_sections import candidates_section, recovery_section

OVERLAPPING = ('onmi', 'bcubed_f', 'bcubed_precision', 'bcubed_recall')


def _sections(**options):
  results, _ = made_up.make_run(num_clients=8, **options)
  run = run_of(results)
  return results, drawn(recovery_section(run)), drawn(candidates_section(run, lambda section: []))


def test_where_nothing_overlaps_the_scores_of_overlapping_clusters_are_left_out():
  _, recovery, candidates = _sections(groups=2, methods=('kmeans',))
  assert rows(recovery)[0][3:] == ['ARI', 'NMI', 'Omega']
  assert rows(candidates)[0][-2:] == ['ARI', 'Omega']
  assert 'BCubed' not in recovery + candidates


def test_overlapping_rows_have_the_scores_and_others_a_dash():
  results, section, candidates = _sections(truth='overlapping', methods=('kmeans', 'dynamic_distance'))
  header, *found = rows(section)
  assert header[3:] == ['ARI', 'NMI', 'Omega', 'ONMI', 'BCubed F', 'precision', 'recall']
  assert 'BCubed precision says' in section
  entries = {entry['label']: entry for entry in results['clusterings']}
  shown = set()
  for label, _, planted, ari, _, omega, *others in found:
    scores = entries[label]['recovery'][planted.rsplit(' (', 1)[0]]
    assert (ari, omega) == (score(scores['ari']), score(scores['omega']))
    assert others == (['–'] * 4 if ari != '–' else [score(scores[name]) for name in OVERLAPPING])
    shown.add((label, ari == '–'))
  # The planted groups overlap in one of two truths, the clusters of dynamic distance may.
  assert {('kmeans', True), ('kmeans', False)} <= shown

  header, *found = rows(candidates)
  assert header[-4:] == ['ARI', 'Omega', 'ONMI', 'BCubed F']
  assert 'ARI, Omega, ONMI and BCubed F are against “digit”.' in candidates
  for row, entry in zip(found, results['candidates'], strict=True):
    scores = (entry['recovery'] or {}).get('digit', {})
    assert row[-2:] == [score(scores.get('onmi')), score(scores.get('bcubed_f'))]
  assert found[0][-2:] != ['–', '–'] and found[-1][-2:] == ['–', '–']
