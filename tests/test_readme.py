"""README.md, the pages of docs/ and the notes beside them against the code."""

import ast
import contextlib
import dataclasses
import functools
import importlib
import json
import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.made_up import in_json
from tests.made_up.rendering import unrendered
from tests.programs.children import no_report, run_here
from tests.test_lock import locked
from tff_cluster import papers
from tff_cluster.aggregation import rules
from tff_cluster.base import errors
from tff_cluster.cli import commands, flags, parse, program
from tff_cluster.clustering import estimators, methods
from tff_cluster.data import data_config, datasets
from tff_cluster.experiment import config
from tff_cluster.models import builtin
from tff_cluster.papers import catalogue
from tff_cluster.scorecard.published import PAPER
from tff_cluster.scorecard.rows import Ours, Run
from tff_cluster.studies.reproduction import page as reproduction_page
from tff_cluster.studies.reproduction import runs

__all__ = ['unrendered']

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / 'docs'
README, BUILD, CONTRIBUTING, CHANGELOG = (
  ROOT / name for name in ('README.md', 'BUILD.md', 'CONTRIBUTING.md', 'CHANGELOG.md')
)
KEPT = DOCS / 'results/data'
# docs/results/ is made of kept files, whose commands are looked at apart.
SITE = sorted(
  path for path in DOCS.rglob('*.md') if not path.relative_to(DOCS).parts[0].startswith('results')
)
PAGES = (README, BUILD, CONTRIBUTING, CHANGELOG, *SITE)
ROOMS = ('tff_cluster', 'phases', 'flags', 'tests', 'docs', 'benchmarks')
TOP_LEVEL = {'README.md', 'BUILD.md', 'CONTRIBUTING.md', 'CHANGELOG.md', '.ci/run'}
TOP_LEVEL |= {'requirements.in', 'requirements.lock', 'requirements.overrides.txt', 'mkdocs.yml'}
TOP_LEVEL |= {
  'requirements-site.in',
  'requirements-site.lock',
  'Containerfile',
  'CITATION.cff',
  '.pre-commit-config.yaml',
}
# First words of command lines that are not ours to check.
OTHERS = ('mkdir', 'tar', 'uv', 'pyenv', 'conda', 'sudo', 'source', 'openssl', 'for', 'done', 'dask')
OTHERS += ('pip', 'python3.11', 'podman', 'pre-commit')


@pytest.fixture(autouse=True)
def _scripts_are_forgotten(tmp_path) -> Iterator[None]:
  """A script of a page that a test has imported is no module of that name for other tests."""
  yield
  for name, module in list(sys.modules.items()):
    if (getattr(module, '__file__', None) or '').startswith(str(tmp_path)):
      del sys.modules[name]


def blocks(page: pathlib.Path, language: str) -> list[str]:
  return re.findall(rf'^```{language}\n(.*?)^```$', page.read_text(), re.M | re.S)


def scripts(page: pathlib.Path) -> dict[str, str]:
  """Returns the Python blocks by the file name that their first line gives."""
  return {text.split()[1]: text for text in blocks(page, 'python')}


def script(name: str) -> str:
  """Returns the one script of that name, however many pages show it."""
  (text,) = {found[name] for page in PAGES if name in (found := scripts(page))}
  return text


def command_lines(*pages: pathlib.Path) -> list[str]:
  """Returns all commands of the pages: the lines of shell blocks, and what stands in backticks in a table or text."""
  found = []
  for page in pages:
    for block in blocks(page, 'sh'):
      found += block.replace('\\\n', ' ').splitlines()
    prose = re.sub(r'^```.*?^```$', '', page.read_text(), flags=re.M | re.S)
    found += re.findall(r'`(python -m phases\.[^`]+ [^`]+)`', prose)
  return [' '.join(line.split()) for line in found]


def names_in_backticks(page: pathlib.Path) -> set[str]:
  prose = re.sub(r'^```.*?^```$', '', page.read_text(), flags=re.M | re.S)
  return set(re.findall(r'`([^`\s]+)`', prose)) | set(re.findall(r'\]\(([^)#]+)\)', prose))


