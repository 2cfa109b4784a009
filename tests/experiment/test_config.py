"""ExperimentConfig: what determines its digest, and what is refused by name; test_fuzzed_config.py saves and reads."""

import dataclasses
import math

import numpy as np
import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.cli.flags import ClusteringFlags
from tff_cluster.clustering.methods import METHODS
from tff_cluster.experiment import config
from tff_cluster.experiment.config import (
  ClusteringConfig,
  DataConfig,
  EvaluationConfig,
  ExperimentConfig,
  TrainingConfig,
)

SECTIONS = (DataConfig, TrainingConfig, ClusteringFlags, EvaluationConfig)
FIELDS = [(kind, field) for kind in SECTIONS for field in dataclasses.fields(kind)]
BOUNDED = [
  (kind, field, bound) for kind, field in FIELDS for bound in ('at_least', 'above', 'at_most') if bound in field.metadata
]  # fmt: skip


def field_id(value):
  return value.__name__ if isinstance(value, type) else getattr(value, 'name', str(value))


def kind_of(field):
  text = field.type.__name__ if isinstance(field.type, type) else str(field.type)
  return text.split(' ')[0]


def made(kind, values):
  """A section of these values; ClusteringFlags declares the options of all methods, of which a clustering has some."""
  return (ClusteringConfig if kind is ClusteringFlags else kind)(**values)


def test_whole_numbers_are_floats_where_floats_are_meant():
  whole, point = ({'training': {'learning_rate': value}} for value in (1, 1.0))
  assert ExperimentConfig.from_json(whole).digest == ExperimentConfig.from_json(point).digest


@pytest.mark.parametrize('number', [int, np.float64, np.float32, np.int64])
def test_equal_numbers_of_python_and_numpy_are_one_experiment(number):
  given = ExperimentConfig(
    DataConfig(num_clients=np.int64(7)),
    TrainingConfig(cohort_fraction=number(1), model=np.str_('2nn')),
    evaluation=EvaluationConfig(ditto=number(1)),
  )
  plain = ExperimentConfig(
    DataConfig(num_clients=7), TrainingConfig(model='2nn'), evaluation=EvaluationConfig(ditto=1.0)
  )
  assert given.to_json() == plain.to_json() and given.digest == plain.digest and given.validated() == plain
  with pytest.raises(InputError, match='too large'):
    TrainingConfig(learning_rate=10**400)


@pytest.mark.parametrize(('kind', 'field'), FIELDS, ids=field_id)
def test_digest_depends_on_every_field_but_where_data_lies(kind, field):
  base = ExperimentConfig()
  name = {DataConfig: 'data', TrainingConfig: 'training', EvaluationConfig: 'evaluation'}.get(kind)
  other = {'bool': True, 'int': 7, 'float': 0.07, 'str': 'other'}.get(kind_of(field), ('other',))
  if name is None:
    changed = dataclasses.replace(base, clusterings=(base.clusterings[0].changed(**{field.name: other}),))
  else:
    changed = dataclasses.replace(
      base, **{name: dataclasses.replace(getattr(base, name), **{field.name: other})}
    )
  # Where data lies does not change a result.
  assert (changed.digest == base.digest) == (field.name in ('data_dir', 'data_file'))


def choosing(kind, field):
  """The values beside which a field applies."""
  if 'applies' not in field.metadata:
    return {}
  chooser, allowed = field.metadata['applies']
  told = {'distance_threshold': '3'} if allowed[0] in ('hierarchical', 'pacfl') else {}
  # An option of a method may apply to another option of it only.
  of_method = METHODS[allowed[0]].fields()[field.name].metadata if chooser == 'method' else {}
  if 'applies' in of_method:
    told |= {of_method['applies'][0]: of_method['applies'][1][0]}
  return {chooser: allowed[0]} | told


@pytest.mark.parametrize(('kind', 'field', 'bound'), BOUNDED, ids=field_id)
def test_bounds(kind, field, bound):
  limit = field.metadata[bound]
  step = 1 if kind_of(field) == 'int' else 1e-9
  outside = {'at_least': limit - step, 'above': limit, 'at_most': limit + step}[bound]
  with pytest.raises(InputError, match=rf'^{field.name}={outside}: must be'):
    made(kind, choosing(kind, field) | {field.name: outside}).check()
  if bound != 'above':
    made(kind, choosing(kind, field) | {field.name: limit}).check()


@pytest.mark.parametrize(('kind', 'field'), [f for f in FIELDS if 'choices' in f[1].metadata], ids=field_id)
def test_choices(kind, field):
  wrong = 11 if kind_of(field) == 'int' else 'nonsense'
  with pytest.raises(
    InputError, match=rf'^{field.name}={wrong}: allowed are .*{field.metadata["choices"][-1]}'
  ):
    made(kind, choosing(kind, field) | {field.name: wrong}).check()


