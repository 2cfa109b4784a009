"""The floors of the house, enforced by parsing imports; and every preset in flags/ describes an experiment.

The rules are one function over a source tree, so that they are also tried on trees with planted faults.
"""

import ast
import dataclasses
import functools
import importlib
import itertools
import re
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import pytest

from tff_cluster.aggregation import rules
from tff_cluster.cli import flags, parse, program
from tff_cluster.clustering import methods
from tff_cluster.data import datasets

ROOT = Path(__file__).parents[1]
# A room may import itself and the rooms on floors below.
FLOORS = (
  ('base',),
  ('storage',),
  ('models', 'data', 'engine'),
  ('federated', 'clustering'),
  ('aggregation',),
  ('experiment',),
  ('scorecard',),
  ('papers', 'phases'),
  ('report',),
  ('studies',),
  ('cli',),
  ('programs',),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# What may speak of flags: a command that a reader of a report is to type, TFF's own worker, and git.
FLAGS_IN_TEXTS = {
  'tff_cluster.base.environment': {'--abbrev', '--always', '--dirty', '--exclude'},
  'tff_cluster.report.sections': {'--allow_imports', '--config_file', '--output_dir'},
  'tff_cluster.engine.worker': {'--max_concurrent_computation_calls'},
  'tff_cluster.engine.worker_launcher': {'--port'},
}
# Rooms that know little, and what of the house they may know.
KNOWING = {
  'aggregation': {'base', 'data', 'clustering'},
  'scorecard': {'base', 'clustering', 'aggregation', 'experiment', 'data', 'storage'},
  'papers': {'base', 'scorecard', 'clustering', 'experiment'},
  'report': {'base', 'storage', 'data', 'clustering', 'aggregation', 'experiment', 'scorecard', 'papers'},
}
# No room is more of the package than this.
LARGEST_SHARE = 0.2
WITHOUT_TENSORFLOW = (
  'base', 'storage', 'clustering', 'aggregation', 'experiment', 'scorecard', 'papers', 'report', 'cli',
)  # fmt: skip
TENSORFLOW = ('tensorflow', 'tensorflow_federated', 'tensorflow_datasets', 'keras', 'tf_keras')
DRAWING_NOTHING = ('Generator', 'get_state', 'set_state')
FILE_METHODS = {'write_text', 'write_bytes', 'read_text', 'read_bytes', 'touch', 'mkdir', 'unlink', 'tofile'}
FILE_CALLS = {'np': {'load', 'save', 'savez', 'savez_compressed', 'loadtxt', 'savetxt', 'memmap', 'fromfile'}}
FILE_CALLS |= {'json': {'load', 'dump'}, 'os': {'open', 'remove', 'rename', 'makedirs'}, 'io': {'open'}}


class Tree:
  """The modules of tff_cluster/ and phases/ below a root, parsed."""

  def __init__(self, root: Path):
    self.parsed: dict[str, ast.Module] = {}
    for path in [*root.glob('tff_cluster/**/*.py'), *root.glob('phases/**/*.py')]:
      name = '.'.join(path.relative_to(root).with_suffix('').parts).removesuffix('.__init__')
      self.parsed[name] = ast.parse(path.read_text())
    self.nodes = {name: list(ast.walk(parsed)) for name, parsed in self.parsed.items()}
    self.packages = {'.'.join(path.relative_to(root).parent.parts) for path in root.glob('*/**/__init__.py')}
    self.imports = {name: self._imports_of(name) for name in self.parsed}
    self.modules_imported = {name: self._modules_imported_by(name) for name in self.parsed}

  def _imports_of(self, module: str) -> set[str]:
    """Returns the dotted names that a module imports, anywhere in it; `from a import b` gives a and a.b."""
    found: set[str] = set()
    for node in self.nodes[module]:
      if isinstance(node, ast.Import):
        found |= {alias.name for alias in node.names}
      elif isinstance(node, ast.ImportFrom):
        base = self._absolute(module, node)
        found |= {base, *(f'{base}.{alias.name}' for alias in node.names)}
      elif isinstance(node, ast.Call) and ast.unparse(node.func) in ('importlib.import_module', '__import__'):
        found |= {arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)}
    return found

  def _modules_imported_by(self, module: str) -> set[str]:
    """Returns those of the tree's own modules that a module imports, and the packages around them."""
    around = {name.rsplit('.', k)[0] for name in self.imports[module] for k in range(name.count('.') + 1)}
    return (around & self.parsed.keys()) - {module}

  def reachable(self, module: str) -> set[str]:
    seen, waiting = {module}, [module]
    while waiting:
      new = self.modules_imported[waiting.pop()] - seen
      seen |= new
      waiting += new
    return seen

  def _absolute(self, module: str, node: ast.ImportFrom) -> str:
    if not node.level:
      return node.module or ''
    package = module if module in self.packages else module.rpartition('.')[0]
    parts = package.split('.')[: len(package.split('.')) - node.level + 1]
    return '.'.join([*parts, *([node.module] if node.module else [])])