def read_all_flags() -> None:
  """Reads every flag that the program defined, as its main does before it works."""
  from_file = 'config_file' in flags.FLAGS and flags.given(flags.RunOptions).get('config_file')
  for kind in flags.SECTIONS.values():
    # Where the data of a configuration file lies is no flag of another experiment.
    if from_file and kind is config.DataConfig:
      continue
    if all(field.name in flags.FLAGS for field in dataclasses.fields(kind)):
      parse.section_from_flags(kind)
  if 'output_dir' in flags.FLAGS:
    parse.output_dir_from_flags()
  if 'dataset' in flags.FLAGS:
    parse.experiment_config_from_flags()


def as_module(words: list[str]) -> list[str]:
  """Returns `python -m phases.NAME ...` for the words of `tff-cluster COMMAND ...`, and of other lines the words."""
  if words[0] != commands.PROGRAM:
    return words
  return ['python', '-m', commands.found('phases', ROOT / 'phases')[words[1]].module, *words[2:]]


def kept_commands() -> list[str]:
  """Returns the command lines of kept results."""
  return [
    line for path in KEPT.glob('*/provenance.json') for line in json.loads(path.read_text())['commands']
  ]


def check_command(line: str, tmp_path: pathlib.Path) -> int:
  """Parses a command line of phases.*, or of tff-cluster, in this process, without doing its work."""
  name, *arguments = as_module(shlex.split(line))[2:]
  for i, argument in enumerate(arguments):
    if argument.startswith('--config_file='):
      assert argument.endswith('/config.json')
      saved = ROOT / argument.partition('=')[2]
      if not saved.exists():
        saved = tmp_path / 'config.json'
        saved.write_text(json.dumps(config.ExperimentConfig().to_json()))
      arguments[i] = f'--config_file={saved}'
  module = importlib.import_module(name)
  return program.execute(read_all_flags, module.define_flags, [name, *arguments])


@pytest.mark.parametrize('line', sorted({*command_lines(*PAGES), *kept_commands()}))
def test_command_lines_are_understood(line, tmp_path, capsys, monkeypatch):
  monkeypatch.chdir(ROOT)
  (tmp_path / 'my_rules.py').write_text(script('my_rules.py'))
  monkeypatch.syspath_prepend(tmp_path)
  first, *rest = shlex.split(line)
  if line.startswith('python -m dask '):
    assert 'dask' in locked()
  elif line.startswith('python -m benchmarks.'):
    assert (ROOT / f'{rest[1].replace(".", "/")}.py').exists()
  elif line.startswith('python -m ') or (first == commands.PROGRAM and not rest[0].startswith('-')):
    code = check_command(line, tmp_path)
    assert (code, capsys.readouterr().err) == (0, '')
  elif first == 'make':
    targets = re.findall(r'^(\w+):', (ROOT / 'Makefile').read_text(), re.M)
    assert rest[0] in targets
  elif first == 'python':
    assert script(rest[0])
  elif first == 'tensorboard':
    assert 'tensorboard' in locked()
  else:
    assert first in (*OTHERS, commands.PROGRAM)


def test_wrong_command_lines_would_be_noticed(tmp_path, capsys):
  for line in (
    'python -m phases.run_all --output_dir=x --num_client=3',
    'python -m phases.run_all --num_clients=3',
    'python -m phases.phase2 --output_dir=x --num_clients=3',
    'python -m phases.clustering --output_dir=x --method=kmeans --linkage=ward',
  ):
    assert check_command(line, tmp_path) == 2, line
  assert capsys.readouterr().err.count('\n') == 4


def test_readme_and_installation_tell_the_same_of_what_it_takes():
  told = [
    re.search(r'The environment takes \d.*?\bdemo .*?\btests .*?\bminutes.*?\.\s', page.read_text())
    for page in (README, DOCS / 'howto/install.md')
  ]
  assert told[0] and told[1] and told[0][0].split() == told[1][0].split()


def test_every_program_preset_method_and_model_is_on_the_page_where_one_looks_for_it():
  lines = command_lines(README, *DOCS.glob('howto/*.md'))
  for path in ROOT.glob('phases/[a-z]*.py'):
    assert any(f'phases.{path.stem} ' in line for line in lines), path
  for path in ROOT.glob('flags/*.flags'):
    assert any(f'--flagfile=flags/{path.name}' in line for line in lines), path
  told = {
    'methods.md': methods.METHODS,
    'howto/own_model.md': builtin.MODELS,
    'howto/see_a_partition.md': data_config.PARTITIONS,
  }
  for page, names in told.items():
    assert set(names) <= names_in_backticks(DOCS / page), page


