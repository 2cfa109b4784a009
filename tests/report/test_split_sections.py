"""The report of a recursive bi-partition says what its results hold, in words, tables and figures."""

import collections
import copy
import itertools
import re

import hypothesis
import matplotlib
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.made_up import finished_run as made_up
from tests.made_up import in_json, run_with_splits
from tests.made_up.drawn import drawn, overlapping_texts, run_of
from tests.made_up.drawn import rows as cells_of
from tests.made_up.drawn import text as text_of
from tests.made_up.written_page import WrittenPage
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.report import pages, pictures
from tff_cluster.report.answer import answer_run
from tff_cluster.report.cluster_sections import clustering_section
from tff_cluster.report.figures import base, similarities, splits
from tff_cluster.report.report import write_report
from tff_cluster.report.splits import pictures as split_pictures
from tff_cluster.report.splits.section import splits_section, story
from tff_cluster.report.splits_tree import Recursion, SplitTest, read_recursion

CFL = ('bipartition:cfl',)
STOPPED = 'stopped: no client’s update is longer than stopping_norm'


def _entry(at, cluster, verdict, halves=None, reason=''):
  across, gap = (None, None) if halves is None else (-0.25, 0.5)
  return {
      'round': at, 'cluster': cluster, 'verdict': verdict, 'halves': halves, 'cross_similarity': across,
      'similarity_gap': gap, 'mean_update_norm': 0.125, 'max_update_norm': 2.0, 'reason': reason,
  }  # fmt: skip


# Two splits of five clients: after round 3 {a, b, c} from {d, e}, after round 5 {a, b} from {c}.
IDS = list('abcde')
TESTS = [
  _entry(3, IDS, 'split', [['a', 'b', 'c'], ['d', 'e']]),
  _entry(5, ['a', 'b', 'c'], 'split', [['a', 'b'], ['c']]),
  _entry(6, ['d', 'e'], 'stopped', reason='every update is shorter than 1.6'),
]
CLUSTERS = [['a', 'b'], ['c'], ['d', 'e']]


def _run(tests=TESTS, clusters=CLUSTERS, ids=IDS, truth=None, accuracy=None):
  """Returns a run of a clustering 'cfl' with these tests; nothing else of it is filled."""
  truths = {} if truth is None else {'group': np.equal.outer(np.unique(truth), truth).astype(float).tolist()}
  parameters = dict(run_with_splits.PARAMETERS)
  clustering = {'label': 'cfl', 'clusters': clusters, 'splits': tests, 'parameters': parameters}
  population = {'client_ids': ids, 'truths': truths}
  results = {'config': ExperimentConfig().to_json(), 'population': population, 'clusterings': [clustering]}
  return run_of(results, {} if accuracy is None else {'client_accuracy_cfl': accuracy})


def _section(run):
  return drawn(splits_section(run, run.results.clusterings[0], lambda section: []))


def _cells(run, heading):
  """Returns the text of the cells of the table with this heading, by row, without its head."""
  tables = re.findall(r'<table>.*?</table>', _section(run), re.DOTALL)
  return next((cells_of(table)[1:] for table in tables if heading in table), [])


def _recursion(run):
  return read_recursion(run, run.results.clusterings[0])


def _story(tests, clusters=CLUSTERS, ids=IDS):
  return story(_recursion(_run(tests, clusters, ids)))


def test_the_story_counts_splits_rounds_and_what_became_of_clusters():
  assert _story(TESTS) == (
    f'2 splits, in rounds 3 and 5, made 3 clusters; 1 cluster was {STOPPED}; '
    '1 cluster has a single client, so nothing is left to split; 1 cluster was not tested again before the last round.'
  )
  kept = [*TESTS, _entry(7, ['a', 'b'], 'kept', [['a'], ['b']], 'too small')]
  assert '1 cluster was kept whole: a guard forbade the split' in _story(kept)
  # What counts is the last test: a cluster that was kept may be stopped later.
  assert f'2 clusters were {STOPPED}' in _story([*kept, _entry(9, ['b', 'a'], 'stopped')])
  ids = [f'c{k}' for k in range(8)]
  tests = [_entry(2 * k + 1, ids[k:], 'split', [ids[k : k + 1], ids[k + 1 :]]) for k in range(7)]
  words = _story(tests, [[name] for name in ids], ids)
  assert words.startswith('7 splits, in rounds 1 to 13, made 8 clusters; 8 clusters have a single client')