@pytest.mark.parametrize(('kind', 'field'), [f for f in FIELDS if 'applies' in f[1].metadata], ids=field_id)
def test_a_value_that_does_not_apply(kind, field):
  chooser, allowed = field.metadata['applies']
  declared = {f.name: f for f in dataclasses.fields(kind)}
  elsewhere = next(choice for choice in declared[chooser].metadata['choices'] if choice not in allowed)
  other = {'int': 62 if 'choices' in field.metadata else 7, 'float': 0.07}.get(kind_of(field), 'other')
  with pytest.raises(InputError, match=rf'^{field.name} does not apply to {chooser}={elsewhere}'):
    made(kind, {chooser: elsewhere, field.name: other}).check()


WRONG = {'float': (math.nan, math.inf, True, '0.5'), 'int': (1.5, True, '3')}


@pytest.mark.parametrize(
  ('kind', 'field'), [f for f in FIELDS if kind_of(f[1]) in WRONG or f[1].default is not None], ids=field_id
)
def test_only_optional_fields_may_be_none_numbers_are_finite_and_integers_are_integers(kind, field):
  for wrong in (*WRONG.get(kind_of(field), ()), *([] if field.default is None else [None])):
    with pytest.raises(InputError, match=f'^{field.name}=' if wrong is not None else field.name):
      made(kind, choosing(kind, field) | {field.name: wrong}).check()


