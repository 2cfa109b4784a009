"""Rules of Phase 3 that a user brings: the parameters' names say what they are given, and what is wrong is one line."""

import re
import sys
import types

import numpy as np
import pytest

from tests.made_up.refusals import refused
from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import CLIENTS, Clusters, MixingRule, PredictionRule
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.experiment.config import EvaluationConfig, ExperimentConfig

CODE = '''
import functools

import numpy as np
from tff_cluster.aggregation.rule import MixingRule

def of_a_user(membership):
  """Clusters by their number of members. And more words."""
  sizes = membership.sum(axis=1, keepdims=True)
  return sizes / sizes.sum()

def best(validation_accuracy, validation_loss, validation_rows, train_rows, best_validation):
  for each in (validation_accuracy, validation_loss, validation_rows, train_rows, best_validation):
    each[...] = each  # May be written to.
  return np.eye(len(validation_accuracy))[validation_accuracy.argmax(axis=0)].T

def power(membership, exponent, base=1):
  return of_a_user(membership)

def first(probabilities, own_clusters, validation_probabilities, validation_labels):
  return probabilities[own_clusters].sum(axis=0).argmax(axis=1)

of_100 = functools.partial(power, exponent=100)

def returning(membership, what):
  if what == 'error':
    raise KeyError('no\\nluck')
  return {
    'nothing': None,
    'ragged': [[1.0], [0.5, 0.5]],
    'rows': membership / membership.sum(axis=1, keepdims=True),
    'transposed': np.full(membership.T.shape, 1.0),
    'unknown': np.full((2, 1), np.nan),
    'negative': np.array([[2.0], [-1.0]]),
    'rounded': (np.ones((2, 1)) / 2 + 1e-7).astype(np.float32),
  }[what]

def predicting(probabilities, what):
  rows = probabilities.shape[1]
  return {'short': np.zeros(rows - 1, int), 'floats': np.zeros(rows), 'high': np.full(rows, 3)}[what]

def cheating(probabilities, labels):
  return labels

def nothing():
  return 1

def both(probabilities, membership):
  return 1

def positional(membership, /):
  return membership

number = 3
RULE = MixingRule(name='other', words='in my own words', function=of_a_user)
'''
MEMBERSHIP = np.array([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0]])


@pytest.fixture(autouse=True)
def my_rules(tmp_path, monkeypatch):
  (tmp_path / 'rules_of_a_user.py').write_text(CODE)
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.delitem(sys.modules, 'rules_of_a_user', raising=False)
  yield
  sys.modules.pop('rules_of_a_user', None)


def read(text):
  (rule,) = rules.added([text])
  return rule


def clusters(asked):
  """What a mixing rule is given; `asked` notes that models are measured."""
  scores = tuple(np.random.default_rng(0).random((2, *MEMBERSHIP.shape)))
  measured = lambda: asked.append(True) or scores  # noqa: E731
  return Clusters(MEMBERSHIP, MEMBERSHIP, np.full(2, 0.5), np.full(5, 9), np.full(5, 3), measured)


def predict(rule, rows=4):
  rng = np.random.default_rng(1)
  given = {
    'probabilities': rng.dirichlet(np.ones(3), (2, rows)),
    'own_clusters': np.array([False, True]),
    'validation_probabilities': rng.dirichlet(np.ones(3), (2, 2)),
    'validation_labels': np.array([0, 2]),
  }
  return rule.predict(given), given


@pytest.mark.parametrize(
  ('text', 'name', 'words', 'options'),
  [
    ('of_a_user', 'of_a_user', 'Clusters by their number of members. And more words', {}),
    ('power,exponent=2,base=1.5,name=squared', 'squared', 'power (squared)', {'exponent': 2, 'base': 1.5}),
    # An object comes through the same door.
    ('RULE', 'RULE', 'in my own words', {}),
  ],
)
def test_a_function_that_mixes(text, name, words, options):
  rule = read(f'rules_of_a_user:{text}')
  assert isinstance(rule, MixingRule)
  assert (rule.name, rule.words, rule.options) == (name, words, options)
  np.testing.assert_allclose(rule.mixing(clusters([])), [[0.4], [0.6]])