house = functools.cache(lambda: Tree(ROOT))


def room(module: str) -> str:
  """Returns 'programs', or the part of tff_cluster that a module is in; '' for tff_cluster itself."""
  parts = module.split('.')
  return 'programs' if parts[0] == 'phases' else parts[1] if len(parts) > 1 else ''


def violations(tree: Tree) -> Iterator[str]:
  """Yields one line for each broken rule of who may import and do what."""
  for module in tree.parsed:
    here = room(module)
    if here and here not in FLOOR_OF:
      yield f'{module}: this room has no floor'
      continue
    if module.count('.') == 1 and module not in tree.packages and here != 'programs':
      yield f'{module}: a module outside of all rooms'
    yield from _own_violations(tree, module, here)
    for other in tree.modules_imported[module]:
      there = room(other)
      if FLOOR_OF.get(there, -1) > FLOOR_OF.get(here, -1):
        yield f'{module} imports {other}: upwards'
      elif there != here and there and FLOOR_OF.get(there) == FLOOR_OF[here]:
        yield f'{module} imports {other}: rooms of one floor do not know each other'
      elif there and there != here and there not in KNOWING.get(here, {there}):
        yield f'{module} imports {other}: these rooms do not know each other'
    if here in WITHOUT_TENSORFLOW:
      for reached in tree.reachable(module):
        if any(name.split('.')[0] in TENSORFLOW for name in tree.imports[reached]):
          yield f'{module} imports TensorFlow (in {reached})'
  yield from circles(tree)


def circles(tree: Tree) -> Iterator[str]:
  """Yields one line for each folder that imports itself by way of others; a folder and those inside it are one house."""
  folder_of = {name: name if name in tree.packages else name.rpartition('.')[0] for name in tree.parsed}
  ahead: dict[str, set[str]] = {folder: set() for folder in folder_of.values()}
  for module, here in folder_of.items():
    for imported in tree.imports[module] & tree.parsed.keys():
      there = folder_of[imported]
      if not f'{there}.'.startswith(f'{here}.') and not f'{here}.'.startswith(f'{there}.'):
        ahead[here].add(there)
  for folder in ahead:
    seen: set[str] = set()
    waiting = list(ahead[folder])
    while waiting:
      new = waiting.pop()
      if new not in seen:
        seen.add(new)
        waiting += ahead[new]
    if folder in seen:
      yield f'{folder} is on a circle of folders: {", ".join(sorted(f for f in seen if folder in ahead[f]))}'


def shares(root: Path) -> dict[str, float]:
  """Returns what part of the lines of tff_cluster/ is in each room, scripts and style sheets of pages included."""
  lines: dict[str, int] = {}
  for path in root.glob('tff_cluster/*/**/*'):
    if path.suffix in ('.py', '.js', '.css', '.html'):
      here = path.relative_to(root).parts[1]
      lines[here] = lines.get(here, 0) + len(path.read_text().splitlines())
  return {here: count / sum(lines.values()) for here, count in lines.items()}


def _own_violations(tree: Tree, module: str, here: str) -> Iterator[str]:
  names = tree.imports[module]
  if here not in ('cli', 'programs') and any(name.startswith(('absl.flags', 'absl.app')) for name in names):
    yield f'{module} knows absl flags'
  # Rows go to the workers of a cluster side by side in the loop that Dask's client has.
  with_loops = ('tff_cluster.federated.event_loop', 'tff_cluster.engine.kept_rows')
  if any(name.split('.')[0] == 'asyncio' for name in names) and module not in with_loops:
    yield f'{module} uses asyncio beside tff_cluster.federated.event_loop'
  if here in ('scorecard', 'papers') and any(name.split('.')[0] == 'matplotlib' for name in names):
    yield f'{module} draws: matplotlib'
  if any(name.split('.')[0] == 'tensorflow_federated' for name in names):
    if here not in ('federated', 'engine', 'data'):
      yield f'{module} imports TFF'
    elif here == 'data' and not _only_simulation(tree.parsed[module]):
      yield f'{module} uses TFF beyond tff.simulation'
  for node in tree.nodes[module]:
    if here in ('phases', 'studies') and isinstance(node, ast.Call) and _touches_files(node.func):
      yield f'{module} touches files: {ast.unparse(node.func)}, line {node.lineno}'
    drawn = _attribute_of(node, 'np.random', 'numpy.random')
    if module != 'tff_cluster.base.seeding' and drawn and drawn not in DRAWING_NOTHING:
      yield f'{module} draws beside tff_cluster.base.seeding: {ast.unparse(node)}, line {node.lineno}'


