"""Methods that alternate: their rounds are those of the papers and of FedAvg, are kept, and go on to the same bits."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from tests.conftest import clients_of_runs, make_population
from tests.phases.alternating_run import cost, costs, cross_entropy, models, saved
from tests.phases.conftest import CLIENTS, PLAIN
from tests.phases.whole_run import Stopped, WholeRun, accuracy, changed, estimated, opened
from tff_cluster.base.cost import Cost
from tff_cluster.base.errors import InputError
from tff_cluster.clustering import methods
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import ClusteringConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import alternation, federation
from tff_cluster.storage import files, saved_rounds

pytestmark = pytest.mark.tensorflow

PHASE1, LAST = 2, 6
IFCA = ClusteringConfig('ifca', num_clusters=3)
FROM_GROUPS = {'start': 'clustering', 'start_clustering': 'planted'}
CONFIG = changed(
  PLAIN,
  {'num_clients': CLIENTS + 2, 'new_clients': 2, 'partition': 'label_permuted'},
  {'phase1_rounds': PHASE1, 'phase2_rounds': LAST - PHASE1},
  clusterings=(
    ClusteringConfig('hypcluster', name='from_groups', **FROM_GROUPS),
    ClusteringConfig('ifca', name='equal_from_groups', **FROM_GROUPS),
    ClusteringConfig('fesem', name='near_from_groups', **FROM_GROUPS),
    ClusteringConfig('fedem', name='soft_from_groups', **FROM_GROUPS),
    ClusteringConfig('hypcluster', name='one', num_clusters=1),
    ClusteringConfig('ifca', name='one_warm', num_clusters=1, start='warm'),
    IFCA,
    ClusteringConfig('fedsoft', name='now_and_then', num_clusters=2, estimation_interval=4),
    ClusteringConfig('planted'),
  ),
)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  return WholeRun(CONFIG, tmp_path_factory.mktemp('alternating') / 'run')


def test_with_the_planted_groups_as_start_hypcluster_is_fedavg_of_each_group(finished):
  assert finished.clustering('from_groups').clusters == finished.clustering('planted').clusters
  for found, expected in zip(models(finished, 'from_groups'), models(finished, 'planted'), strict=True):
    assert all(map(np.array_equal, found, expected))


def test_with_the_planted_groups_as_start_ifca_is_the_plain_fedavg_of_each_group(finished):
  saved_models = models(finished, 'equal_from_groups')
  groups = finished.membership('planted')
  with finished.opened() as experiment:
    starts = alternation.client_signatures.start_weights(
      experiment,
      finished.folder.load_finished(finished.folder.clusters('planted'), phase_files.Clusters).assignment,
    )
    for row, start in enumerate(starts):
      state = experiment.trainer.start(experiment.unflatten(start))
      for number in range(PHASE1 + 1, LAST + 1):
        state, _ = experiment.trainer.round(state, np.flatnonzero(groups[row]), number, equal=True)
      assert all(map(np.array_equal, experiment.trainer.weights(state), saved_models[row]))


def test_with_one_cluster_it_is_fedavg(finished):
  baseline = finished.folder.load_finished(finished.folder.baseline, phase_files.Baseline).trajectory
  record = files.load_arrays(finished.folder.store / baseline.artifact / f'round_{LAST:05d}.npz')
  (model,) = models(finished, 'one')
  assert all(map(np.array_equal, model, saved_rounds.model(record, 2)))
  fedavg = finished.results.baseline.evaluation.client_accuracy
  assert finished.clustering('one').evaluations['own'].client_accuracy == fedavg
  # As many rows each, so that the plain mean is the weighted one but for rounding.
  (model,) = models(finished, 'one_warm')
  assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(model, saved_rounds.model(record, 2), strict=True))


def rms(array):
  return np.sqrt(np.mean(np.square(array, dtype=np.float64)))


def test_a_warm_start_is_fedavgs_model_and_copies_with_noise_relative_to_each_array(finished):
  kept = finished.folder.store / finished.phase1.trajectory.artifact / f'round_{PHASE1:05d}.npz'
  fedavg = saved_rounds.model(files.load_arrays(kept), 2)

  def started(noise):
    clustering = ClusteringConfig('ifca', num_clusters=CLIENTS, start='warm', start_noise=noise)
    return alternation._Rounds(experiment, clustering)._start.weights

  with finished.opened() as experiment:
    some, twice = started(0.2), started(0.4)
  for first, *_ in (some, twice):
    assert all(map(np.array_equal, first, fedavg))
  for place, array in enumerate(fedavg):
    added, doubled = (np.stack([model[place] - array for model in found[1:]]) for found in (some, twice))
    # The root mean square of n normal numbers varies by 1 / sqrt(2 n) of itself.
    assert rms(added) / rms(array) == pytest.approx(0.2, rel=4 / np.sqrt(2 * added.size))
    np.testing.assert_allclose(doubled, 2 * added, atol=1e-6)
    assert len({each.tobytes() for each in added}) == CLIENTS - 1


def by_hand(run):
  """Algorithm 1 of IFCA once more, on the trainer alone; returns the models, and each round's choices."""
  choices = []
  with run.opened() as experiment:
    trainer, everyone = experiment.trainer, experiment.everyone
    train = experiment.population.train
    states = [trainer.start(experiment.initial_weights(k)) for k in range(3)]
    for number in range(1, LAST + 1):
      losses = [cross_entropy(trainer.weights(state), train) for state in states]
      chosen = np.argmin(losses, axis=0)
      choices.append(chosen)
      for k in range(3):
        members = everyone[chosen == k]
        if not len(members):
          continue
        updates = np.empty((len(members), trainer.computations.model.num_parameters))
        trainer.local_updates(trainer.weights(states[k]), members, number, updates.__setitem__)
        flat = experiment.flatten(trainer.weights(states[k])) + updates.mean(axis=0)
        states[k] = trainer.start(experiment.unflatten(flat.astype(np.float32)))
    return [trainer.weights(state) for state in states], np.array(choices)


