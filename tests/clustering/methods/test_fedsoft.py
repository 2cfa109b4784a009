"""FedSoft (Ruan and Joe-Wong 2022): importance by counting, proximal work from the mixture, means by importance."""

import numpy as np
import pytest

from tests.clustering.methods.fake_federation import FEATURES, RATE, Fake, groups, models_of, vector_of
from tff_cluster.base import digests, seeding
from tff_cluster.base.arrays import one_hot
from tff_cluster.base.errors import InputError
from tff_cluster.clustering.alternating import State
from tff_cluster.clustering.methods import fedsoft

METHOD = fedsoft.METHOD


class Rows(Fake):
  """A fake federation whose clients have rows, whose losses are given: [models, rows] a client."""

  def __init__(self, targets, losses, **options):
    super().__init__(targets, **options)
    self.given, self.asked = losses, []

  def row_losses(self, models, clients):
    self.asked.append(list(clients))
    return [self.given[k] for k in clients]


def losses_of(seed, clients, models=3, rows=40):
  rng = np.random.default_rng(seed)
  return [rng.normal(size=(models, rows)) + 0.5 * rng.normal(size=(models, 1)) for _ in range(clients)]


def started(vectors, clients):
  return State(models_of(vectors), np.zeros((len(vectors), clients)), np.zeros(clients, np.int64))


def counted(losses):
  """Shares of rows, one row after the other."""
  shares = np.zeros(len(losses))
  for column in losses.T:
    shares[list(column).index(min(column))] += 1 / losses.shape[1]
  shares = np.where(shares == 0, 1e-4, shares)
  return shares / shares.sum()


def test_importance_is_the_share_of_rows_that_a_model_has_the_least_loss_of():
  losses = losses_of(0, 6)
  losses[3][1] += 100  # No row's loss is least under this model.
  found = METHOD.assign(fedsoft.Options(num_clusters=3), losses)
  np.testing.assert_allclose(found, np.stack([counted(each) for each in losses], axis=1))
  assert found[1, 3] == pytest.approx(1e-4, rel=1e-3)


def test_a_model_that_diverged_has_the_least_loss_of_no_row():
  losses = np.array([[np.nan, np.nan, 0.1], [0.2, 0.3, 0.4]])
  found = METHOD.assign(fedsoft.Options(num_clusters=2), [losses])
  np.testing.assert_allclose(found[:, 0], [1 / 3, 2 / 3])
  # Without any finite loss it gets not even the least share, unless there is no other model.
  lost = np.full(3, np.inf)
  found = METHOD.assign(
    fedsoft.Options(num_clusters=2), [np.stack([lost, losses[1]]), np.stack([lost, lost])]
  )
  np.testing.assert_allclose(found, [[0.0, 1 / 1.0001], [1.0, 1e-4 / 1.0001]])


def test_a_round_of_all_clients_averages_by_importance_and_rows():
  targets, _ = groups(1, 3, 4)
  rows, losses, vectors = (
    np.arange(10, 22),
    losses_of(1, 12),
    np.random.default_rng(2).normal(size=(3, FEATURES)),
  )
  clients = Rows(targets, losses, rows=rows)
  state = METHOD.step(fedsoft.Options(num_clusters=3, attraction=0.7), clients, started(vectors, 12), 1)
  shares = np.stack([counted(each) for each in losses], axis=1)
  vectors = np.stack([vector_of(model.weights) for model in models_of(vectors)])
  ends = []
  for k in range(12):
    start = sum(shares[s, k] * vectors[s] for s in range(3))
    noise = seeding.generator(0, 'noise', 1, clients.client_ids[k]).normal(scale=0.01, size=FEATURES)
    ends.append(start + RATE * (targets[k] + noise - start))
  for s in range(3):
    weights = [shares[s, k] * rows[k] for k in range(12)]
    expected = sum(w * end for w, end in zip(weights, ends, strict=True)) / sum(weights)
    np.testing.assert_allclose(vector_of(state.models[s].weights), expected, atol=1e-5)
  assert clients.proximal_mu == [0.7] and clients.known == [True]
  np.testing.assert_allclose(state.membership, shares)


def test_with_a_cohort_each_model_draws_its_own_clients_by_importance_and_takes_the_plain_mean():
  targets, _ = groups(3, 2, 10)
  losses = losses_of(3, 20, models=2)
  clients = Rows(targets, losses, drawn=0.4)
  shares = np.stack([counted(each) for each in losses], axis=1)
  drawn = np.zeros((2, 20))
  for number in range(1, 401):
    state = State(models_of(np.eye(2, FEATURES)), shares, np.zeros(20, np.int64), given=True)
    weights = METHOD._weights(clients, state, number)
    assert (weights.sum(axis=1) == 4).all() and set(np.unique(weights)) == {0.0, 1.0}
    drawn += weights
  # Drawn more often, the more important; of equal rows.
  for s in range(2):
    assert np.corrcoef(drawn[s], shares[s])[0, 1] > 0.9