def flags_in_texts(tree: Tree) -> Iterator[str]:
  """Yields one line for each text of the library that speaks of flags; what a module says of itself may."""
  for module, parsed in tree.parsed.items():
    if room(module) in ('cli', 'programs'):
      continue
    docstring = parsed.body[0].value if ast.get_docstring(parsed) is not None else None
    for node in tree.nodes[module]:
      if isinstance(node, ast.Constant) and isinstance(node.value, str) and node is not docstring:
        for flag in re.findall(r'--[a-z]\w*', node.value):
          if flag not in FLAGS_IN_TEXTS.get(module, ()) and not _is_css(node.value, flag):
            yield f'{module} speaks of {flag}, line {node.lineno}'
      elif isinstance(node, ast.JoinedStr):
        for before, after in itertools.pairwise(node.values):
          if (
            isinstance(before, ast.Constant)
            and before.value.endswith('--')
            and isinstance(after, ast.FormattedValue)
          ):
            yield f'{module} speaks of --{ast.unparse(after)}, line {node.lineno}'


def _is_css(text: str, name: str) -> bool:
  """Tells whether a name is declared in a text as a property of CSS."""
  return f'{name}: ' in text or f'var({name})' in text


NAMING = (ast.Compare, ast.Dict, ast.MatchValue, ast.Subscript, ast.Tuple, ast.List, ast.Set)


def _outside(tree: Tree, folder: str) -> Iterator[tuple[str, ast.AST]]:
  """Yields (module, node) of what may name something, in all modules but those of a folder and of papers."""
  for module, nodes in tree.nodes.items():
    if not module.startswith((f'tff_cluster.{folder}', 'tff_cluster.papers')):
      yield from ((module, node) for node in nodes if isinstance(node, NAMING))


def _asked(node: ast.AST) -> list[ast.expr | None]:
  """Returns what a comparison, the keys of a dictionary, or a case name."""
  if isinstance(node, ast.Compare):
    return [part for each in (node.left, *node.comparators) for part in _members(each)]
  if isinstance(node, ast.Dict):
    return list(node.keys)
  return [node.value] if isinstance(node, ast.MatchValue) else []


def _of(names: Container[object], nodes: Iterable[ast.expr | None]) -> list[str]:
  return [node.value for node in nodes if isinstance(node, ast.Constant) and node.value in names]


def method_branches(tree: Tree) -> Iterator[str]:
  """Yields one line for each place that asks for a clustering method's name, outside of methods and papers."""
  for module, node in _outside(tree, 'clustering.methods'):
    found = _of(methods.METHODS, _asked(node))
    # The oracle's name is a word too, and a key of files: it counts beside a method's.
    if not isinstance(node, ast.Dict) or not all(methods.METHODS[name].oracle for name in found):
      yield from (f'{module} asks for method {name!r}: {ast.unparse(node)}' for name in found)


# Names of rules of Phase 3 that are words of other vocabularies too (thresholds, linkages, kinds of contenders, intervals).
WORDS = {'mean', 'average', 'oracle'}


def rule_branches(tree: Tree) -> Iterator[str]:
  """Yields one line for each place that knows a rule of Phase 3 by its name, outside of rules and papers."""
  for module, node in _outside(tree, 'aggregation.rules'):
    asked = _asked(node)
    if isinstance(node, ast.Subscript):
      asked = [node.slice]
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)) and len(_of(rules.RULES, node.elts)) > 1:
      asked = list(node.elts)
    found = _of(rules.RULES, asked)
    told = ast.unparse(node) if found and isinstance(node, (ast.Compare, ast.Subscript)) else ''
    if len(found) > 1 or not set(found) <= WORDS or re.search('rule|evaluation|expert|agreement', told):
      yield from (f'{module} asks for rule {name!r}: {ast.unparse(node)}' for name in found)


def dataset_branches(tree: Tree) -> Iterator[str]:
  """Yields one line for each comparison with the name of a data set, outside of data sets and papers."""
  for module, node in _outside(tree, 'data.datasets'):
    if isinstance(node, ast.Compare) and 'dataset' in ast.unparse(node):
      found = _of(datasets.registered(), _asked(node))
      yield from (f'{module} asks for data set {name!r}: {ast.unparse(node)}' for name in found)


