"""Any JSON value is a configuration that can be saved and read again, or is refused in one line; nothing else."""

import copy
import dataclasses
import json

import hypothesis
import pytest
from hypothesis import strategies as st

from tff_cluster.base import fields
from tff_cluster.base.errors import InputError
from tff_cluster.clustering.methods import METHODS
from tff_cluster.experiment.config import DataConfig, EvaluationConfig, ExperimentConfig, TrainingConfig

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
        {'method': 'spectral', 'num_clusters': 3},
        {'method': 'fedgroup', 'signature': 'weights'},
        {'method': 'pacfl', 'num_clusters': 3, 'measure': 'trace'},
      ],
      'evaluation': {'num_folds': 3, 'aggregation': ['vote', 'gate,name=g']},
    }
  ).to_json(),
  ExperimentConfig.from_json(
    {
      'data': {'dataset': 'emnist', 'partition': 'by_writer', 'malicious_clients': 0.2, 'new_clients': 3},
      'clusterings': [
        {'method': 'planted'},
        {'method': 'dynamic_distance', 'distance_threshold': '3.5', 'name': 'dd'},
      ],
    }
  ).to_json(),
]
SECTIONS = {'data': DataConfig, 'training': TrainingConfig, 'evaluation': EvaluationConfig}
KEYS = st.sampled_from(['data', 'training', 'clusterings', 'evaluation']) | TEXTS


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


@hypothesis.given(VALUES | st.dictionaries(KEYS, VALUES | st.lists(VALUES, max_size=2), max_size=4))
def test_any_value(value):
  check(value)


def allowed(field):
  """Returns the values that a field's declaration allows; of a text without choices, some that one or the other takes."""
  rule, kind = field.metadata, fields.plain_type(field)[0]
  if 'choices' in rule:
    return st.sampled_from(rule['choices'])
  low, high = rule.get('above', rule.get('at_least', 0)), rule.get('at_most')
  if kind is int:
    return st.integers(low, 100 if high is None else high)
  if kind is float:
    return st.floats(low, 100.0 if high is None else high, exclude_min='above' in rule)
  texts = st.sampled_from(
    ['mean', '0.5', 'quantile:0.1', 'name', 'group', 'tfds:some', 'my_models:small', '2nn']
  )
  return st.booleans() if kind is bool else texts


@hypothesis.given(st.data())
def test_a_valid_one_with_fields_changed_or_renamed(data):
  value = copy.deepcopy(data.draw(st.sampled_from(VALID)))
  parts = [(value[name], {f.name: f for f in dataclasses.fields(kind)}) for name, kind in SECTIONS.items()]
  parts += [(each, METHODS[each['method']].fields()) for each in value['clusterings']]
  for _ in range(data.draw(st.integers(0, 3))):
    part, declared = data.draw(st.sampled_from(parts))
    name = data.draw(st.sampled_from(sorted(declared)))
    part[name] = data.draw(allowed(declared[name]) | allowed(declared[name]) | VALUES)
  check(value)
  part, declared = data.draw(st.sampled_from(parts))
  part[data.draw(TEXTS)] = part.pop(data.draw(st.sampled_from(sorted(part))))
  assert check(value) is None


@pytest.mark.parametrize('depth', [500, 100_000])
def test_values_that_nest_deeply(depth):
  deep = []
  for _ in range(depth):
    deep = [deep]
  for value in (
    deep,
    {'data': deep},
    {'training': {'seed': deep}},
    {'clusterings': [deep]},
    {'data': {'deep': deep}},
  ):
    assert check(value) is None
  assert all(check(value) is not None for value in VALID)


def test_the_largest_integer_is_that_of_flags_and_names_have_100_bytes():
  for seed in (10**18 - 1, 10**18, 10**5000):
    assert (check({'training': {'seed': seed}}) is None) == (seed >= 10**18)
  for name, fits in (('n' * 100, True), ('n' * 101, False), ('é' * 50, True), ('é' * 50 + 'n', False)):
    assert (check({'clusterings': [{'name': name}]}) is not None) == fits
