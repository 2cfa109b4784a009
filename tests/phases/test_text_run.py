"""Text goes the way of images: the languages of made-up plays are found, knowing them helps, and the pages are made."""

import pytest

from tests.made_up import two_languages
from tests.programs import children
from tff_cluster.studies.loaded_run import load

pytestmark = [pytest.mark.tensorflow, pytest.mark.program]
# One character before the one that is told: more of them would give the language away, and one model would do for both.
FLAGS = (
  '--dataset=text', '--partition=by_writer', '--num_clients=9', '--new_clients=2', '--text_window=1', '--model=char_rnn',
  '--phase1_rounds=2', '--phase2_rounds=5', '--learning_rate=1', '--batch_size=16', '--clustering=kmeans,num_clusters=2',
)  # fmt: skip


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """A comparison of one seed."""
  path = tmp_path_factory.mktemp('text')
  (path / 'plays.txt').write_text(two_languages.plays(5, 700))
  given = (f'--data_file={path}/plays.txt', f'--output_dir={path}/out', '--seeds=0', *FLAGS)
  assert children.run_here('phases.compare', *given) == 0
  return path / 'out'


def test_the_languages_are_found_and_knowing_them_helps(folder):
  fedavg, clustered = load(folder / 'seed_0').summary().iloc[:2].to_dict('records')
  assert clustered['ari'] == 1.0
  # Where the language is known the best guess is right three times out of four, and half as often where it is not.
  assert fedavg['mean_client_accuracy'] < 0.5 < 0.6 < clustered['mean_client_accuracy'] < 0.85


def test_atlas_and_newcomers_are_as_with_images(folder):
  page, atlas = ((folder / name).read_text() for name in ('index.html', 'atlas.html'))
  run = load(folder / 'seed_0')
  assert len(run.clients()) and all(f'"{client}"' in atlas for client in run.clients()['client'].unique())
  assert 'New clients' in page and (folder / 'seed_0' / 'new_clients').is_dir()
