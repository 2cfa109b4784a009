"""What a run needs of the memory, as a function of its configuration; tests/programs/test_memory.py compares it with runs."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tff_cluster.base.errors import InputError
from tff_cluster.experiment import memory_need
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)

SIZE = memory_need.Size(1000, 784, 10, 20, 20, clusters=3, parallel=2, experts=True)


@pytest.mark.parametrize(
  ('name', 'held'),
  # Bytes that each of them holds at the least: a row itself, an update, a model.
  [('rows', 784), ('cohort', 4 * 1000), ('clusters', 4 * 1000)]
  + [(name, 0) for name in ('row_bytes', 'num_classes', 'clients', 'parallel')],
)
@given(factor=st.integers(2, 1000), experts=st.booleans())
def test_more_of_anything_needs_more(name, held, factor, experts):
  size = dataclasses.replace(SIZE, clients=20_000, experts=experts)  # As many as the largest cohort.
  number = getattr(size, name)
  larger = dataclasses.replace(size, **{name: factor * number})
  assert larger.needed(1000) - size.needed(1000) > held * (factor - 1) * number


@given(st.integers(2, 1000))
def test_a_larger_model_needs_more_and_so_do_experts(factor):
  assert SIZE.needed(factor * 1000) - SIZE.needed(1000) > 4 * 1000 * (factor - 1)
  assert SIZE.needed(1000) > dataclasses.replace(SIZE, experts=False).needed(1000)


def test_many_classes_are_counted_by_class_and_not_by_pairs_of_classes():
  few, many = (dataclasses.replace(SIZE, num_classes=n, experts=False).needed(0) for n in (1_000, 64_000))
  assert many - few < 100 * (few - dataclasses.replace(SIZE, num_classes=1, experts=False).needed(0))


def test_what_is_known_comes_from_the_configuration():
  config = ExperimentConfig(
    DataConfig(num_clients=50, new_clients=10, rows_per_client=20),
    TrainingConfig(cohort_fraction=0.5, sketch_dimension=64),
    (ClusteringConfig('kmeans', num_clusters=7), ClusteringConfig('dynamic_distance', signature='updates')),
    EvaluationConfig(aggregation=('vote',)),
  )
  size = memory_need.of_config(config, 100_000, 784, 10, 3)
  assert (size.clients, size.cohort, size.clusters, size.parallel) == (40, 20, 7, 3)
  assert 50 * 20 <= size.rows < 100_000 and size.experts
  # The weights and the updates of 40 clients, 64 numbers each.
  assert size.on_disk(1_000_000) == 2 * 40 * 64 * 4
  assert memory_need.of_config(ExperimentConfig(), 100, 784, 10, 1).on_disk(1000) == 20 * 1000 * 4
  # Of a method that trains, too: the map of the clients is made from them.
  alone = ExperimentConfig(clusterings=(ClusteringConfig('ifca', num_clusters=2),))
  assert memory_need.of_config(alone, 100, 784, 10, 1).on_disk(1000) == 20 * 1000 * 4


def test_ditto_needs_the_models_that_its_clients_are_pulled_to_up_to_a_limit():
  config = ExperimentConfig(training=TrainingConfig(phase1_rounds=7, phase2_rounds=5))
  with_ditto = dataclasses.replace(config, evaluation=EvaluationConfig(ditto=0.0))
  without, needed = (memory_need.of_config(each, 1000, 784, 10, 1) for each in (config, with_ditto))
  for parameters, models in ((1_000_000, 12), (100_000_000, 0.5)):
    assert needed.needed(parameters) - without.needed(parameters) == 4 * models * parameters


def test_what_does_not_fit_is_refused_with_both_numbers():
  memory_need.check(2_000_000_000, 2_000_000_000)
  memory_need.check(10**15, None)
  with pytest.raises(
    InputError, match=r'about 3\.0 GB of memory, of which 2\.0 GB are available; use a smaller model'
  ):
    memory_need.check(3_000_000_000, 2_000_000_000)


def test_the_line_names_what_is_known():
  line = SIZE.words(5_000_000_000, 1_000_000)
  assert f'{SIZE.needed(1_000_000) / 1e9:.1f} GB, 5.0 GB are available; signatures on disk: 0.08 GB' in line
  # Every client and every cluster costs so many times the model, whatever that is.
  unknown = SIZE.words(None)
  more = SIZE.needed(300_000) - SIZE.needed(200_000)
  assert f', and {more // 400_000} copies of the model' in unknown and 'available' not in unknown