def test_the_rounds_of_ifca_are_algorithm_1(finished):
  expected, choices = by_hand(finished)
  found, arrays = saved(finished, 'ifca')
  np.testing.assert_array_equal(arrays['shares'].argmax(axis=1), choices)
  for position, model in zip(found.models, models(finished, 'ifca'), strict=True):
    for a, b in zip(model, expected[position], strict=True):
      np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize('label', ['from_groups', 'one_warm', 'ifca'])
def test_results_tell_what_the_rounds_came_to(finished, label):
  clustering, (_, kept) = finished.clustering(label), saved(finished, label)
  told = clustering.alternation
  arrays = files.load_arrays(finished.folder.arrays)
  shares, first = arrays[f'memberships_{label}'], int(arrays[f'first_round_{label}'])
  np.testing.assert_array_equal(shares, kept['shares'])
  ways = kept['shares'].argmax(axis=1)
  assert first == (0 if label == 'ifca' else PHASE1) == told.first_round
  assert (told.last_round, told.rounds, told.num_models) == (LAST, *shares.shape[:2])
  assert told.changed == [0, *(int(np.sum(a != b)) for a, b in itertools.pairwise(ways))]
  # A cluster's clients are those of its model.
  clients = list(finished.population.client_ids)
  for model, members in zip(told.models, clustering.clusters, strict=True):
    assert [clients.index(i) for i in members] == np.flatnonzero(ways[-1] == model).tolist()
  lost = clustering.collapse
  assert lost.empty_models == told.num_models - clustering.num_clusters and told.oldest == 0
  assert lost.all_in_one == (clustering.num_clusters == 1 < told.num_models)
  starts = {'from_groups': 'clustering', 'one_warm': 'warm', 'ifca': 'random'}
  assert told.start == starts[label]
  assert finished.clustering('planted').alternation is None
  # The rounds are among what the run took, once.
  asked = {timing.name: timing.client_rounds_asked for timing in finished.results.timing}
  assert asked[f'Clustering, {label}'] == kept['cost'][:, 0].sum()
  assert asked[f'Phase 2, {label}'] == 0


def test_what_clients_were_sent_and_did_is_counted(finished):
  rows, epochs = finished.population.train.counts.sum(), CONFIG.training.local_epochs
  found, arrays = saved(finished, 'ifca')
  per_round = cost(finished, CLIENTS, 3 * CLIENTS, CLIENTS, rows * epochs, 3 * rows)
  assert costs(arrays) == [per_round] * LAST
  # The first round of a start from clusters trains them as they are, and asks for no losses.
  for label in ('equal_from_groups', 'near_from_groups', 'soft_from_groups'):
    _, arrays = saved(finished, label)
    assert costs(arrays)[0] == cost(finished, CLIENTS, CLIENTS, CLIENTS, rows * epochs, 0)
    np.testing.assert_array_equal(arrays['shares'][0], finished.membership('planted'))
  # Its rounds are all its own, so what Phase 1 cost is taken off.
  of_phase1 = cost(finished, *[PHASE1 * CLIENTS] * 3, PHASE1 * rows * epochs, 0)
  expected = sum([per_round] * LAST, Cost()) - of_phase1
  assert found.cost == finished.clustering('ifca').cost == expected


