"""Sums in chunks: against NumPy, TFF's own mean, and chunks that are computed apart."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import make_population
from tests.federated.small_trainer import make_trainer
from tff_cluster.federated import chunked_sum

pytestmark = pytest.mark.tensorflow


@given(st.integers(1, 300))
def test_chunks_hold_every_client_once_in_order_and_are_of_nearly_one_size(count):
  chunks = chunked_sum.chunks(count)
  assert np.concatenate(chunks).tolist() == list(range(count))
  sizes = [len(chunk) for chunk in chunks]
  assert min(sizes) >= 1 and max(sizes) <= 4 and max(sizes) - min(sizes) <= 1
  assert np.flatnonzero(chunked_sum.is_last(count)).tolist() == [chunk[-1] for chunk in chunks]


def test_a_sum_is_that_of_its_chunks_in_the_order_of_numpy(tff_context):
  import tensorflow as tf
  import tensorflow_federated as tff

  specs = [tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int32)]
  add_up, kind = chunked_sum.build(specs), tff.types.tensorflow_to_type(specs)

  @tff.federated_computation(
    tff.types.FederatedType(kind, tff.CLIENTS), tff.types.FederatedType(np.bool_, tff.CLIENTS)
  )
  def total(values, last):
    return add_up(values, last)

  # Magnitudes so far apart that the order of additions shows.
  rng = np.random.default_rng(4)
  values = (rng.normal(size=(11, 3)) * 10.0 ** rng.integers(-6, 6, (11, 3))).astype(np.float32)
  found = total([[value, 1] for value in values], list(chunked_sum.is_last(11)))
  expected = np.zeros(3, np.float32)
  for chunk in chunked_sum.chunks(11):
    part = np.zeros(3, np.float32)
    for k in chunk:
      part = part + values[k]
    expected = expected + part
  assert found[0].tobytes() == expected.tobytes() and found[1] == 11
  one_after_the_other = list(itertools.accumulate(values, lambda a, b: a + b))[-1]
  assert found[0].tobytes() != one_after_the_other.tobytes()


def test_several_sums_at_once_are_each_a_sum_of_its_own(tff_context):
  import tensorflow as tf
  import tensorflow_federated as tff

  # A weight without a number, too.
  specs = [tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.float32), tf.TensorSpec([0, 2], tf.float32)]
  add_up, kind = chunked_sum.build(specs, 3), tff.types.tensorflow_to_type(specs)

  @tff.federated_computation(
    *(tff.types.FederatedType(each, tff.CLIENTS) for each in (kind, np.bool_, np.int32))
  )
  def total(values, last, which):
    return add_up(values, last, which)

  values = np.random.default_rng(5).normal(size=(8, 3)).astype(np.float32)
  which = [0, 0, 0, 0, 0, 2, 2, 2]
  last = [*chunked_sum.is_last(5), *chunked_sum.is_last(3)]
  vectors, numbers, nothing = total(
    [[value, value[0], np.zeros((0, 2), np.float32)] for value in values], last, np.array(which, np.int32)
  )
  halves = (values[0] + values[1] + values[2]) + (values[3] + values[4])
  expected = [halves, np.zeros(3, np.float32), values[5] + values[6] + values[7]]
  assert vectors.tobytes() == np.stack(expected).tobytes() and nothing.shape == (3, 0, 2)
  assert numbers.tolist() == [float(each[0]) for each in expected]


class Apart:
  """Has one worker compute chunk by chunk, as several do; the later chunks first."""

  apart = True

  def __init__(self, here):
    self._here, self.chunks = here, []
    self.each = here.each

  def totals(self, computation, shared, chunks):
    self.chunks.append([len(chunk) for chunk in chunks])
    return list(self._here.totals(computation, shared, chunks[::-1]))[::-1]


ADAM = {
  'server': {'optimizer': 'adam', 'learning_rate': 0.05},
  'learning_rate_decay': 0.5,
  'optimizer': 'momentum',
}


@pytest.mark.parametrize('aggregator', ['mean', 'robust'])
@pytest.mark.parametrize(('message_bytes', 'options'), [(10**9, {}), (300, ADAM)], ids=str)
def test_rounds_and_means_that_are_computed_apart_have_the_same_bits(
  aggregator, message_bytes, options, tff_context, monkeypatch
):
  from tff_cluster.engine import jobs

  population, everyone = make_population(clients=11), np.arange(11)
  trainer = make_trainer(population, aggregator=aggregator, **options)
  initial = trainer.start(trainer.computations.model.weights)

  def numbers():
    state, _ = trainer.round(initial, everyone, 1)
    state, figures = trainer.round(state, everyone, 2)
    mean = trainer.mean_update(trainer.weights(state), everyone[:9], 3)
    return [*trainer.state_arrays(state), np.array(list(figures.values())), mean]

  here = numbers()
  trainer.workers = Apart(trainer.workers)
  monkeypatch.setattr(jobs, 'MESSAGE_BYTES', message_bytes)
  elsewhere = numbers()
  assert [a.tobytes() for a in here] == [a.tobytes() for a in elsewhere]
  assert trainer.workers.chunks == [*([[4, 4, 3]] * 2 if aggregator == 'mean' else []), [3, 3, 3]]


def test_a_cohort_of_one_chunk_has_the_bits_of_the_mean_of_tff(tff_context):
  import tensorflow_federated as tff

  from tff_cluster.federated import tff_computations

  trainer = make_trainer(make_population())
  ours, _ = trainer.round(trainer.start(trainer.computations.model.weights), np.arange(4), 1)
  stock = tff_computations.Computations(
    trainer.computations.model, trainer.computations.local, aggregator=tff.aggregators.MeanFactory()
  )
  trainer.computations, trainer._initial_state = stock, None
  theirs, _ = trainer.round(trainer.start(stock.model.weights), np.arange(4), 1)
  for one, other in zip(trainer.weights(ours), trainer.weights(theirs), strict=True):
    assert one.tobytes() == other.tobytes()


def state_of(trainer, seed):
  rng = np.random.default_rng(seed)
  like = trainer.computations.model.weights
  return trainer.start(tuple(rng.normal(size=w.shape, scale=0.1).astype(np.float32) for w in like))


@pytest.mark.parametrize(
  ('equal', 'weighs_rows', 'options'),
  [(False, False, {}), (True, True, {'learning_rate_decay': 0.5})],
  ids=['rows', 'equal and row weights'],
)
def test_rounds_of_several_models_in_one_call_have_the_bits_of_a_call_each(
  equal, weighs_rows, options, tff_context
):
  # Of the third model's clients one sends NaN, all of the fourth's do, and the fifth has none.
  scales = np.ones(11, np.float32)
  scales[[8, 9, 10]] = np.nan
  population = dataclasses.replace(make_population(clients=11), update_scales=scales)
  cohorts = [np.array(cohort, np.int64) for cohort in ([0, 1, 2, 5, 6], [3], [4, 8], [9, 10], [])]
  row_weights = None
  if weighs_rows:
    rng = np.random.default_rng(2)
    row_weights = [[rng.uniform(size=population.train.counts[k]) for k in cohort] for cohort in cohorts]
  trainer = make_trainer(population, **options)
  states = [state_of(trainer, seed) for seed in range(5)]
  assert trainer.joins_rounds(cohorts)
  together = trainer.several_rounds(states, cohorts, 2, equal, row_weights)
  for k, (after, figures) in enumerate(together[:4]):
    weights = None if row_weights is None else row_weights[k]
    expected, told = trainer.round(states[k], cohorts[k], 2, equal, weights)
    assert [a.tobytes() for a in trainer.state_arrays(after)] == [
      a.tobytes() for a in trainer.state_arrays(expected)
    ]
    assert figures == {name: told[name] for name in ('train_loss', 'visited', 'dropped')}
  assert [figures['dropped'] for _, figures in together] == [0, 0, 1, 2, 0]
  moved = [
    trainer.weights(after)[0].tobytes() != trainer.weights(state)[0].tobytes()
    for (after, _), state in zip(together, states, strict=True)
  ]
  assert moved == [True, True, True, False, False]


def test_only_means_on_one_machine_are_joined_and_no_more_than_fit(tff_context, monkeypatch):
  from tff_cluster.federated import trainer as trainer_lib

  population, pairs = make_population(), [np.array([0, 1]), np.array([2, 3])]
  trainer = make_trainer(population)
  assert trainer.joins_rounds(pairs)
  assert not trainer.joins_rounds([np.arange(4), np.array([], np.int64)])
  assert not make_trainer(population, aggregator='robust').joins_rounds(pairs)
  assert not make_trainer(population, server=ADAM['server']).joins_rounds(pairs)
  # Rows with their orders and weights; and 3 models a client, and 4 sums after each of two chunks.
  rows = int(population.train.counts[:4].sum()) * (
    population.train.x[:1].nbytes + 8 + 4 * trainer.local_epochs
  )
  fits = rows + (3 * 4 + 4 * 2) * trainer.computations.model.num_bytes
  for most, joins in ((fits, True), (fits - 1, False)):
    monkeypatch.setattr(trainer_lib, '_JOINED_BYTES', most)
    assert trainer.joins_rounds(pairs) == joins
  monkeypatch.undo()
  trainer.workers = Apart(trainer.workers)
  assert not trainer.joins_rounds(pairs)