def _members(node: ast.expr) -> list[ast.expr]:
  """Returns the elements of a tuple, list or set, else the node itself."""
  return list(node.elts) if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]


def _only_simulation(tree: ast.Module) -> bool:
  for node in ast.walk(tree):
    if _attribute_of(node, 'tff', 'tensorflow_federated') not in (None, 'simulation'):
      return False
    if isinstance(node, ast.ImportFrom) and (node.module or '').startswith('tensorflow_federated'):
      names = {f'{node.module}.{alias.name}' for alias in node.names}
      if not all(name.startswith('tensorflow_federated.simulation') for name in names):
        return False
  return True


def _attribute_of(node: ast.AST, *owners: str) -> str | None:
  """Returns NAME where the node is OWNER.NAME, else None."""
  owner = node.value if isinstance(node, ast.Attribute) else None
  is_named = isinstance(owner, ast.Name) or (
    isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name)
  )
  return node.attr if is_named and ast.unparse(owner) in owners else None


def _touches_files(call: ast.expr) -> bool:
  if isinstance(call, ast.Name):
    return call.id == 'open'
  if not isinstance(call, ast.Attribute):
    return False
  if isinstance(call.value, ast.Name) and call.value.id in FILE_CALLS:
    return call.attr in FILE_CALLS[call.value.id]
  return call.attr in FILE_METHODS or call.attr == 'open'


RULES = (violations, flags_in_texts, method_branches, rule_branches, dataset_branches)


@pytest.mark.parametrize('rule', RULES)
def test_the_house_keeps_its_rules(rule):
  assert sorted(rule(house())) == []


def test_every_room_has_a_floor_and_none_is_too_large():
  found = shares(ROOT)
  assert {*found, 'programs'} == FLOOR_OF.keys()
  assert max(found.values()) <= LARGEST_SHARE
  assert 'tff_cluster.base.errors' in house().reachable('phases.clustering')


def planted(root: Path, files: dict[str, str]) -> Tree:
  """Returns a tree of these files of tff_cluster/, each folder a package."""
  for name, text in ({'__init__.py': ''} | files).items():
    path = root / 'tff_cluster' / name
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / '__init__.py').touch()
    path.write_text(text)
  return Tree(root)


CIRCLE = {
  'report/a/__init__.py': '', 'report/a/b.py': 'from tff_cluster.report.c import d',
  'report/c/__init__.py': '', 'report/c/d.py': 'from tff_cluster.report.a import b',
}  # fmt: skip


@pytest.mark.parametrize(
  ('files', 'message'),
  [
    ({'experiment/a.py': 'def f():\n  from keras import layers'}, 'experiment.a imports TensorFlow'),
    ({'clustering/a.py': 'from ..models import b', 'models/b.py': 'import importlib\nimportlib.import_module("tensorflow")'},
     'clustering.a imports TensorFlow (in tff_cluster.models.b)'),
    ({'report/a.py': 'import tff_cluster.data', 'data/__init__.py': 'import keras'}, 'report.a imports TensorFlow'),
    ({'phases/a.py': 'from absl import flags'}, 'phases.a knows absl flags'),
    ({'data/a.py': 'import absl.app'}, 'data.a knows absl flags'),
    ({'phases/a.py': 'import tensorflow_federated as tff'}, 'phases.a imports TFF'),
    ({'data/a.py': 'import tensorflow_federated as tff\ntff.learning.models'}, 'data.a uses TFF beyond tff.simulation'),
    ({'data/a.py': 'from tff_cluster.experiment import b', 'experiment/b.py': ''}, 'data.a imports tff_cluster.experiment.b: upwards'),
    ({'clustering/a.py': 'from tff_cluster.federated import b', 'federated/b.py': ''},
     'clustering.a imports tff_cluster.federated.b: rooms of one floor'),
    ({'report/a.py': 'from tff_cluster.phases.b import f', 'phases/b.py': ''}, 'report.a imports tff_cluster.phases.b: these rooms'),
    ({'phases/a.py': 'open("x")'}, 'phases.a touches files: open'),
    ({'studies/a.py': 'def f(p):\n  p.write_text("x")'}, 'studies.a touches files: p.write_text'),
    ({'phases/a.py': 'import numpy as np\nnp.save("x", 1)'}, 'phases.a touches files: np.save'),
    ({'data/a.py': 'import numpy as np\nnp.random.shuffle([])'}, 'data.a draws beside'),
    ({'federated/a.py': 'def f():\n  import asyncio'}, 'federated.a uses asyncio beside'),
    ({'scorecard/a.py': 'def f():\n  import matplotlib.pyplot'}, 'scorecard.a draws: matplotlib'),
    ({'loose.py': ''}, 'loose: this room has no floor'),
    ({'data.py': ''}, 'data: a module outside of all rooms'),
    (CIRCLE, 'report.a is on a circle of folders: tff_cluster.report.c'),
  ],
)  # fmt: skip
def test_planted_faults_are_found(tmp_path, files, message):
  found = list(violations(planted(tmp_path, files)))
  assert any(line.startswith(f'tff_cluster.{message}') for line in found), found