def test_clients_are_measured_with_the_models_that_they_have(finished):
  clustering, population = finished.clustering('ifca'), finished.population
  own = models(finished, 'ifca')
  membership = finished.membership('ifca')
  expected = [
    accuracy(own[row], population.test, client) for client, row in enumerate(membership.argmax(axis=0))
  ]
  np.testing.assert_allclose(clustering.evaluations['own'].client_accuracy, expected)
  assert clustering.history.rounds == list(range(PHASE1 + 1, LAST + 1))
  assert clustering.history.test_accuracy[-1] == pytest.approx(np.mean(expected))


def test_newcomers_join_the_model_that_fits_their_training_rows(finished):
  with finished.opened() as experiment:
    new = experiment.new_clients
    losses = [cross_entropy(model, new.train) for model in models(finished, 'ifca')]
  expected = np.argmin(losses, axis=0)
  assert finished.clustering('ifca').new_clients.assigned == [[int(k)] for k in expected]


def test_a_run_asks_once_for_rounds_that_alternate(finished):
  random = ('one', 'ifca', 'now_and_then')
  rounds = {each.label: LAST - PHASE1 * (each.label not in random) for each in CONFIG.clusterings}
  # FedEM trains both models in all rounds but the first, which trains the groups.
  rounds['soft_from_groups'] += LAST - PHASE1 - 1
  # FedAvg goes on from Phase 1.
  assert finished.done.asked == finished.done.trained == CLIENTS * (LAST + sum(rounds.values()))
  # A dry run counts Phase 1 once.
  assert estimated(CONFIG, finished.folder.root) == (finished.done.trained, finished.done.trained)


@pytest.fixture(scope='module')
def uneven(tmp_path_factory):
  """A run whose second group learns nothing, because its training labels are drawn at random."""
  population = make_population(clients=8, rows=30)
  groups, rows = np.repeat(np.eye(2), 4, axis=1), population.train
  y = rows.y.copy()
  y[rows.offsets[4] :] = np.random.default_rng(0).integers(3, size=len(y) - rows.offsets[4])
  population = dataclasses.replace(population, train=dataclasses.replace(rows, y=y), truths={'group': groups})
  from_groups = tuple(ClusteringConfig(name, **FROM_GROUPS) for name in ('ifca', 'fedem', 'fedsoft'))
  config = changed(
    PLAIN,
    training={'phase1_rounds': 1, 'phase2_rounds': 2},
    clusterings=(*from_groups, CONFIG.clusterings[-1]),
  )
  with clients_of_runs(population):
    return WholeRun(config, tmp_path_factory.mktemp('uneven') / 'run')


@pytest.mark.parametrize('label', ['ifca', 'fedem', 'fedsoft'])
def test_models_weigh_as_they_are_right_on_validation_rows_of_all_who_have_a_share(uneven, label):
  clustering, population = uneven.clustering(label), uneven.population
  best = []
  for (kernel, bias), members in zip(models(uneven, label), clustering.clusters, strict=True):
    rows = [population.validation.client(population.client_ids.index(client)) for client in members]
    x, y = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    best.append(np.mean((x.astype(np.float64) @ kernel + bias).argmax(axis=1) == y))
  assert clustering.best_validation == pytest.approx(best)
  assert max(best) > min(best) + 0.1
  found = {name: clustering.evaluations[name] for name in ('weighted', 'average')}
  np.testing.assert_allclose(np.ravel(found['weighted'].mixing), np.array(best) / sum(best))
  assert found['weighted'].mixing != found['average'].mixing


@pytest.mark.parametrize('stop_in', [2, 5])
def test_a_stopped_run_goes_on_to_the_same_bits(finished, tmp_path, monkeypatch, stop_in):
  config = dataclasses.replace(CONFIG, clusterings=(IFCA,))
  fed_avg, rounds = federation.Clients.fed_avg, []

  def stopping(clients, number, *args):
    if number == stop_in and not rounds.count(number):
      rounds.append(number)
      raise Stopped
    rounds.append(number)
    return fed_avg(clients, number, *args)

  monkeypatch.setattr(federation.Clients, 'fed_avg', stopping)
  with pytest.raises(Stopped):
    WholeRun(config, tmp_path / 'run')
  fedavg, before = LAST * CLIENTS, (stop_in - 1) * CLIENTS
  assert estimated(config, tmp_path / 'run') == (fedavg + LAST * CLIENTS, PHASE1 * CLIENTS + before)
  again = WholeRun(config, tmp_path / 'run')
  assert rounds == [*range(1, stop_in), stop_in, *range(stop_in, LAST + 1)]
  assert again.clustering('ifca') == finished.clustering('ifca')
  for found, expected in zip(models(again, 'ifca'), models(finished, 'ifca'), strict=True):
    assert all(map(np.array_equal, found, expected))
  kept = [path.name for path in again.folder.store.glob('alternating-*/*.npz')]
  assert kept == [f'round_{LAST:05d}.npz']