KEPT = [_entry(k, IDS, 'kept', [IDS[:1], IDS[1:]], 'too small') for k in (4, 5)]


@pytest.mark.parametrize(
    ('tests', 'ids', 'words'),
    [
        ([], IDS, 'the training of all 5 clients was never found stationary, so nothing was tested'),
        ([_entry(4, IDS, 'stopped')], IDS, f'all 5 clients were found stationary after round 4 and {STOPPED}'),
        ([_entry(1, ['a'], 'stopped')], ['a'], f'the only client was found stationary after round 1 and {STOPPED}'),
        (KEPT[:1], IDS, 'all 5 clients were kept whole after round 4: too small'),
        (KEPT, IDS, 'all 5 clients were kept whole, tested 2 times, the last time after round 5: too small'),
    ],
)  # fmt: skip
def test_the_story_says_why_nothing_was_split(tests, ids, words):
  assert _story(tests, [ids], ids) == f'No split: {words}.'


def test_the_rule_and_every_number_of_the_tests_are_told():
  assert _cells(_run(truth=[0, 0, 1, 2, 2]), 'similarity across') == [
    ['3', '5', 'split', '3 + 2 2 of group 0, 1 of group 1 2 of group 2', '−0.25', '0.50', '0.125', '2'],
    ['5', '3', 'split', '2 + 1 2 of group 0 1 of group 1', '−0.25', '0.50', '0.125', '2'],
    ['6', '2', 'stopped every update is shorter than 1.6', '2 of group 2', '–', '–', '0.125', '2'],
  ]
  assert _cells(_run(), 'similarity across')[0][3] == '3 + 2 a, b, c d, e'
  told = text_of(_section(_run()))
  assert 'below 0.4 (eps_1)' in told and 'below 1.6 (eps_2)' in told and 'planted' not in told


@pytest.mark.parametrize(
    ('truth', 'words'),
    [
        ([0, 0, 1, 2, 2], 'No split cut through a planted group (“group”).'),
        ([1, 1, 1, 0, 0], 'The split after round 5 cut through group 1 (“group”).'),
        ([0, 1, 0, 0, 1],
         'The split after round 3 cut through groups 0 and 1 and the split after round 5 cut through group 0'),
    ],
)  # fmt: skip
def test_the_groups_that_were_cut_are_told(truth, words):
  assert words in text_of(_section(_run(truth=truth)))


def test_accuracy_around_splits_is_the_mean_of_the_half():
  accuracy = np.repeat(np.float32([0.1, 0.1, 0, 0, 0.6, 0.7, 0.9]), 5).reshape(7, 5)
  accuracy[2:4] = [0.1, 0.2, 0.3, 0.4, 0.5], [0.2, 0.3, 0.25, 0.4, 0.3]
  assert _cells(_run(accuracy=accuracy), 'right before') == [
    # a, b and c: from 20% to 25% on average, two of three better, 60% when they were split again.
    ['3', '3', 'a, b, c', '20.0%', '25.0%', '+5.0 points', '2 of 3', '60.0% round 5'],
    ['3', '2', 'd, e', '45.0%', '35.0%', '−10.0 points', '0 of 2', '90.0% round 7'],
    ['5', '2', 'a, b', '60.0%', '70.0%', '+10.0 points', '2 of 2', '90.0% round 7'],
    ['5', '1', 'c', '60.0%', '70.0%', '+10.0 points', '1 of 1', '90.0% round 7'],
  ]
  # A split after the last round was followed by nothing.
  short = _cells(_run(accuracy=accuracy[:5]), 'right before')
  assert short[2] == ['5', '2', 'a, b', '60.0%', '–', '–', '–', '–']
  assert not _cells(_run(), 'right before')


