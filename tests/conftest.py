"""What tests share: a small population, and one TFF context a test session."""

import contextlib
import gc
import os
import pathlib
import signal
from collections.abc import Iterator

import hypothesis
import numpy as np
import pytest

from tff_cluster.base import seeding
from tff_cluster.data import population as population_lib
from tff_cluster.storage import output_folders

# Before anything imports TensorFlow, as the programs do.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

# Who runs the tests in the background may have Ctrl-C ignored, by every program that a test starts as well. (It is
# not given back in a preexec_fn: that needs a fork, in which gRPC's handlers write to the program's stderr.)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
  signal.signal(signal.SIGINT, signal.default_int_handler)

# `make unit` tries fewer examples of each property than `make test` does.
_QUICK, _OWN_SETTINGS = 20, '_hypothesis_internal_use_settings'
hypothesis.settings.register_profile('quick', max_examples=_QUICK, deadline=None)
# How long an example takes says nothing where other programs keep the machine busy.
hypothesis.settings.register_profile('whole', deadline=None)
hypothesis.settings.load_profile('whole')

# Set by CI to the folder with real data (tff/ and tfds/); tests that need it skip elsewhere.
DATA = os.environ.get('TFF_CLUSTER_DATA')


@pytest.fixture(scope='session')
def real_data() -> pathlib.Path:
  if not DATA:
    pytest.skip('needs real data: set TFF_CLUSTER_DATA to a folder that holds tff/ and tfds/')
  return pathlib.Path(DATA)


def make_population(clients: int = 5, rows: int = 23, classes: int = 3, shape=(6,), seed: int = 0):
  """Returns a learnable population: class means plus noise, uneven clients, float32 rows."""
  rng = seeding.generator(seed, 'test population')
  means = rng.normal(size=(classes, *shape)) * 2

  def split(counts):
    y = rng.integers(classes, size=sum(counts)).astype(np.int32)
    x = (means[y] + rng.normal(size=(len(y), *shape))).astype(np.float32)
    return population_lib.Split(x, y, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

  counts = [rows + 3 * k for k in range(clients)]
  train, validation, test = split(counts), split([4] * clients), split([6] * clients)
  return population_lib.Population(
    'made up', tuple(f'c{k:02d}' for k in range(clients)), train, validation, test, test.x, test.y, classes
  )


@contextlib.contextmanager
def clients_of_runs(population, new_clients=None) -> Iterator[None]:
  """While it lasts, new runs have these clients, whatever their configurations say."""
  from tff_cluster.data import new_clients as new_clients_lib

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(new_clients_lib, 'split', lambda *_: (population, new_clients))
    yield


@pytest.fixture(scope='session')
def tff_context() -> Iterator[None]:
  """Runs TFF computations of the tests in one worker, two clients side by side."""
  from tff_cluster.engine import worker

  started = worker.start(2)
  from tff_cluster.engine import context

  with context.connected(started):
    yield


@pytest.fixture
def folders_let_go() -> Iterator[None]:
  """What a test locks is free for the next one."""
  yield
  output_folders.release_all()


@pytest.fixture(scope='module', autouse=True)
def _few_objects_to_look_through() -> Iterator[None]:
  """A run begins with a collection, which looks through all that was imported, for 0.3 s."""
  yield
  gc.collect()
  gc.freeze()


# What starts programs or draws whole reports takes seconds; `make unit` leaves it out.
_SLOW = (
  'tests/programs/',
  'tests/benchmarks/',
  'tests/report/',
  'tests/studies/',
  'tests/test_readme.py',
  'tests/cli/test_program.py',
  'tests/engine/test_worker.py',
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
  quick = config.getoption('--hypothesis-profile') == 'quick'
  for item in items:
    if item.nodeid.startswith(_SLOW):
      item.add_marker('program')
    # A property that names its number of examples would be deaf to the profile.
    own = getattr(getattr(item, 'obj', None), _OWN_SETTINGS, None)
    if quick and own is not None and own.max_examples > _QUICK:
      setattr(item.obj, _OWN_SETTINGS, hypothesis.settings(own, max_examples=_QUICK))