NOISE = {'dataset': 'mnist', 'partition': 'pathological', 'noise_clients': 0.15}
NOT_TOGETHER = [
  ({'dataa': {}}, "unknown section 'dataa'"),
  ({'data': {'datset': 'mnist'}}, "unknown field 'datset'"),
  ({'clusterings': [{'method': 'kmeans', 'k': 3}]}, "unknown field 'k'"),
  ({'clusterings': [{'name': 'a'}, {'name': 'A'}]}, "two clusterings are called 'a'"),
  ({'clusterings': [{'method': 'kmeans', 'name': 'Ditto'}]}, 'clustering ditto: a baseline has this name'),
  ({'clusterings': [{'method': None}]}, 'method of a clustering must be a text, found None'),
  ({'clusterings': [{'name': 3}]}, 'name of a clustering must be a text, found 3'),
  ({'evaluation': {'aggregation': None}}, 'aggregation=None: expected a list of texts'),
  ({'evaluation': {'aggregation': [1]}}, 'expected a list of texts'),
  ({'data': {'num_groups': 21}}, 'num_groups=21 is more than the 20 clients'),
  ({'data': {'new_clients': 20}}, 'new_clients=20 of num_clients=20: at least one client must take part'),
  ({'data': {'new_clients': 1}, 'evaluation': {'num_folds': 2}}, 'new_clients=1 does not apply with num_folds=2'),
  ({'data': NOISE | {'dataset': 'cifar10'}}, 'noise_clients=0.15 does not apply to dataset=cifar10; it applies to dataset mnist'),
  ({'data': NOISE | {'partition': 'iid'}}, 'noise_clients does not apply to partition=iid'),
  ({'data': NOISE | {'num_clients': 1}}, 'needs at least 2 clients, found num_clients=1'),
  ({'data': {'num_groups': 1, 'partition': 'mixture'}}, 'a mixture needs at least 2 groups'),
  ({'data': {'test_rows': 'all', 'partition': 'rotated'}}, 'test_rows does not apply to partition=rotated'),
  ({'data': {'test_rows': 'all'}, 'evaluation': {'num_folds': 3}}, 'test_rows=all does not apply with num_folds=3: folds test each client'),
  ({'data': {'group_rows': 'all'}, 'evaluation': {'num_folds': 3}}, 'group_rows=all with partition=label_swapped does not apply with num_folds=3'),
  ({'data': {'group_rows': 'all', 'partition': 'label_permuted', 'new_clients': 2}}, 'new_clients=2 does not apply with group_rows=all and partition=label_permuted'),
  (
    {'data': {'dataset': 'shakespeare', 'text_stride': 10}, 'training': {'model': 'char_cnn'}, 'evaluation': {'num_folds': 3}},
    'text_stride=10 with text_window=40 does not apply with num_folds=3: rows overlap',
  ),
  ({'data': {'group_rows': 'all', 'partition': 'mixture'}}, 'group_rows does not apply to partition=mixture'),
  ({'data': {'angles': '0,90', 'partition': 'label_swapped'}}, 'angles does not apply to partition=label_swapped'),
  ({'data': {'angles': '0,90', 'partition': 'mixture', 'mixture_kind': 'label_swapped', 'num_groups': 2}}, 'angles does not apply to mixture_kind=label_swapped'),
  ({'data': {'angles': '0,90', 'partition': 'rotated'}}, 'angles=0,90: 2 for num_groups=4; give one for each group'),
  ({'data': {'angles': '0,90,x,4', 'partition': 'rotated'}}, 'angles=0,90,x,4: expected a number'),
  ({'data': {'angles': '0,90,180,-270', 'partition': 'rotated'}}, 'two groups are turned alike'),
  ({'data': {'partition': 'mixture', 'mixture_pattern': 'linear', 'mixture_share': 0.4}}, 'mixture_share=0.4 does not apply to mixture_pattern=linear'),
  ({'data': 3}, 'must be a JSON object, found 3'),
  ([], 'must be a JSON object, found list'),
  ({'clusterings': {}}, 'clusterings must be a list'),
  ({'clusterings': [{'method': 'kmeans', 'num_clusters': 21}]}, 'num_clusters=21 is more than the 20 clients'),
  (
    {'clusterings': [{'method': 'kmeans'}, {'method': 'kmeans', 'name': 'many', 'num_clusters': 21}]},
    'clustering many: num_clusters=21 is more than the 20 clients',
  ),
  ({'clusterings': [{'method': 'kmeans', 'affinity': 'rbf'}]}, 'affinity does not apply to method=kmeans'),
  ({'clusterings': [{'method': 'hierarchical'}]}, 'needs distance_threshold'),
  ({'clusterings': [{'method': 'hierarchical', 'distance_threshold': '1', 'linkage': 'ward', 'metric': 'l1'}]}, 'ward needs metric=l2'),
  ({'clusterings': [{'method': 'hierarchical', 'distance_threshold': '1', 'linkage': 'centroid', 'metric': 'cosine'}]}, 'linkage=centroid needs metric=l2'),
  (
    {'training': {'phase2_rounds': 5}, 'clusterings': [{'method': 'hierarchical', 'distance_threshold': 'validation:6'}]},
    'distance_threshold=validation:6: no cut is trained for more than phase2_rounds=5',
  ),
  ({'clusterings': [{'name': '../up'}]}, 'letters, digits'),
  ({'data': {'dataset': 'file'}}, 'needs data_file'),
  ({'data': {'dataset': 'file', 'data_file': 'x.npz'}}, 'dataset=file needs partition: by_writer keeps whose each row is'),
  ({'data': {'partition': 'by_writer'}}, 'needs rows that have owners'),
  ({'data': {'dataset': 'emnist', 'partition': 'by_writer', 'min_examples': 9, 'max_examples': 8}}, 'max_examples=8 is below'),
  ({'data': {'attack': 'nan'}}, 'attack=nan needs malicious clients: give malicious_clients too'),
  ({'data': {'malicious_clients': 0.2, 'attack': 'label_flip', 'attack_scale': 2.0}}, 'it applies to attack sign_flip or scaled'),
  ({'data': {'malicious_clients': 0.2, 'attack': 'scaled', 'attack_scale': 1}}, 'attack_scale=1.0: scaled by 1 clients are honest'),
  ({'data': {'malicious_clients': 0.2, 'num_clients': 1, 'num_groups': 1}}, 'malicious_clients=0.2 needs at least 2 clients'),
  ({'training': {'model': 'os.system'}}, 'model=os.system'),
  ({'training': {'momentum': 0.5}}, 'momentum does not apply to client_optimizer=sgd; it applies to client_optimizer momentum'),
  ({'training': {'momentum': 0.5, 'client_optimizer': 'adam'}}, 'momentum does not apply to client_optimizer=adam'),
  ({'training': {'client_optimizer': 'yogi'}}, 'client_optimizer=yogi: allowed are sgd, momentum, adam'),
  ({'training': {'server_momentum': 0.5, 'server_optimizer': 'yogi'}}, 'it applies to server_optimizer momentum'),
  ({'training': {'proximal_mu': -1}}, 'proximal_mu=-1.0: must be at least 0'),
  ({'training': {'learning_rate_decay': 1.1}}, 'learning_rate_decay=1.1: must be at most 1'),
  ({'training': {'server_learning_rate': 0}}, 'server_learning_rate=0.0: must be above 0'),
  ({'training': {'proximal_mu': 1, 'batch_size': 0}}, 'proximal_mu=1.0 has no effect with batch_size=0 and local_epochs=1'),
  ({'training': {'client_optimizer': 'momentum', 'batch_size': 0}}, 'client_optimizer=momentum has no effect with batch_size=0'),
  (
    {'training': {'batch_size': 0}, 'clusterings': [{'method': 'fedsoft', 'attraction': 0.5}]},
    'attraction=0.5 has no effect with batch_size=0 and local_epochs=1',
  ),
  ({'evaluation': {'num_folds': 1}}, 'at least 2 folds'),
]  # fmt: skip