def _permuted(results, arrays, order):
  """Returns the same run with its clients in another order."""
  moved, moved_arrays = copy.deepcopy(results), dict(arrays)
  population = moved['population']
  ids = population['client_ids'] = [population['client_ids'][k] for k in order]
  population['truths'] = {n: np.array(t)[:, order].tolist() for n, t in population['truths'].items()}
  moved_arrays['client_accuracy_cfl'] = arrays['client_accuracy_cfl'][:, order]

  # The lists are in the order of the population, and the halves in that of their first members.
  def sort(clusters):
    return sorted((sorted(members, key=ids.index) for members in clusters), key=lambda c: ids.index(c[0]))

  clustering = moved['clusterings'][0]
  clustering['clusters'] = sort(clustering['clusters'])
  for i, entry in enumerate(clustering['splits']):
    before, name = entry['cluster'], f'similarity_cfl_{i:03d}'
    (entry['cluster'],) = sort([before])
    positions = [before.index(client) for client in entry['cluster']]
    moved_arrays[name] = arrays[name][np.ix_(positions, positions)]
    entry['halves'] = entry['halves'] and sort(entry['halves'])
  return moved, moved_arrays


@hypothesis.settings(max_examples=12)
@hypothesis.given(
  st.integers(0, 10_000), st.integers(2, 14), st.integers(1, 5), st.randoms(use_true_random=False)
)
def test_permuting_clients_changes_no_number(seed, clients, groups, random):
  options = {'num_clients': clients, 'groups': min(groups, clients), 'rounds': (4, 12), 'seed': seed}
  results, arrays = made_up.make_run(methods=CFL, **options)
  order = random.sample(range(clients), clients)
  one, two = run_of(results, arrays), run_of(*_permuted(results, arrays, order))
  told, other = (collections.Counter(re.findall(r'[^\s,]+', text_of(_section(run)))) for run in (one, two))
  assert told == other
  trees = [_recursion(run) for run in (one, two)]
  for tests in zip(*(tree.tests for tree in trees), strict=True):
    left, right = map(similarities._pairs, tests, (one.main_groups[1], two.main_groups[1]))
    assert left.keys() == right.keys()
    assert all(np.array_equal(values, right[colour]) for colour, values in left.items())
  for (at, left), (same, right) in zip(*(tree.stages() for tree in trees), strict=True):
    assert at == same
    # Who is with whom: co-membership moves with the clients.
    together = np.equal.outer(left, left)[np.ix_(order, order)]
    np.testing.assert_array_equal(together, np.equal.outer(right, right))


def _test(at, members, verdict, halves=(), similarity=None):
  arrays = tuple(np.array(half) for half in halves)
  numbers = (-0.1, 0.5) if halves else (None, None)
  return SplitTest(at, np.array(members), verdict, arrays, *numbers, 0.1, 2.0, '', similarity)


@hypothesis.settings(max_examples=50)
@hypothesis.given(st.data())
def test_stages_refine_down_to_the_clusters_without_crossing(data):
  clients = data.draw(st.integers(1, 12))
  waiting, tests, clusters, at = [list(range(clients))], [], [], 0
  while waiting:
    members = waiting.pop(0)
    if len(members) > 1 and data.draw(st.booleans()):
      at += data.draw(st.integers(0, 2)) if tests else 1
      cut = data.draw(st.sets(st.sampled_from(members), min_size=1, max_size=len(members) - 1))
      halves = [k for k in members if k not in cut], sorted(cut)
      tests.append(_test(at, members, 'split', halves))
      waiting += halves
    else:
      clusters.append(np.array(members))
  recursion = Recursion(tuple(tests), tuple(clusters), clients, None)
  stages = recursion.stages()
  assert [at for at, _ in stages] == [0, *sorted({t.round for t in tests})]
  final = stages[-1][1]
  found = {frozenset(np.flatnonzero(final == k).tolist()) for k in set(final.tolist())}
  assert found == {frozenset(c.tolist()) for c in clusters}
  shown = np.argsort(final, kind='stable')
  for (_, before), (_, after) in itertools.pairwise(stages):
    assert all(len(set(before[after == k])) == 1 for k in set(after.tolist()))
  assert all((np.diff(labels[shown]) >= 0).all() for _, labels in stages)