def test_models_are_measured_where_a_rule_asks_for_it_and_once():
  asked = []
  given = clusters(asked)
  read('rules_of_a_user:of_a_user').mixing(given)
  assert not asked
  rule = read('rules_of_a_user:best')
  given.validation_accuracy.flags.writeable = given.validation_loss.flags.writeable = False
  found = rule.mixing(given)  # It writes into all that it is given, which stays as it was.
  np.testing.assert_array_equal(found.argmax(axis=0), given.validation_accuracy.argmax(axis=0))
  rule.mixing(given)
  assert asked == [True]
  # Shares that rounding left off are made exact.
  rounded = read('rules_of_a_user:returning,what=rounded').mixing(given)
  np.testing.assert_allclose(rounded.sum(axis=0), 1.0, rtol=0, atol=1e-12)


def test_what_is_returned_must_be_shares_or_classes():
  def returned(what):
    rule = read(f'rules_of_a_user:{what}')
    return rule.mixing(clusters([])) if isinstance(rule, MixingRule) else predict(rule)

  shapes, classes = r'numbers \[2 clusters, 5 clients\], or \[2 clusters, 1\]', 'expected a class from 0 to 2'
  cases = (
    ('returning,what=error', "failed: KeyError: 'no.*nluck'"),
    ('returning,what=nothing', 'returned NoneType without numbers'),
    ('returning,what=ragged', 'without numbers'),
    (
      'returning,what=rows',
      'returned shares that sum to 0.333333 in column 2; rows are clusters, columns are the new models',
    ),
    ('returning,what=transposed', rf'returned shape \[5, 2\]; expected {shapes}'),
    ('returning,what=unknown', 'returned nan for cluster 0, column 0; every share must be a finite number'),
    ('returning,what=negative', 'returned -1 for cluster 1, column 0; every share must be at least 0'),
    ('predicting,what=short', rf'returned shape \[3\]; {classes} for each of 4 rows'),
    ('predicting,what=floats', f'returned float64; {classes}'),
    ('predicting,what=high', f'returned class 3; {classes}'),
  )
  refused(returned, *((what, f'^aggregation=rules_of_a_user:{what}.*{words}') for what, words in cases))


def test_what_is_no_rule():
  def configured(text):
    ExperimentConfig(evaluation=EvaluationConfig(aggregation=('vote', text))).validated()

  cases = (
    ('nowhere:f', "cannot be imported: there is no module 'nowhere'"),
    ('rules_of_a_user:f', "cannot be imported: module 'rules_of_a_user' has no attribute 'f'"),
    ('rules_of_a_user:', 'expected an import path, package.module:attribute'),
    ('rules_of_a_user:number', 'expected a function, or a tff_cluster.aggregation.rule.Rule, found .int'),
    ('rules_of_a_user:cheating', 'it needs labels, which no rule is given for clients’ rows'),
    ('rules_of_a_user:nothing', 'it has none of these parameters, by which a rule is given'),
    ('rules_of_a_user:both', "its parameter 'membership' is none of these"),
    ('rules_of_a_user:positional', 'must be given by name; leave out the /'),
    ('rules_of_a_user:of_a_user,size=3', "unknown key 'size'; known: name"),
    ('rules_of_a_user:of_a_user,name=a b', 'name=a b: a rule’s name has letters'),
    ('rules_of_a_user:of_a_user,name', "'name' is not KEY=VALUE"),
    ('rules_of_a_user:of_a_user,name=a,name=b', 'name is given twice'),
    ('own', 'every Phase 3 has own; leave it out'),
    ('', 'allowed are .*vote.*, or package.module:function'),
    # Results could not tell two rules of one name apart.
    ('vote,name=own', "two rules are called 'own'; tell them apart with name="),
  )
  refused(configured, *((text, f'^aggregation={text}.*{words}') for text, words in cases))


