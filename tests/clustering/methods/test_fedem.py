"""FedEM (Marfoq et al. 2021): its steps are those of expectation-maximization, written out again in NumPy."""

import numpy as np
import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.clustering.alternating import Model, State
from tff_cluster.clustering.methods import fedem

NOISE = 0.5


class Regressions:
  """Clients with rows y = x theta_k + noise of two components; a round finds the weighted least squares of all their rows.

  So the negative log-likelihood of a row is (y - x theta)^2 / (2 NOISE^2), but for a constant.
  """

  seed = first_round = 0

  def __init__(self, shares, rows=60, features=3, seed=0):
    rng = np.random.default_rng(seed)
    self.thetas = rng.normal(size=(2, features)) + np.array([[1.5], [-1.5]])
    self.client_ids = tuple(f'c{k}' for k in range(len(shares)))
    self.rows = np.full(len(shares), rows)
    self.x = rng.normal(size=(len(shares), rows, features))
    self.component = np.array([np.arange(rows) < share * rows for share in shares]).astype(int)
    noise = NOISE * rng.normal(size=(len(shares), rows))
    self.y = np.einsum('irf,irf->ir', self.x, self.thetas[self.component]) + noise

  def cohort(self, number):
    return np.arange(len(self.rows))

  def row_losses(self, models, clients):
    return [
      np.stack([np.square(self.y[k] - self.x[k] @ theta) / (2 * NOISE**2) for (theta,) in models])
      for k in clients
    ]

  def fed_avg(self, number, models, users, equal=False, row_weights=None):
    found = []
    for clients, weights in zip(users, row_weights, strict=True):
      root = np.sqrt(np.concatenate(weights))
      x, y = np.concatenate(self.x[clients]), np.concatenate(self.y[clients])
      found.append(Model((np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0],)))
    return tuple(found)


def expectation_maximization(clients, thetas, rounds):
  """A mixture of linear regressions with shares of its own for every client, row by row."""
  count, shares = len(clients.rows), np.full((len(clients.rows), len(thetas)), 1 / len(thetas))
  for _ in range(rounds):
    weights = np.zeros((len(thetas), count, clients.rows[0]))
    for i in range(count):
      for j in range(clients.rows[0]):
        errors = [clients.y[i, j] - clients.x[i, j] @ theta for theta in thetas]
        likely = [shares[i, k] * np.exp(-(e**2) / (2 * NOISE**2)) for k, e in enumerate(errors)]
        for k, value in enumerate(likely):
          weights[k, i, j] = value / sum(likely)
      shares[i] = weights[:, i].mean(axis=1)
    for k in range(len(thetas)):
      x, y, w = clients.x.reshape(-1, 3), clients.y.ravel(), weights[k].ravel()
      thetas[k] = np.linalg.solve((x * w[:, None]).T @ x, (x * w[:, None]).T @ y)
  return thetas, shares


def ran(clients, thetas, rounds):
  """Returns the state of FedEM after some rounds."""
  method, options = fedem.METHOD, fedem.Options(num_clusters=len(thetas))
  membership = np.zeros((len(thetas), len(clients.rows)))
  state = State(tuple(Model((theta,)) for theta in thetas), membership, np.zeros(len(clients.rows), int))
  for number in range(1, rounds + 1):
    state = method.step(options, clients, state, number)
  return state


STARTS = np.array([[0.3, 0.1, 0.2], [-0.2, -0.1, -0.3]])


@pytest.mark.parametrize('rounds', [1, 4, 12])
def test_on_linear_regression_it_is_expectation_maximization(rounds):
  clients = Regressions([0.9, 0.7, 0.5, 0.2])
  state = ran(clients, list(STARTS), rounds)
  thetas, shares = expectation_maximization(clients, STARTS.copy(), rounds)
  for model, theta in zip(state.models, thetas, strict=True):
    np.testing.assert_allclose(model.weights[0], theta, rtol=1e-6)
  np.testing.assert_allclose(state.membership, shares.T, rtol=1e-6, atol=1e-9)
  np.testing.assert_allclose(state.membership.sum(axis=0), 1.0)
  assert (state.since == rounds).all()