@pytest.mark.parametrize(('value', 'message'), NOT_TOGETHER)
def test_what_does_not_fit_together(value, message):
  with pytest.raises(InputError) as caught:
    ExperimentConfig.from_json(value)
  assert message in str(caught.value)
  assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
  ('training', 'options'),
  [({'batch_size': 0}, {}), ({'batch_size': 0}, {'attraction': 0}), ({}, {'attraction': 0.5})],
)
def test_an_attraction_that_was_not_given_or_has_an_effect_is_no_error(training, options):
  ExperimentConfig.from_json({'training': training, 'clusterings': [{'method': 'fedsoft', **options}]})


def test_angles_are_quarter_turns_up_to_four_groups_and_even_parts_of_a_turn_beyond():
  for number, expected in ((2, (0, 90)), (4, (0, 90, 180, 270)), (5, (0, 72, 144, 216, 288))):
    assert DataConfig(partition='rotated', num_groups=number).degrees == expected
  given = DataConfig(partition='rotated', num_groups=3, angles='0,15,-7.5')
  assert config.ExperimentConfig(given).validated().data.degrees == (0.0, 15.0, -7.5)


def test_thresholds():
  for text, read in (('3', ('number', 3.0)), ('1e-3', ('number', 0.001)), ('quantile:1', ('quantile', 1.0))):
    assert config.parse_threshold(text) == read
  for text in ('', '-1', 'nan', 'quantile:', 'quantile:1.1', 'median', '3,5', 'a:b:0.1'):
    with pytest.raises(InputError, match='allowed are mean, a number >= 0, or quantile:q'):
      config.parse_threshold(text)


def test_what_is_not_plain_federated_averaging_is_told_by_field():
  assert TrainingConfig(learning_rate=0.5, seed=3, batch_size=0, aggregator='robust').optimization == {}
  found = TrainingConfig(client_optimizer='momentum', proximal_mu=0.5, server_learning_rate=0.7).optimization
  assert found == {
    'client_optimizer': 'momentum', 'momentum': 0.9, 'proximal_mu': 0.5, 'server_learning_rate': 0.7,
  }  # fmt: skip
  assert TrainingConfig(server_optimizer='adam').optimization == {'server_optimizer': 'adam'}


def test_the_default_partition_is_label_swapped_but_for_rows_of_users():
  assert config.DataConfig().partition == 'label_swapped'
  assert config.DataConfig('tfds:fashion_mnist').partition == 'label_swapped'
  assert {config.DataConfig(name).partition for name in ('file', 'text')} == {''}
  # Given or not, the digest is the same.
  plain = config.ExperimentConfig().to_json()
  assert 'partition' not in config.determinants(plain)['data']


def test_a_field_at_its_default_is_no_part_of_a_digest():
  kmeans = {'method': 'kmeans', 'num_clusters': 4, 'name': None}
  given = {
    'data': {'num_clients': 20, 'attack': 'sign_flip'},
    'training': {'learning_rate': 0.1, 'aggregator': 'mean'},
    'clusterings': [kmeans, {'method': 'dynamic_distance', 'variant': 'cliques'}],
    'evaluation': {'num_folds': 0},
  }
  experiment = ExperimentConfig.from_json(given)
  assert experiment == ExperimentConfig() and experiment.digest == ExperimentConfig().digest
  found = config.determinants(experiment.to_json())
  made = [{'method': 'kmeans'}, {'method': 'dynamic_distance'}]
  assert found == {'data': {}, 'training': {}, 'evaluation': {}, 'clusterings': made}


def test_a_pull_to_the_start_is_refused_in_one_round_of_one_step():
  pulled = 'fine_tuned,rounds=1,least_rounds=1,proximal_mu=0.1'

  def check(rule, **training):
    found = TrainingConfig(**{'batch_size': 0, 'local_epochs': 1} | training)
    ExperimentConfig(training=found, evaluation=EvaluationConfig(aggregation=(rule,))).validated()

  with pytest.raises(InputError, match=rf'^aggregation={pulled}: proximal_mu=0.1 has no effect in one round'):
    check(pulled)
  # In a second round, or after a first step, a client is away from where it started.
  check('fine_tuned,rounds=2,proximal_mu=0.1')
  check(pulled, batch_size=10)
  check(pulled, local_epochs=2)
  check('fine_tuned,rounds=1')