def test_changed_code_is_another_rule(tmp_path, monkeypatch):
  before = read('rules_of_a_user:of_a_user').code
  assert before == read('rules_of_a_user:best').code and read('vote').code is None
  (tmp_path / 'rules_of_a_user.py').write_text(CODE.replace('And more words', 'And others'))
  del sys.modules['rules_of_a_user']
  assert read('rules_of_a_user:of_a_user').code != before
  # What a partial is made of is what changes, not functools.
  assert read('rules_of_a_user:of_100').code == read('rules_of_a_user:of_a_user').code
  assert read('rules_of_a_user:of_100').words == 'of 100'
  module = types.ModuleType('made_up')  # As in a notebook, whose module is no file.
  module.f = sys.modules['rules_of_a_user'].of_a_user
  monkeypatch.setitem(sys.modules, 'made_up', module)
  assert read('made_up:f').name == 'f'


def test_a_configuration_takes_a_list_of_texts():
  several = ExperimentConfig(evaluation=EvaluationConfig(aggregation=['vote', 'rules_of_a_user:of_a_user']))
  assert several.evaluation.aggregation == ('vote', 'rules_of_a_user:of_a_user')
  assert ExperimentConfig.from_json(several.validated().to_json()) == several
  assert several.digest != ExperimentConfig().digest
  for wrong in ('vote', None, ['vote', 3]):
    with pytest.raises(InputError, match=r'^aggregation=.*: expected (a list of texts|text)'):
      ExperimentConfig.from_json({'evaluation': {'aggregation': wrong}})


def test_every_role_is_that_of_one_built_in_rule():
  roles = [role for rule in rules.RULES.values() for role in rule.roles]
  assert len(roles) == len(set(roles)) and rules.with_role(CLIENTS) in rules.mixing_rules()
  assert len({rule.position for rule in rules.RULES.values()}) == len(rules.RULES)
  assert all(rule.words for rule in rules.RULES.values())


def test_a_function_of_predictions_and_built_in_ones_through_the_same_door():
  rule = read('rules_of_a_user:first')
  assert isinstance(rule, PredictionRule)
  found, given = predict(rule)
  np.testing.assert_array_equal(found, given['probabilities'][1].argmax(axis=1))
  assert found.dtype == np.int64
  for rule in rules.prediction_rules():
    if 'labels' in rule.needs:
      with pytest.raises(InputError, match=rf'aggregation={rule.name}: allowed are '):
        read(rule.name)
    else:
      added = read(f'{rule.name},name=mine')
      assert added.words == f'{rule.words} (mine)' and not added.roles
      np.testing.assert_array_equal(predict(added)[0], predict(rule)[0])


@pytest.mark.parametrize(
  ('text', 'accuracy', 'stops'),
  [
    ('fine_tuned', [0.5, 0.6, 0.9, 0.9, 0.8, 0.7], 2),
    # A mean over clients may differ in its last bits.
    ('fine_tuned,rounds=1', [0.9, 0.9 + 1e-12], 0),
    ('fine_tuned,rounds=2,least_rounds=1', [0.9, 0.1, 0.2], 2),
    ('fine_tuned,rounds=1,least_rounds=1,proximal_mu=0.1,name=personalized', [0.9, 0.1], 1),
  ],
)
def test_clients_stop_where_validation_rows_are_best(text, accuracy, stops):
  rule, asked = read(text), []
  assert rule.stop(lambda *given: asked.append(given) or np.array(accuracy)) == stops
  assert asked == [(len(accuracy) - 1, 0.1 if 'mu' in text else 0.0)] == [(rule.most_rounds, asked[0][1])]