def test_telling_tests_are_splits_first_and_the_last_of_repeated_ones():
  tests = [_test(k, [0, 1, 2], 'kept') for k in (1, 2, 3)] + [_test(4, [3, 4], 'stopped')]
  tests += [_test(k, [10 + k, 20 + k], 'split') for k in range(5, 10)]
  assert [t.round for t in split_pictures.telling(tests, 20)] == [3, 4, 5, 6, 7, 8, 9]
  assert [t.round for t in split_pictures.telling(tests, 6)] == [3, 5, 6, 7, 8, 9]
  assert [t.round for t in split_pictures.telling(tests, 3)] == [5, 7, 9]
  assert split_pictures.telling([], 3) == []


def test_lines_of_clients_means_and_splits_are_where_they_belong():
  accuracy = np.array([[0.1, 0.2, 0.3], [0.2, 0.3, 0.7], [0.4, 0.6, 0.9]])
  labels = np.array([0, 0, 1])
  baseline = (np.array([1, 2, 3]), np.array([0.1, 0.2, 0.25]))
  axes = splits.accuracy_per_client(accuracy, labels, [1, 2], baseline, 'x', np.array([1, 1, 0])).axes[0]
  named = {line.get_label(): line for line in axes.lines if not line.get_label().startswith('_')}
  assert list(named) == ['cluster 0 (2 clients)', 'cluster 1 (1 client)', 'unclustered (FedAvg)']
  np.testing.assert_allclose(named['cluster 0 (2 clients)'].get_xydata(), [[1, 15], [2, 25], [3, 50]])
  np.testing.assert_allclose(named['unclustered (FedAvg)'].get_ydata(), [10, 20, 25])
  for line, shares, label in zip(axes.lines, accuracy.T, labels, strict=False):
    np.testing.assert_allclose(line.get_ydata(), 100 * shares)
    assert line.get_color() == list(named.values())[label].get_color()
  # The colour is that of the planted group, cluster 0 holds group 1.
  assert named['cluster 0 (2 clients)'].get_color() == base.colours(2)[1]
  assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == ':'] == [1, 2]


def test_bands_carry_every_client_from_column_to_column():
  stages = [(0, np.zeros(6, int)), (4, np.array([0, 0, 0, 1, 1, 1])), (9, np.array([0, 0, 1, 2, 2, 2]))]
  numbers, groups = np.array([0, 0, 2, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 0])
  figure = splits.split_flow(stages, numbers, 'x', ['stopped', 'open', 'alone'], groups)
  bands = [p for p in figure.axes[0].patches if isinstance(p, matplotlib.patches.PathPatch)]
  colours = [c.lower() for c in base.colours(3)]
  for column in (0, 1):
    inside = [p for p in bands if column < p.get_path().vertices[:, 0].mean() < column + 1]
    height = collections.Counter()
    for band in inside:
      vertices = band.get_path().vertices
      first, last = vertices[0, 1] - vertices[7, 1], vertices[3, 1] - vertices[4, 1]
      assert first == pytest.approx(last)
      height[matplotlib.colors.to_hex(band.get_facecolor())] += abs(first)
    assert height == {colours[0]: 3, colours[1]: 3}
  texts = {t.get_text() for t in figure.axes[0].texts}
  told = ('0: 2 clients, stopped', '1: 3 clients, open', '2: 1 client, alone')
  assert {f'cluster {words}' for words in told} <= texts