def test_models_that_left_the_store_are_trained_again_by_phase_2(finished, tmp_path):
  config = dataclasses.replace(CONFIG, clusterings=(IFCA,))
  run = WholeRun(config, tmp_path / 'run')
  (kept,) = run.folder.store.glob('alternating-*/round_*.npz')
  before = files.load_arrays(kept)
  kept.unlink()
  run.folder.phase3('ifca').unlink()
  again = WholeRun(config, tmp_path / 'run')
  assert again.clustering('ifca') == run.clustering('ifca')
  assert (again.done.asked, again.done.trained) == (LAST * CLIENTS, LAST * CLIENTS)
  after = files.load_arrays(kept)
  assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_model_without_clients_stays_as_it_is_and_is_told(finished):
  found, arrays = saved(finished, 'ifca')
  unused = sorted(set(range(3)) - set(found.models))
  (told,) = (note for note in finished.clustering('ifca').notes if 'without clients' in note)
  assert told.startswith(f'{len(unused)} model') and ' of 3 ended' in told
  never = [k for k in unused if not arrays['shares'][:, k].any()]
  assert never  # There are three models for two groups.
  with finished.opened() as experiment:
    record = files.load_arrays(experiment.store.root / found.rounds.artifact / f'round_{LAST:05d}.npz')
    for k in never:
      assert all(map(np.array_equal, saved_rounds.model(record, 2, k), experiment.initial_weights(k)))


def test_old_memberships_are_told_though_everybody_took_part(finished):
  # Of rounds 1 to 6 the first and the fifth estimate shares.
  told = 'memberships of 8 clients were estimated up to 1 round before the last one'
  notes = {label: finished.clustering(label).notes for label in ('now_and_then', 'ifca')}
  assert told in notes['now_and_then'] and not any('estimated' in note for note in notes['ifca'])
  found = finished.clustering('now_and_then').alternation
  assert (found.oldest, found.mean_age) == (1, 1.0)


@pytest.mark.parametrize(
  ('options', 'message'),
  [
    ({'start': 'clustering'}, 'needs start_clustering'),
    ({'start_clustering': 'planted'}, 'does not apply to start=random'),
    ({'start_noise': 0.2}, 'it applies to start warm'),
    ({'start': 'cold'}, 'allowed are random, warm, clustering'),
    ({'num_clusters': CLIENTS + 1}, f'{CLIENTS}'),
  ],
)
def test_wrong_options_are_one_line(options, message):
  config = dataclasses.replace(CONFIG, clusterings=(ClusteringConfig('ifca', **options),))
  with pytest.raises(InputError, match=message):
    config.validated()


def test_a_start_from_a_clustering_that_the_run_lacks_is_one_line():
  start = ClusteringConfig('ifca', start='clustering', start_clustering='kmeans')
  with pytest.raises(InputError, match='start from are: planted'):
    dataclasses.replace(CONFIG, clusterings=(start, ClusteringConfig('planted'))).validated()


def test_a_new_folder_is_no_part_of_another(tmp_path):
  assert not list(RunFolder(tmp_path).root.iterdir())

  def drawn(*positions):
    with opened(RunFolder(tmp_path / 'run'), dataclasses.replace(CONFIG, clusterings=(IFCA,))) as experiment:
      return [experiment.initial_weights(position) for position in positions]

  one, other = drawn(1, 2)
  (again,) = drawn(1)
  assert all(map(np.array_equal, one, again))
  assert not np.array_equal(one[0], other[0])


@pytest.mark.parametrize(
  ('method', 'drawn', 'models', 'is_told'),
  [('clove', 7, 4, True), ('clove', 8, 4, False), ('wecfl', 2, 2, True), ('ifca', 2, 4, False), ('fesem', 1, 1, False)],
)  # fmt: skip
def test_rounds_that_divide_few_clients_among_the_models_are_told(method, drawn, models, is_told):
  rounds = SimpleNamespace(
    method=methods.METHODS[method],
    first_round=3,
    _start=SimpleNamespace(models=(None,) * models),
    _clients=SimpleNamespace(cohort=lambda number: np.arange(drawn)),
  )
  told = alternation._Rounds.few(rounds)
  assert told == [
    f'a round draws {drawn} clients, which are divided among {models} models: clients of one group may come to be apart'
  ] * is_told  # fmt: skip