def test_a_model_under_which_no_row_has_a_finite_loss_draws_nobody_and_stays():
  targets, _ = groups(3, 2, 10)
  losses = losses_of(3, 20, models=2)
  for each in losses:
    each[1] = np.nan
  clients, state = Rows(targets, losses, drawn=0.4), started(np.eye(2, FEATURES), 20)
  after = METHOD.step(METHOD.read({'num_clusters': 2}), clients, state, 1)
  assert np.array_equal(vector_of(after.models[1].weights), vector_of(state.models[1].weights))
  assert not np.array_equal(vector_of(after.models[0].weights), vector_of(state.models[0].weights))


def test_a_given_cluster_of_fewer_clients_than_a_model_draws_trains_all_of_them():
  targets, _ = groups(6, 2, 5)
  clients = Rows(targets, losses_of(6, 10, models=2), drawn=0.8)
  given = one_hot(np.arange(10) == 3, 2)
  state = State(models_of(np.eye(2, FEATURES)), given, np.zeros(10, np.int64), given=True)
  weights = METHOD._weights(clients, state, 1)
  # Four of the ten are drawn for each of the two models, and one has a single client.
  assert np.flatnonzero(weights[1]).tolist() == [3]
  assert weights[0].sum() == 4 and not weights[0, 3]
  after = METHOD.step(fedsoft.Options(num_clusters=2), clients, state, 1)
  assert clients.known == [False]  # They are sent the one model that they start from.
  start = vector_of(state.models[1].weights)
  np.testing.assert_allclose(
    vector_of(after.models[1].weights) - start, clients.update(1, state.models[1].weights, 3), atol=1e-6
  )


def drawn_by(state, number):
  """Returns whom each of two models draws of twenty clients, ten a round."""
  targets, _ = groups(8, 2, 10)
  return METHOD._weights(Rows(targets, losses_of(8, 20, models=2), drawn=0.5), state, number)


def test_given_clusters_that_start_from_one_model_draw_clients_of_their_own():
  one, shares = models_of(np.ones((1, FEATURES))) * 2, np.array([[0.6] * 20, [0.4] * 20])
  state = State(one, shares, np.zeros(20, np.int64), given=True)
  alike = np.mean([np.array_equal(*drawn_by(state, number)) for number in range(1, 101)])
  assert alike < 0.05  # Five of twenty are the same five once in 15,504 rounds.
  again, order = drawn_by(state, 1), [1, 0]
  turned = State(one, shares[order], np.zeros(20, np.int64), given=True)
  np.testing.assert_array_equal(drawn_by(turned, 1), again[order])


def test_whom_a_model_draws_follows_from_it_where_no_clusters_are_given():
  state = State(models_of(np.eye(2, FEATURES)), np.full((2, 20), 0.5), np.zeros(20, np.int64))
  for number in range(1, 6):
    for model, row in zip(state.weights, drawn_by(state, number), strict=True):
      generator = seeding.generator(0, 'clients of a model', digests.of_arrays(model), number)
      assert set(np.flatnonzero(row)) == set(generator.choice(20, 5, replace=False, p=np.full(20, 1 / 20)))


def test_importance_is_estimated_every_so_many_rounds():
  targets, _ = groups(4, 2, 3)
  clients = Rows(targets, losses_of(4, 6, models=2))
  options = fedsoft.Options(num_clusters=2, estimation_interval=3)
  state = started(np.eye(2, FEATURES), 6)
  for number in range(1, 8):
    state = METHOD.step(options, clients, state, number)
    assert (state.since == (number - 1) // 3 * 3 + 1).all()
  assert clients.asked == [list(range(6))] * 3


def test_clients_whose_updates_are_not_finite_are_left_out():
  targets, _ = groups(5, 2, 3)
  rows, losses, others = np.arange(10, 16), losses_of(5, 6, models=2), [0, 1, 3, 4, 5]
  lacking = Rows(targets, losses, rows=rows, diverging=('c02',))
  fewer = Rows(
    targets[others], [losses[k] for k in others], rows=rows[others], client_ids=[f'c{k:02}' for k in others]
  )
  state, alone = (
    METHOD.step(fedsoft.Options(num_clusters=2), clients, started(np.eye(2, FEATURES), len(clients.rows)), 1)
    for clients in (lacking, fewer)
  )
  np.testing.assert_array_equal(state.membership[:, others], alone.membership)
  np.testing.assert_allclose(state.membership[:, 2], counted(losses[2]))
  for model, same in zip(state.models, alone.models, strict=True):
    np.testing.assert_allclose(vector_of(model.weights), vector_of(same.weights), rtol=1e-6)


@pytest.mark.parametrize(
  ('options', 'message'),
  [({'attraction': -0.1}, 'attraction=-0.1: must be at least 0'), ({'estimation_interval': 0}, 'at least 1')],
)
def test_wrong_options_are_one_line(options, message):
  with pytest.raises(InputError, match=message):
    METHOD.read(options)