def test_a_matrix_is_sorted_by_halves_and_groups_on_a_symmetric_scale():
  # Clients 4, 1, 3, 0 trained together; {1, 0} and {4, 3} are the halves, and 0 is of another group than 1.
  similarity = np.array(
    [[1, -0.1, 0.55, -0.2], [-0.1, 1, -0.3, 0.4], [0.55, -0.3, 1, -0.4], [-0.2, 0.4, -0.4, 1]]
  )
  test = _test(7, [4, 1, 3, 0], 'split', ([1, 0], [4, 3]), similarity)
  axes = similarities.similarity_matrices([test], list('ABCDE'), 'x', np.array([0, 1, 0, 1, 1])).axes[0]
  assert [t.get_text() for t in axes.get_yticklabels()] == ['A', 'B', 'E', 'D']
  shown = axes.images[0].get_array()
  expected = similarity[np.ix_([3, 1, 0, 2], [3, 1, 0, 2])]
  away = ~np.eye(4, dtype=bool)
  np.testing.assert_allclose(np.asarray(shown)[away], expected[away])
  assert np.isnan(np.asarray(shown.filled(np.nan)).diagonal()).all()
  assert axes.images[0].get_clim() == pytest.approx((-0.6, 0.6))
  across, upright = axes.lines  # Both after two clients.
  assert (across.get_ydata()[0], upright.get_ydata()[0], upright.get_xdata()[0]) == (1.5, 0, 1.5)


def test_dots_are_all_pairs_in_the_colours_of_the_paper():
  values = np.random.default_rng(0).uniform(-1, 1, (5, 5))
  similarity = (values + values.T) / 2
  halves, groups = ([0, 1], [2, 3, 4]), np.array([0, 0, 1, 1, 0])
  test = _test(7, range(5), 'split', halves, similarity)
  pure = _test(9, [0, 1], 'stopped', similarity=similarity[:2, :2])
  figure = similarities.similarity_dots([test, pure], 'x', groups)
  dots = [c for c in figure.axes[0].collections if hasattr(c, 'get_sizes')]
  found = [(matplotlib.colors.to_hex(c.get_facecolor()[0]), sorted(c.get_offsets()[:, 1])) for c in dots]
  pairs = [(i, j) for i in range(5) for j in range(i)]
  same = sorted(similarity[i, j] for i, j in pairs if groups[i] == groups[j])
  other = sorted(similarity[i, j] for i, j in pairs if groups[i] != groups[j])
  expected = [('#0072b2', same), ('#e69f00', other), ('#8c8c8c', [similarity[0, 1]])]
  assert [colour for colour, _ in found] == [colour for colour, _ in expected]
  for (_, one), (_, two) in zip(found, expected, strict=True):
    np.testing.assert_allclose(one, two)
  plain = similarities.similarity_dots([test], 'x')
  across = sorted(similarity[i, j] for i in halves[0] for j in halves[1])
  np.testing.assert_allclose(sorted(plain.axes[0].collections[1].get_offsets()[:, 1]), across)


@pytest.mark.parametrize(
  'options', [{'num_clients': 12}, {'num_clients': 32, 'groups': 30, 'rounds': (20, 100)}]
)
def test_labels_do_not_overlap(options):
  run = run_of(*made_up.make_run(methods=CFL, **options))
  for name, *_, figure in split_pictures.split_figures(run, run.results.clusterings[0], 'cfl'):
    axes = figure.axes[0]
    texts = [*axes.get_xticklabels(), *axes.texts]
    if name == 'split_accuracy_cfl':
      texts += axes.child_axes[0].get_xticklabels()
    if name == 'similarities_cfl':
      texts = [t for a in figure.axes for t in (a.title, a._left_title, *a.get_yticklabels())]
    assert not overlapping_texts(figure, texts), name