@pytest.mark.parametrize(
  ('given', 'words'),
  [
    ('rounds=0', 'rounds=0: must be a whole number, at least 1'),
    ('rounds=1.5', r'rounds=1\.5: must be a whole number, at least 1'),
    ('rounds=2,least_rounds=3', 'least_rounds=3: must be a whole number from 0 to rounds, 2'),
    ('least_rounds=-1', 'least_rounds=-1: must be a whole number from 0 to rounds, 5'),
    ('proximal_mu=-0.1', r'proximal_mu=-0\.1: must be a number, at least 0'),
    ('proximal_mu=nan', 'proximal_mu=nan: must be a number, at least 0'),
    ('proximal_mu=true', 'proximal_mu=True: must be a number, at least 0'),
    ('epochs=3', "unknown key 'epochs'; known: name, rounds, least_rounds, proximal_mu"),
  ],
)
def test_what_training_cannot_do_is_refused(given, words):
  with pytest.raises(InputError, match=f'^aggregation=fine_tuned,{re.escape(given)}: {words}$'):
    ExperimentConfig(evaluation=EvaluationConfig(aggregation=(f'fine_tuned,{given}',))).validated()


def test_a_users_rule_that_trains_and_one_that_cannot(tmp_path, monkeypatch):
  (tmp_path / 'training_rules.py').write_text(
    'from tff_cluster.aggregation.rule import TrainingRule\n'
    'def twice(train, rounds=2):\n  train(rounds, 0.0)\n  return rounds\n'
    'def endless(train):\n  return 1\n'
    'def plainly(train, rounds=2):\n  return len(train(rounds)) - 1\n'
    'PLAINLY = TrainingRule(name="p", words="trained", function=plainly, options={"rounds": 4})\n'
    'TWICE, ENDLESS = (TrainingRule(name="t", words="trained", function=f) for f in (twice, endless))\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  rule = read('training_rules:TWICE,rounds=3')
  assert rule.stop(lambda *_: np.zeros(4)) == rule.most_rounds == 3
  # Options of the rule itself count, unless the text gives others.
  assert read('training_rules:PLAINLY').most_rounds == 4
  assert read('training_rules:PLAINLY,rounds=1').most_rounds == 1
  # Known by its code, as a function is.
  assert rule.code is not None
  with pytest.raises(InputError, match=r'TWICE,rounds=no: it fails: TypeError: '):
    read('training_rules:TWICE,rounds=no')
  with pytest.raises(InputError, match='ENDLESS: a rule that trains needs a parameter rounds'):
    read('training_rules:ENDLESS')


@pytest.mark.parametrize('returned', ['None', '1.9', 'True', '-1', '4', '"two"'])
def test_what_is_no_number_of_rounds_is_refused(returned, tmp_path, monkeypatch):
  module = f'returns_{re.sub("[^a-z0-9]", "_", returned)}'
  (tmp_path / f'{module}.py').write_text(
    'from tff_cluster.aggregation.rule import TrainingRule\n'
    f'def at_once(train, rounds=3):\n  return {returned}\n'
    f'def later(train, rounds=3):\n  return {returned} if train(rounds, 0.0).any() else 0\n'
    'AT_ONCE, LATER = (TrainingRule(name="t", words="trained", function=f) for f in (at_once, later))\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(InputError, match=r'AT_ONCE: it returned .*; expected a number of rounds, from 0 to 3$'):
    read(f'{module}:AT_ONCE')
  rule = read(f'{module}:LATER')
  assert rule.stop(lambda *_: np.zeros(4)) == 0
  with pytest.raises(InputError, match=r'LATER returned .*; expected a number of rounds, from 0 to 3$'):
    rule.stop(lambda *_: np.ones(4))


def test_a_failing_machine_is_no_fault_of_a_rule():
  def train(*_):
    raise fault

  for fault in (EnvironmentFault('no worker'), MemoryError(), OSError(28, 'no space')):
    with pytest.raises(type(fault)):
      read('fine_tuned').stop(train)