@pytest.mark.parametrize(
  ('rule', 'own', 'code'),
  [
    *((flags_in_texts, 'cli', code) for code in (
      "x = '--seed=3: wrong'", "x = f'use a smaller --{name}'", "def f():\n  '''What --seed says.'''", "x = '--port'",
    )),
    *((method_branches, 'clustering/methods', code) for code in (
      "'kmeans' != c['method']", "c.method in ('spectral', 'kmeans')", "words = {'kmeans': 1}",
      "match c.method:\n  case 'other' | 'kmeans':\n    pass",
    )),
    *((rule_branches, 'aggregation/rules', code) for code in (
      "rule.name == 'blended'", "name in ('own', 'average')", "words = {'own': 1}", "names = ('average', 'weighted')",
      "match name:\n  case 'weighted':\n    pass", "clustering['evaluations']['average']", "if rule == 'mean':\n  pass",
    )),
    *((dataset_branches, 'data/datasets', code) for code in (
      "c.dataset == 'mnist'", "if data.dataset not in ('emnist', 'file'):\n  pass",
    )),
  ],
)  # fmt: skip
def test_a_planted_name_is_found_but_where_it_belongs(tmp_path, rule, own, code):
  places = {'phases/a.py': code, f'{own}/c.py': code}
  if rule is not flags_in_texts:
    places['papers/b.py'] = code
  found = list(rule(planted(tmp_path, places)))
  assert found and all(line.startswith('tff_cluster.phases.a ') for line in found)


@pytest.mark.parametrize(
  ('rule', 'files'),
  [
    (flags_in_texts, {
      'base/a.py': "'''How --seed is read.'''\nx = 'a -- b --'",
      'base/c.py': "x = 'a { --ink: #000; color: var(--ink); }'",
    }),
    (method_branches, {'experiment/config.py': "default = f('kmeans')\nc.partition == 'iid'"}),
    (rule_branches, {
      'report/a.py': "linkage == 'average'\nrow['mean']\nf('own')\nx = {'oracle': 1}\nKINDS = ('a', 'oracle')",
    }),
    (violations, {
      'data/a.py': 'import tensorflow_federated as tff\nimport tensorflow\ntff.simulation.datasets',
      'federated/a.py': 'import tensorflow_federated as tff\ntff.learning\nfrom absl import logging',
      'phases/a.py': 'from tff_cluster.federated import a\nfrom tff_cluster.clustering import b\n"x".replace("x", "")',
      'clustering/b.py': 'import numpy as np\ndef f(rng: np.random.Generator): ...',
      'cli/a.py': 'from absl import flags',
    }),
  ],
)  # fmt: skip
def test_what_is_allowed_is_no_fault(tmp_path, rule, files):
  assert list(rule(planted(tmp_path, files))) == []


def test_what_errors_call_an_argument_is_one():
  declared = {field.name for kind in flags.SECTIONS.values() for field in dataclasses.fields(kind)}
  calls = [node for nodes in house().nodes.values() for node in nodes if isinstance(node, ast.Call)]
  first = [call.args[0] for call in calls if ast.unparse(call.func) == 'argument']
  named = {part.value for part in first if isinstance(part, ast.Constant)}
  assert len(named) > 25 and named <= declared | {'clustering'}


@pytest.mark.parametrize('path', sorted(ROOT.glob('flags/*.flags')), ids=lambda path: path.stem)
def test_preset_describes_an_experiment(path, tmp_path, capsys):
  named = re.search(r'python -m phases\.(\w+)', path.read_text())
  if named:
    define = importlib.import_module(f'phases.{named[1]}').define_flags
  else:
    define = _define_experiment
  arguments = [path.name, f'--flagfile={path}', f'--output_dir={tmp_path}']
  code = program.execute(_read_experiment, define, arguments)
  assert (code, capsys.readouterr().err) == (0, '')


def _define_experiment() -> None:
  flags.define('data', 'training', 'clusterings', 'evaluation', 'run')


def _read_experiment() -> None:
  parse.experiment_config_from_flags()
