"""From command lines to configurations."""

import dataclasses
import json
import re

import pytest

from tff_cluster.base import fields
from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.clustering import methods
from tff_cluster.clustering.method import Method
from tff_cluster.experiment import config
from tff_cluster.experiment.config import ClusteringConfig, ExperimentConfig

ALL = ('data', 'training', 'clusterings', 'evaluation', 'run', 'machine')


def read(*arguments, sections=ALL, reader=parse.experiment_config_from_flags):
  """Returns (exit code, what the reader returned or None)."""
  result = []
  code = program.execute(lambda: result.append(reader()), lambda: flags.define(*sections), ['p', *arguments])
  return code, result[0] if result else None


def test_flags_reach_their_fields():
  code, found = read(
    '--dataset=mnist', '--partition', 'dirichlet', '-dirichlet_alpha=0.1', '--num_clients=30', '--learning_rate=0.05',
    '--seed=3', '--num_folds=10', '--experts', '--nolocal_training', '--fine_tuning=3', '--ditto=1', '--clustering=kmeans,num_clusters=5', '--clustering=hierarchical,distance_threshold=3,name=h',
  )  # fmt: skip
  assert code == 0
  assert found == ExperimentConfig(
    config.DataConfig(dataset='mnist', partition='dirichlet', dirichlet_alpha=0.1, num_clients=30),
    config.TrainingConfig(learning_rate=0.05, seed=3),
    (
      ClusteringConfig(method='kmeans', num_clusters=5),
      ClusteringConfig('hierarchical', 'h', distance_threshold='3'),
    ),
    config.EvaluationConfig(num_folds=10, experts=True, fine_tuning=3, ditto=1.0),
  )


def test_plain_clustering_flags():
  experiment = ExperimentConfig(clusterings=(ClusteringConfig(method='kmeans', num_clusters=3),))
  found = read('--method=kmeans', '--num_clusters=3', sections=('data', 'clustering', 'run'))
  assert found == (0, experiment) and read() == (0, ExperimentConfig())


@pytest.mark.parametrize(
  ('arguments', 'chooser'),
  [
    (['--emnist_classes=10'], 'dataset=digits'),
    (['--dataset=mnist', '--test_fraction=0.2'], 'dataset=mnist'),
    (['--partition=iid', '--num_groups=4'], 'partition=iid'),
    (['--partition=rotated', '--mixture_kind=rotated'], 'partition=rotated'),
  ],
)
def test_a_flag_at_its_default_that_does_not_apply_is_an_error(arguments, chooser, capsys):
  code, _ = read(*arguments)
  error = capsys.readouterr().err
  assert code == 2
  assert f'does not apply to --{chooser}; it applies to' in error


def test_a_wrong_choice_is_told_before_what_it_chooses(capsys):
  assert read('--dataset=mnits', '--emnist_classes=62')[0] == 2
  assert '--dataset=mnits: allowed are digits, mnist' in capsys.readouterr().err


def test_flagfile(tmp_path):
  inner, outer = tmp_path / 'inner.flags', tmp_path / 'outer.flags'
  inner.write_text('# rows\n--num_clients=30\n\n--partition=iid\n')
  outer.write_text(
    f'// preset\n--flagfile={inner}\n--learning_rate=0.5\n--clustering=kmeans,num_clusters=3\n'
  )
  code, found = read(f'--flagfile={outer}', '--num_clients=40')
  assert code == 0
  assert (found.data.num_clients, found.data.partition, found.training.learning_rate) == (40, 'iid', 0.5)
  assert found.clusterings == (ClusteringConfig(method='kmeans', num_clusters=3),)
  assert read('--num_clients=40', f'--flagfile={outer}')[1].data.num_clients == 30


def test_config_file_repeats_a_run_from_the_file_alone(tmp_path, capsys):
  experiment = ExperimentConfig(config.DataConfig(num_clients=7), config.TrainingConfig(seed=5))
  path = tmp_path / 'config.json'
  path.write_text(json.dumps(experiment.to_json()))
  assert read(f'--config_file={path}', '--output_dir=x', '--clients_in_parallel=2') == (0, experiment)
  for name, value in (('num_clients', '20'), ('clustering', 'kmeans')):
    assert read(f'--config_file={path}', f'--{name}={value}')[0] == 2
    assert f'--{name} may not stand beside --config_file' in capsys.readouterr().err
  elsewhere = dataclasses.replace(
    experiment, data=config.DataConfig(dataset='mnist', num_clients=7, data_dir='here')
  )
  path.write_text(json.dumps(elsewhere.to_json()))
  found = read(f'--config_file={path}', '--data_dir=there')[1]
  assert (
    found.data == dataclasses.replace(elsewhere.data, data_dir='there') and found.digest == elsewhere.digest
  )


@pytest.mark.parametrize(
  ('content', 'words'),
  [
    (b'{"data": ', 'not JSON'),
    (b'\xff\xfe\x00', 'not UTF-8'),
    (b'[' * 100_000, 'not JSON'),
    (b'[]', 'must be a JSON object'),
    (b'{"training": {"learning_rate": Infinity}}', 'Infinity is not a number'),
    (b'{"training": {"learning_rate": 1' + b'0' * 400 + b'}}', 'too large'),
    (b'{"data": {"num_clients": 0}}', 'configuration: num_clients=0'),
    (b'{"evaluation": {"experts": "yes"}}', "configuration: experts='yes': expected true or false"),
  ],
  ids=lambda value: value[:20],
)
def test_config_files_that_are_none(content, words, tmp_path, capsys):
  path = tmp_path / 'config.json'
  path.write_bytes(content)
  assert read(f'--config_file={path}')[0] == 2
  error = capsys.readouterr().err
  assert words in error and str(path) in error and error.count('\n') == 1