def test_it_finds_the_components_and_the_shares_of_known_mixtures():
  planted = np.array([0.9, 0.7, 0.5, 0.2])
  clients = Regressions(planted)
  state = ran(clients, list(STARTS), 30)
  order = np.argsort([-model.weights[0][0] for model in state.models])
  truth = np.argsort(-clients.thetas[:, 0])
  for found, component in zip(order, truth, strict=True):
    np.testing.assert_allclose(state.models[found].weights[0], clients.thetas[component], atol=0.25)
  # Component 1 is the one that `planted` counts.
  of_component_1 = state.membership[order[list(truth).index(1)]]
  np.testing.assert_allclose(of_component_1, planted, atol=0.15)


def test_newcomers_estimate_shares_with_fixed_models_as_em_does():
  clients = Regressions([0.8, 0.3], rows=200)
  losses = clients.row_losses([(theta,) for theta in clients.thetas], np.arange(2))
  shares = fedem.METHOD.assign(fedem.Options(num_clusters=2), losses)
  for i in range(2):
    expected = np.full(2, 0.5)
    for _ in range(500):
      q = expected[:, None] * np.exp(-losses[i])
      expected = (q / q.sum(axis=0)).mean(axis=1)
    np.testing.assert_allclose(shares[:, i], expected, atol=1e-5)
  np.testing.assert_allclose(shares[1], [0.8, 0.3], atol=0.1)


def test_shares_that_are_given_weigh_the_rows_of_the_first_m_step():
  clients, given = Regressions([0.9, 0.4, 0.2]), np.array([[1.0, 0.25, 0.5], [0.0, 0.75, 0.5]])
  state = State(tuple(Model((theta,)) for theta in STARTS), given, np.zeros(3, int), given=True)
  after = fedem.METHOD.step(fedem.Options(num_clusters=2), clients, state, 1)
  np.testing.assert_array_equal(after.membership, given)
  for model, shares in zip(after.models, given, strict=True):
    # Normal equations, each client's weighted by its share.
    left = sum(share * x.T @ x for share, x in zip(shares, clients.x, strict=True))
    right = sum(share * x.T @ y for share, x, y in zip(shares, clients.x, clients.y, strict=True))
    np.testing.assert_allclose(model.weights[0], np.linalg.solve(left, right), rtol=1e-6)


def test_with_one_component_every_row_weighs_one():
  weights = fedem.responsibilities(np.array([[0.3, 5.0, 900.0]]), np.ones(1))
  assert (weights == 1.0).all()


def test_huge_losses_and_diverged_models_leave_finite_shares():
  losses = np.array([[1e5, 2e5, np.nan], [1e5 + 1, np.inf, np.nan]])
  found = fedem.responsibilities(losses, np.array([0.5, 0.5]))
  np.testing.assert_allclose(found.sum(axis=0), 1.0)
  np.testing.assert_allclose(found[:, 0], [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))])
  np.testing.assert_allclose(found[:, 1:], [[1.0, 0.5], [0.0, 0.5]])


def test_the_names_of_the_models_do_not_matter():
  clients = Regressions([0.9, 0.4, 0.2])
  one, other = ran(clients, list(STARTS), 5), ran(clients, list(STARTS[::-1]), 5)
  np.testing.assert_allclose(one.membership, other.membership[::-1], rtol=1e-9)


def test_it_may_start_from_clusters_though_its_default_number_is_its_own():
  start = {'start': 'clustering', 'start_clustering': 'planted'}
  assert fedem.METHOD.told_number(fedem.METHOD.read(start)) is None
  with pytest.raises(InputError, match='num_clusters=4 does not apply to start=clustering'):
    fedem.METHOD.read(start | {'num_clusters': 4})


def test_a_number_of_components_below_one_is_one_line():
  with pytest.raises(InputError, match='num_clusters=0: must be at least 1'):
    fedem.METHOD.read({'num_clusters': 0})