@pytest.mark.parametrize(
    ('options', 'words', 'flow'),
    [
        ({'num_clients': 2, 'groups': 2}, '1 split, in round 5, made 2 clusters; 2 clusters have a single client', ['split_flow_cfl']),
        ({'groups': 1}, 'No split: all 20 clients were found stationary', []),
        ({'split_verdict': 'kept', 'truth': 'none'}, 'No split: all 20 clients were kept whole after round 5: a half of', []),
    ],
)  # fmt: skip
def test_the_story_and_the_figures_of_a_run_with_and_without_arrays(options, words, flow):
  results, arrays = made_up.make_run(methods=CFL, **options)
  with_arrays = ['split_accuracy_cfl', *flow, 'similarities_cfl', 'similarity_pairs_cfl']
  for run, names in ((run_of(results, arrays), with_arrays), (run_of(results), flow)):
    told = text_of(_section(run))
    assert words in told and not re.search(r'clients agree|they agree', told)  # Only norms are known.
    assert ('Accuracy around the splits' in told) == (run.arrays != {} and flow != [])
    found = split_pictures.split_figures(run, run.results.clusterings[0], 'cfl')
    assert [name for name, *_ in found] == names


def test_the_smallest_run_has_a_report(tmp_path):
  made_up.write_run(tmp_path, num_clients=1, groups=1, rounds=(1, 1), methods=CFL)
  text = WrittenPage(write_report(tmp_path)).text
  assert 'Splits of cfl' in text and 'Recursive bi-partition · ' in text
  assert 'No split: the only client was found stationary' in text
  assert [p.stem for p in (tmp_path / 'figures').glob('s*.png')] == ['split_accuracy_cfl']


def test_sections_of_many_leaves_fold_their_tables(tmp_path):
  options = {'num_clients': 16, 'groups': 14, 'rounds': (20, 60), 'truth': 'overlapping'}
  run = run_of(*made_up.make_run(methods=(*CFL, 'kmeans'), **options))
  cfl, kmeans = run.results.clusterings
  parts = [splits_section(run, each, lambda section: []) for each in (cfl, kmeans)]
  assert parts[1] is None
  parts += [clustering_section(run, each, lambda section: []) for each in (cfl, kmeans)]
  (tmp_path / 'page.html').write_text(pages.page('title', 'subtitle', parts))
  page = WrittenPage(tmp_path / 'page.html')
  made = sum(test.verdict == 'split' for test in cfl.splits)
  assert f'{made} splits, in rounds 20 to ' in page.text and f'made {made + 1} clusters' in page.text
  assert page.cells.count('+5.0 points') == 2 * made  # As was put in.
  assert f'All {len(cfl.splits)} tests' in page.text and f'All {2 * made} halves' in page.text
  assert 'found on the clients’ updates, by recursive bi-partition' in page.text
  assert 'found on the clients’ weights' in page.text
  *_, caption, _ = pictures._rounds_figure(run)
  assert 'cfl may split clients first after that round, and again later.' in caption
  drawn = [name for name, *_ in pictures._clustering_figures(run, cfl, 'cfl')]
  assert drawn == ['membership_cfl', 'label_histogram_cfl']  # No distances of weights.


def test_the_answer_tells_of_one_cluster_and_of_similarities_that_contradict_the_norms():
  words = 'similarities of 3 and 2 clients <say> otherwise'
  stopped = _entry(4, IDS, 'stopped', reason='short updates')
  results, _ = made_up.make_run(groups=1, methods=(*CFL, 'kmeans'))
  recursive, at_once = answer_run(in_json.typed(results))
  assert any('no split was made, so this is FedAvg gone on' in alarm for alarm in recursive.alarms)
  assert any('FedAvg restarted' in alarm for alarm in at_once.alarms)
  for test, count in ((stopped, 0), (stopped | {'two_kinds': {'words': words}}, 1)):
    section = _section(_run([test], [IDS]))
    assert text_of(section).count(f'Take care. {words}.') == section.count('chip warn') == count
    results['clusterings'][0]['splits'] = [test]
    assert answer_run(in_json.typed(results))[0].alarms.count(f'{words}.') == count