@functools.cache
def defined_names(path: pathlib.Path) -> set[str]:
  found = set()
  for node in ast.parse(path.read_text()).body:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
      found.add(node.name)
    targets = node.targets if isinstance(node, ast.Assign) else []
    found |= {target.id for target in targets if isinstance(target, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
      found.add(node.target.id)
  return found


def missing(name: str, made_here: frozenset[str] = frozenset()) -> bool:
  """Tells whether what stands in backticks is a file of the repository, or a name in one, that is not there."""
  path, _, inside = name.partition(':')
  is_ours = (path.split('/')[0] in ROOMS and '/' in path) or path in TOP_LEVEL
  if not is_ours or path in made_here:
    return False
  if not any(ROOT.glob(path.replace('NAME', '*'))):
    return True
  return bool(inside) and inside not in defined_names(ROOT / path)


def test_scripts_of_pages_pass_the_linter_where_they_are_saved(tmp_path):
  for page in PAGES:
    for name, text in scripts(page).items():
      if name.endswith('.py'):
        (tmp_path / name).write_text(text)
  asked = [sys.executable, '-m', 'ruff', 'check', '--config', ROOT / 'ruff.toml', tmp_path]
  found = subprocess.run(asked, capture_output=True, text=True, cwd=ROOT)
  assert found.returncode == 0, found.stdout


# What CONTRIBUTING.md shows how to write.
NEW = frozenset(
  path
  for package, tests, module in (
    ('clustering/methods', 'clustering/methods', 'chains'),
    ('clustering/methods', 'clustering/methods', 'loyal'),
    ('aggregation/rules', 'aggregation', 'by_size'),
    ('data/datasets', 'data', 'blobs'),
  )
  for path in (f'tff_cluster/{package}/{module}.py', f'tests/{tests}/test_{module}.py')
)


def test_recipes_put_files_into_folders_that_are_there():
  assert [path for path in NEW if not (ROOT / path).parent.is_dir()] == []


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_files_and_functions_that_pages_name_are_there(page):
  names = {name.removeprefix('../') for name in names_in_backticks(page)}
  assert sorted(name for name in names if missing(name, NEW)) == []


def test_a_missing_file_or_function_would_be_noticed():
  inside = 'tff_cluster/experiment/config.py'
  assert all(missing(name) for name in ('tff_cluster/nowhere.py', f'{inside}:nothing', 'docs/x.md'))
  assert not any(missing(name) for name in (f'{inside}:ExperimentConfig', 'runs/demo/report.html'))


def test_bare_file_names_in_the_build_notes_are_files_of_some_room():
  bare = {name for name in names_in_backticks(BUILD) if re.fullmatch(r'\w+\.py', name)}
  rooms = ('tff_cluster', 'phases', 'tests', 'benchmarks', 'docs')
  there = {path.name for room in rooms for path in (ROOT / room).rglob('*.py')}
  assert bare and bare <= there, bare - there


@pytest.mark.tensorflow
def test_the_tutorial_goes_from_own_data_and_own_model_to_clusters_that_are_the_planted_groups(
  tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  exec(compile(script('my_data.py'), 'my_data.py', 'exec'), {})
  (tmp_path / 'my_models.py').write_text(script('my_models.py'))
  lines = command_lines(DOCS / 'tutorials/first_answer.md')
  partition, run, replay, _ = (line for line in lines if line.startswith('python -m phases.'))
  with no_report():
    for line in (partition, run, replay):
      assert run_here(*shlex.split(line)[2:]) == 0, line
  results = json.loads((tmp_path / 'runs/mine/results.json').read_text())
  assert results['training']['parameters'] == 40 * 16 + 16 + 16 * 3 + 3
  fed_avg, clusters = results['summary']
  assert clusters['label'] == 'kmeans = dynamic_distance' and clusters['ari'] == 1.0
  assert (
    clusters['mean_client_accuracy'] - fed_avg['mean_client_accuracy'] > 0.2
  )  # A third of the rows is called otherwise.
  assert (tmp_path / 'runs/my_rows/partition.svg').exists() and (tmp_path / 'runs/mine/replay.csv').exists()


def test_the_experts_of_the_how_to_are_better_together(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  exec(compile(script('my_outputs.py'), 'my_outputs.py', 'exec'), {})
  line, *_ = [line for line in command_lines(DOCS / 'howto/experts.md') if 'phases.experts' in line]
  assert run_here(*shlex.split(line)[2:]) == 0
  with np.load('outputs.npz') as given, np.load('runs/experts/predictions.npz') as found:
    alone = (given['outputs'].argmax(axis=2) == given['labels']).mean(axis=1)
    assert (found['vote'] == given['labels']).mean() > alone.max()


def test_own_methods_of_the_how_to_cluster_its_vectors(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  exec(compile(script('my_vectors.py'), 'my_vectors.py', 'exec'), {})
  (tmp_path / 'my_methods.py').write_text(script('my_methods.py'))
  (line,) = [line for line in command_lines(*PAGES) if 'my_methods:Mutual' in line]
  assert run_here(*shlex.split(line)[2:]) == 0
  assert capsys.readouterr().out.startswith('Mutual: 4 clusters, 40 clients')
  clusters = json.loads((tmp_path / 'runs/mutual/clusters.json').read_text())['clusters']
  # Ten rows around each of four corners, in their order.
  assert all(len({int(client) // 10 for client in members}) == 1 for members in clusters)
  assert sum(map(len, clusters)) == 40


@pytest.mark.tensorflow
def test_own_rules_of_the_readme_stand_beside_the_built_in_ones(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / 'my_rules.py').write_text(script('my_rules.py'))
  (line,) = [line for line in command_lines(*PAGES) if '--aggregation=my_rules:by_members' in line]
  assert run_here(*shlex.split(line)[2:]) == 0
  folder = tmp_path / 'runs/my_rules'
  results = json.loads((folder / 'results.json').read_text())
  assert [rule['name'] for rule in results['rules']] == ['by_members', 'trusted', 'vote']
  (clustering,) = results['clusterings']
  assert len(clustering['evaluations']) == len(rules.mixing_rules()) + 3
  sizes = np.array([len(members) for members in clustering['clusters']])
  mixing = np.array(clustering['evaluations']['by_members']['mixing'])
  np.testing.assert_allclose(mixing[:, 0], sizes / sizes.sum())
  page = (folder / 'report.html').read_text()
  assert all(rule['words'] in page for rule in results['rules'])


@contextlib.contextmanager
def recipe(name: str, package: ModuleType, found: Any, folder: pathlib.Path) -> Iterator[dict[str, Any]]:
  """While it lasts, a package has a module of CONTRIBUTING.md; yields the names of the module's test, which has passed.

  Args:
    name: Of the module.
    package: Where it is found by being there.
    found: The function that remembers what the package has.
    folder: Where the module is written.
  """
  written = scripts(CONTRIBUTING)
  (folder / f'{name}.py').write_text(written[f'{name}.py'])
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(package, '__path__', [*package.__path__, str(folder)])
    found.cache_clear()
    try:
      scope: dict[str, Any] = {}
      exec(compile(written[f'test_{name}.py'], f'test_{name}.py', 'exec'), scope)
      (test,) = (thing for key, thing in scope.items() if key.startswith('test_'))
      test()
      yield scope
    finally:
      found.cache_clear()
      sys.modules.pop(f'{package.__name__}.{name}', None)
      vars(package).pop(name, None)


def test_the_recipe_adds_a_rule(tmp_path):
  with recipe('by_size', rules, rules._found, tmp_path):
    names = [rule.name for rule in rules.mixing_rules()]
    assert 'by_size' in names
    with pytest.raises(errors.InputError, match='every Phase 3 has by_size'):
      rules.added(['by_size'])


def test_the_recipe_adds_a_data_set(tmp_path):
  with recipe('blobs', datasets, datasets.registered, tmp_path):
    assert list(datasets.registered())[-1] == 'blobs' and 'blobs' in datasets.with_option('test_fraction')


def test_the_recipe_adds_a_method_which_comes_in_by_import_path_too(tmp_path, monkeypatch):
  points = [[0.0], [1.0], [5.0]]
  with recipe('chains', methods, methods._found, tmp_path) as scope:
    signatures = scope['Signatures'].numbered(np.array(points))
    asked = parse.parse_clustering_spec('chains,radius=1')
    assert methods.cluster(asked, signatures, 0).assignment.clusters == [['0', '1'], ['2']]
    with pytest.raises(errors.InputError, match='it applies to method chains'):
      parse.parse_clustering_spec('kmeans,radius=1')
    assert estimators.estimator(asked.rule)(radius=1.0).fit(points).labels_.tolist() == [0, 0, 1]
  (tmp_path / 'chains.py').rename(tmp_path / 'chains_of_mine.py')
  monkeypatch.syspath_prepend(tmp_path)
  asked = parse.parse_clustering_spec('chains_of_mine:Chains,radius=1.5,name=mine')
  assert methods.cluster(asked, signatures, 0).assignment.clusters == [['0', '1'], ['2']]
  assert asked.words()['title'] == 'chains'
  assert asked.to_json() == {'method': 'chains_of_mine:Chains', 'name': 'mine', 'radius': 1.5}
  at_default = parse.parse_clustering_spec('chains_of_mine:Chains,radius=1')
  assert at_default == config.ClusteringConfig('chains_of_mine:Chains')


def test_the_recipe_adds_a_method_that_alternates(tmp_path):
  with recipe('loyal', methods, methods._found, tmp_path):
    asked = parse.parse_clustering_spec('loyal,num_clusters=3,start=warm')
    assert asked.rule.alternates and asked.rule.told_number(asked.options) == 3


def test_the_recipe_adds_a_paper(tmp_path, monkeypatch):
  folder = tmp_path / 'somebody1999'
  folder.mkdir()
  (folder / '__init__.py').write_text(scripts(CONTRIBUTING)['somebody1999.py'])
  monkeypatch.setattr(papers, '__path__', [*papers.__path__, str(tmp_path)])
  published = catalogue.collect()['somebody1999/table1']
  assert set(catalogue.collect()) > set(catalogue.PUBLISHED)
  for scale in (published.scale('paper'), published.small):
    (job,) = runs.plan(published, scale, (0,), tmp_path)
    assert job.config.clusterings[0].method == 'kmeans'
  history = {'rounds': [6, 7], 'test_accuracy': [0.8, 0.95], 'share_at_target': [0.1, 0.5]}
  clustering = {'history': history, 'recovery': {}, 'num_clusters': 4, 'threshold': None}
  baseline = {'history': {**history, 'test_accuracy': [0.7, 0.79]}}
  results = in_json.typed({'config': {}, 'baseline': baseline, 'clusterings': [clustering]})
  ours = Ours(published.rows[0], tuple(Run(seed, results, results.clusterings[0]) for seed in range(3)))
  path = reproduction_page.write_page(published, {'K = 4': ours}, PAPER, {}, tmp_path / 'page')
  words = 'of 1 claim 1 holds; of 5 printed numbers'  # Two of three have a ratio.
  assert words in path.read_text()
  sys.modules.pop('tff_cluster.papers.somebody1999')


@pytest.mark.tensorflow
def test_the_experiment_from_python_runs_and_leaves_the_files_that_the_reference_lists(
  tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  for name in ('experiment.py', 'use_model.py'):
    exec(compile(script(name), name, 'exec'), {'__name__': '__main__'})
  *told, labels = capsys.readouterr().out.splitlines()
  (page,) = blocks(DOCS / 'howto/from_python.md', 'text')
  promised = page.splitlines()
  assert [re.sub(r'[\d.]+%', '%', line) for line in told] == [
    re.sub(r'[\d.]+%', '%', line) for line in promised
  ]
  percents = [
    [float(number) for number in re.findall(r'([\d.]+)%', '\n'.join(lines))] for lines in (told, promised)
  ]
  assert percents[0] == pytest.approx(percents[1], abs=3.0)  # Another processor may move a few rows.
  results = json.loads((tmp_path / 'runs/python/results.json').read_text())
  for histories in (results['baseline'], *results['clusterings']):
    last = histories['history']['test_accuracy'][-5:]
    assert max(last) - min(last) < 0.1  # The training converges.
  assert re.fullmatch(r'\[(\d) \1\]', labels)  # Two equal images get one label.
  section = (DOCS / 'reference/files.md').read_text().partition('## Files of a run\n')[2].partition('\n#')[0]
  files = re.findall(r'^\| `([^`]+)` \|', section, re.M)
  assert len(files) > 20
  for name in files:
    pattern = name.replace('LABEL', '*').replace('KIND', '*')
    assert any((tmp_path / 'runs/python').glob(pattern)), name
