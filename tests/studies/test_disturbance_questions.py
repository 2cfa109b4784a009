"""What can be asked of a run whose signatures are disturbed, and what cannot."""

import numpy as np
import pytest

from tests.conftest import make_population
from tests.made_up import in_json
from tff_cluster.base import fields as fields_lib
from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags
from tff_cluster.data import saved
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import ClusteringConfig, ExperimentConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files
from tff_cluster.studies.disturbance import questions
from tff_cluster.studies.replay import study


def options(**given):
  return fields_lib.make_section(flags.DisturbOptions, given)


def test_questions_of_the_defaults_and_of_flags():
  found = questions.read_questions(options())
  assert found.noise_multipliers == (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
  assert (found.bits, found.repeats, found.clip_norm) == ((16, 8, 4, 2, 1), 5, None)
  given = options(noise_multipliers='1,0, 0.5', bits='none', repeats=2, clip_norm=0.25)
  assert questions.read_questions(given) == questions.Questions((0.0, 0.5, 1.0), (), 2, 0.25)


@pytest.mark.parametrize(
  ('given', 'message'),
  [
    (
      {'noise_multipliers': '0,x'},
      "noise_multipliers=0,x: 'x' is not 0 or a number from 0.000001 to 1,000,000",
    ),
    ({'noise_multipliers': '-1'}, "'-1' is not 0 or a number from 0.000001 to 1,000,000"),
    ({'noise_multipliers': 'nan'}, "'nan' is not 0 or a number"),
    ({'noise_multipliers': 'inf'}, "'inf' is not 0 or a number"),
    ({'noise_multipliers': '1,1.0'}, '1.0 is given twice'),
    ({'noise_multipliers': '1,'}, "'' is not 0 or a number"),
    ({'bits': '0'}, "bits=0: '0' is not a whole number from 1 to 16"),
    ({'bits': '17'}, "'17' is not a whole number"),
    ({'bits': '1_0'}, "'1_0' is not a whole number"),
    ({'bits': '٣'}, 'is not a whole number'),
    ({'bits': 'none', 'noise_multipliers': 'none'}, 'ask nothing; give at least one of the two'),
    ({'repeats': 0}, 'repeats=0: must be'),
    ({'clip_norm': 0.0}, 'clip_norm=0.0: must be'),
  ],
)
def test_wrong_questions(given, message):
  with pytest.raises(InputError) as caught:
    questions.read_questions(options(**given))
  assert message in str(caught.value)


@pytest.fixture
def folder(tmp_path):
  run = RunFolder(tmp_path)
  population = make_population(clients=4)
  population.truths['group'] = np.eye(2)[:, [0, 0, 1, 1]]
  saved.save_population(population, run.population)
  return run


def test_clusterings_of_signatures_are_asked(folder):
  kmeans = ClusteringConfig(method='kmeans', num_clusters=2)
  chosen = ClusteringConfig(method='hierarchical', distance_threshold='validation')
  others = (
    ClusteringConfig(method='bipartition'),
    ClusteringConfig(method='planted', name='p'),
    ClusteringConfig('pacfl', num_clusters=2),
  )
  config = ExperimentConfig(clusterings=(kmeans, chosen, *others))
  with pytest.raises(InputError, match='run python -m phases'):
    questions.askable(folder, config)
  choice = {'candidates': [{'threshold': 0.5}, {'threshold': 1.25}], 'chosen': 1}
  saved_choice = in_json.record(phase_files.ChoiceOfThreshold, {'choice': choice})
  files.save_json(folder.choice('hierarchical'), saved_choice.to_json())
  asked, left_out = questions.askable(folder, config)
  assert asked == [kmeans, ClusteringConfig(method='hierarchical', distance_threshold='1.25')]
  assert [line.label for line in left_out] == ['bipartition', 'p', 'pacfl']
  assert 'trains while it clusters' in left_out[0].reason and 'training rows' in left_out[2].reason


def test_runs_without_what_is_needed(folder):
  only = ExperimentConfig(clusterings=(ClusteringConfig(method='planted'),))
  with pytest.raises(InputError, match='none of its clusterings can be made from signatures'):
    questions.askable(folder, only)
  saved.save_population(make_population(clients=4), folder.population)
  with pytest.raises(InputError, match='has no planted groups of some clients each, so none can be lost'):
    questions.askable(folder, ExperimentConfig())


def test_groups_of_all_of_which_every_client_has_rows_are_passed_over(folder):
  population = make_population(clients=4)
  mixed = np.array([[0.9, 0.9, 0.1, 0.1], [0.1, 0.1, 0.9, 0.9]])
  population.truths.update({'mixed': mixed, 'some': (mixed > 0.5).astype(float)})
  saved.save_population(population, folder.population)
  assert list(study.run_truths(folder)) == ['some']
  del population.truths['some']
  saved.save_population(population, folder.population)
  assert study.run_truths(folder) == {}
  with pytest.raises(InputError, match='no planted groups of some clients each'):
    questions.askable(folder, ExperimentConfig())