def test_run_options(tmp_path, capsys):
  code, found = read(f'--output_dir={tmp_path}', reader=parse.run_options_from_flags)
  assert code == 0
  assert found == flags.RunOptions(output_dir=str(tmp_path))
  assert read(reader=parse.run_options_from_flags)[0] == 2
  assert '--output_dir=FOLDER is required' in capsys.readouterr().err
  alone = read(f'--output_dir={tmp_path}', sections=('output_dir',), reader=parse.output_dir_from_flags)
  assert alone == (0, tmp_path)


def test_clustering_specs():
  for text, expected in (
    ('kmeans', ClusteringConfig(method='kmeans')),
    (
      'hierarchical, metric=l1, linkage=average, distance_threshold=quantile:0.1, name=h',
      ClusteringConfig(
        'hierarchical', 'h', metric='l1', linkage='average', distance_threshold='quantile:0.1'
      ),
    ),
  ):
    assert parse.parse_clustering_spec(text) == expected


def test_a_boolean_key_of_a_clustering_takes_true_or_false(monkeypatch):
  @dataclasses.dataclass(frozen=True)
  class Options:
    greedy: bool = fields.option(False, 'Whether it is greedy.')

  class Greedy(Method):
    name = 'greedy'
    options_type = Options

  found = {**methods.METHODS, 'greedy': Greedy()}
  monkeypatch.setattr(methods, '_found', lambda: found)
  given = parse.parse_clustering_spec('greedy,greedy=true')
  assert given == ClusteringConfig('greedy', greedy=True) and given.options.greedy is True
  of_another = parse.parse_clustering_spec('sklearn.cluster:HDBSCAN,allow_single_cluster=True')
  assert dict(of_another.given)['allow_single_cluster'] is True
  assert parse.parse_clustering_spec('greedy,greedy=false') == ClusteringConfig('greedy')
  for wrong in ('yes', '1'):
    with pytest.raises(InputError, match=f'greedy={wrong}: expected true or false'):
      parse.parse_clustering_spec(f'greedy,greedy={wrong}')


def test_a_command_is_told_without_the_folders():
  given = [
    '--rows=cf 0.2',
    '--data_dir=/private',
    '--data_file=/private/patients.npz',
    '--output_dir',
    '/mine',
    '--store_dir=/s',
    '--seeds',
    '0,1',
  ]
  assert parse.command('reproduce', given) == "python -m phases.reproduce --rows='cf 0.2' --seeds 0,1"
  apart = ['--clustering', 'kmeans, num_clusters=4']
  assert parse.command('compare', apart) == "python -m phases.compare --clustering 'kmeans, num_clusters=4'"


def test_a_seed_has_up_to_eighteen_digits():
  assert parse.parse_seeds('7, 123456789012345678') == (7, 123456789012345678)
  with pytest.raises(InputError, match='is no seed'):
    parse.parse_seeds('1' * 19)


@pytest.mark.parametrize(
  'content',
  [
    {'clusterings': [{'method': 'named_in_a_file:Chains'}]},
    {'training': {'model': 'named_in_a_file:small'}, 'clusterings': []},
    {'evaluation': {'aggregation': ['vote', 'named_in_a_file:by_size,name=mine']}},
  ],
)
def test_code_that_a_config_file_names_is_run_only_where_it_is_allowed(
  content, tmp_path, monkeypatch, capsys
):
  code = (
    "open('run', 'w').close()\nfrom sklearn.cluster import Birch as Chains\ndef by_size(membership): ...\n"
  )
  (tmp_path / 'named_in_a_file.py').write_text(code)
  path = tmp_path / 'config.json'
  path.write_text(json.dumps(content))
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  assert read(f'--config_file={path}')[0] == 2
  assert re.search('names code to run: .*named_in_a_file:', capsys.readouterr().err)
  assert not (tmp_path / 'run').exists()
  code, found = read(f'--config_file={path}', '--allow_imports')
  assert code == 0 and found == ExperimentConfig.from_json(content)
  assert read(f'--config_file={path}', '--noallow_imports')[0] == 2
  assert read('--output_dir=x', '--allow_imports')[0] == 2
  assert '--allow_imports does not apply without --config_file' in capsys.readouterr().err


@pytest.mark.parametrize(
  ('arguments', 'expected'),
  [
    ([], None),
    (['--method=kmeans', '--num_clusters=3'], ClusteringConfig('kmeans', num_clusters=3)),
    (['--clustering=kmeans,num_clusters=3'], ClusteringConfig('kmeans', num_clusters=3)),
    (['--clustering=sklearn.cluster:Birch,name=b'], ClusteringConfig('sklearn.cluster:Birch', 'b')),
  ],
)
def test_one_clustering_of_a_command_line(arguments, expected):
  sections = ('clustering', 'clusterings')
  assert read(*arguments, sections=sections, reader=parse.added_clustering) == (0, expected)


@pytest.mark.parametrize(
  ('arguments', 'words'),
  [
    (['--clustering=kmeans', '--num_clusters=3'], '--num_clusters may not stand beside --clustering'),
    (['--clustering=kmeans', '--clustering=spectral'], '--clustering is given 2 times; give it once'),
    (
      ['--method=kmeans', '--metric=l2'],
      '--metric does not apply to --method=kmeans; it applies to method hier',
    ),
    (
      ['--method=nonsense', '--metric=l2'],
      f'--method=nonsense: allowed are {", ".join(methods.METHODS)}',
    ),
  ],
)
def test_one_clustering_that_is_wrong(arguments, words, capsys):
  sections = ('clustering', 'clusterings')
  assert read(*arguments, sections=sections, reader=parse.added_clustering)[0] == 2
  assert words in capsys.readouterr().err
