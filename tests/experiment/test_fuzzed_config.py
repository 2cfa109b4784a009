"""Any JSON value is a configuration that can be saved and read again, or is refused in one line; nothing else."""

import copy
import json

import hypothesis
import pytest
from hypothesis import strategies as st

from tff_cluster.base.errors import InputError
from tff_cluster.clustering.methods import METHODS
from tff_cluster.experiment.config import ExperimentConfig

# Whatever Python reads from JSON: halves of characters, NaN, and integers of any size among it.
TEXTS = st.text(st.characters(), max_size=8) | st.sampled_from(
  ['', 'a\nb', 'a\0b', 'a\u2028b', '\ud800', 'x' * 5000]
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([0, 1, -1, 10**18, 10**400, -0.0, 1e308, 5e-324])
PLAIN = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
  PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)
VALID = [
  ExperimentConfig().to_json(),
  ExperimentConfig.from_json(
    {
      'data': {'dataset': 'mnist', 'partition': 'pathological', 'num_clients': 50, 'noise_clients': 0.1},
      'training': {'model': '2nn', 'sketch_dimension': 64},
      'clusterings': [
        {'method': 'hierarchical', 'distance_threshold': 'quantile:0.1', 'linkage': 'ward'},
        {'method': 'bipartition', 'stopping_norm': 2, 'min_cluster_size': 2},
      ],
      'evaluation': {'num_folds': 3},
    }
  ).to_json(),
]
KEYS = st.sampled_from(['data', 'training', 'clusterings', 'evaluation']) | TEXTS
# Values that some field takes, so that what is allowed is met as well.
TAKEN = st.sampled_from(
  [0, 1, 5, 0.5, 1.0, '0.5', 'mean', 'quantile:0.1', True, 'yes', 'iid', 'mixture', 'mnist', 'l2', 'name', *METHODS]
)  # fmt: skip


def check(value):
  """Returns the configuration, or None where the value was refused."""
  try:
    config = ExperimentConfig.from_json(value)
  except InputError as error:
    assert len(str(error).splitlines()) == 1 and str(error).isprintable() and len(str(error)) < 2200
    return None
  again = ExperimentConfig.from_json(json.loads(json.dumps(config.to_json(), allow_nan=False)))
  assert again == config and again.digest == config.digest
  assert again.to_json() == config.to_json()
  return config


@hypothesis.settings(deadline=None)
@hypothesis.given(VALUES | st.dictionaries(KEYS, VALUES | st.lists(VALUES, max_size=2), max_size=4))
def test_any_value(value):
  check(value)


def places(value):
  """Returns (section, or position of a clustering; field) for each field of a saved configuration."""
  found = [(name, field) for name in ('data', 'training', 'evaluation') for field in value[name]]
  return found + [(k, field) for k, clustering in enumerate(value['clusterings']) for field in clustering]


@hypothesis.settings(deadline=None, max_examples=2 * hypothesis.settings().max_examples)
@hypothesis.given(st.data())
def test_a_valid_one_with_a_field_or_two_changed(data):
  value = copy.deepcopy(data.draw(st.sampled_from(VALID)))
  for _ in range(data.draw(st.integers(1, 2))):
    section, field = data.draw(st.sampled_from(places(value)))
    part = value['clusterings'][section] if isinstance(section, int) else value[section]
    part[field] = data.draw(TAKEN | VALUES)
  check(value)


@hypothesis.settings(deadline=None)
@hypothesis.given(st.data())
def test_a_valid_one_with_a_field_renamed_removed_or_added(data):
  value = copy.deepcopy(data.draw(st.sampled_from(VALID)))
  section, field = data.draw(st.sampled_from(places(value)))
  part = value['clusterings'][section] if isinstance(section, int) else value[section]
  old, name = part.pop(field), data.draw(TEXTS)
  if data.draw(st.booleans()):
    part[name] = old
    assert check(value) is None
  else:
    check(value)


@pytest.mark.parametrize('depth', [500, 100_000])
@pytest.mark.parametrize('place', ['everything', 'section', 'field', 'clusterings', 'clustering', 'key'])
def test_values_that_nest_deeply(place, depth):
  deep = []
  for _ in range(depth):
    deep = [deep]
  value = {
    'everything': deep,
    'section': {'data': deep},
    'field': {'training': {'seed': deep}},
    'clusterings': {'clusterings': {'kmeans': deep}},
    'clustering': {'clusterings': [deep]},
    'key': {'data': {'deep': deep}},
  }[place]
  assert check(value) is None


def test_the_largest_integer_is_that_of_flags_and_names_have_100_bytes():
  for seed in (10**18 - 1, 10**18, 10**5000):
    assert (check({'training': {'seed': seed}}) is None) == (seed >= 10**18)
  for name, fits in (('n' * 100, True), ('n' * 101, False), ('é' * 50, True), ('é' * 50 + 'n', False)):
    assert (check({'clusterings': [{'name': name}]}) is not None) == fits


def test_what_is_changed_is_valid_and_has_fields_to_change():
  assert all(check(value) is not None for value in VALID)
  for clustering in VALID[1]['clusterings']:
    assert len(set(clustering) & set(METHODS[clustering['method']].fields())) >= 2
