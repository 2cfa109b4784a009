"""Which experiments are those of Rohith et al. 2020: told by their settings, not by the file that they come from."""

import dataclasses
import pathlib

import pytest

from tff_cluster.experiment import config, preset
from tff_cluster.papers.rohith2020.setting import describe_setting

_ROOT = pathlib.Path(__file__).parents[2]
_KMEANS = (config.ClusteringConfig('kmeans'),)
# The README's table of this paper: these commands, and no other preset.
_OF_PAPER = {'rohith2020_mnist': False, 'rohith2020_emnist': False, 'demo': True}


def _described(name, changes=None, clusterings=_KMEANS):
  experiment = preset.read_preset(name, changes or {}, clusterings)
  return describe_setting(experiment, experiment.data.num_clients)


@pytest.mark.parametrize('name', sorted(path.stem for path in (_ROOT / 'flags').glob('*.flags')))
def test_only_the_presets_that_the_readme_gives_are_of_the_paper(name):
  found = _described(name)
  assert found.is_of_paper == (name in _OF_PAPER)
  if name in _OF_PAPER:
    assert bool(found.departures) == _OF_PAPER[name]


@pytest.mark.parametrize(
  'changes', [{'seed': 7}, {'data_seed': 3}, {'num_folds': 5}, {'target_accuracy': 0.5}]
)
def test_seeds_and_what_is_measured_beside_are_free(changes):
  assert _described('demo', changes).is_of_paper


@pytest.mark.parametrize(
  'changes',
  [
    {'num_clients': 19}, {'model': '2nn'}, {'partition': 'rotated'}, {'phase2_rounds': 11}, {'learning_rate': 0.1}, {'malicious_clients': 0.2},
    {'aggregator': 'robust'}, {'rows_per_client': 30}, {'cohort_fraction': 0.5},
  ],
)  # fmt: skip
def test_another_setting_is_another_experiment(changes):
  assert not _described('demo', changes).is_of_paper


def test_other_methods_on_the_paper_setting_are_not_the_papers():
  assert not _described('rohith2020_mnist', clusterings=(config.ClusteringConfig('planted'),)).is_of_paper
  several = (config.ClusteringConfig('planted'), *_KMEANS)
  assert _described('rohith2020_mnist', clusterings=several).is_of_paper


def test_what_the_scaled_down_version_is_made_of_are_fields():
  from tff_cluster.papers.rohith2020 import tables

  known = {f.name for kind in (config.DataConfig, config.TrainingConfig) for f in dataclasses.fields(kind)}
  assert set(tables.SCALED_DOWN) <= known
