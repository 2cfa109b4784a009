"""Every cell of the tutorials runs, in a folder that holds nothing; and what their text promises comes out."""

import json
import pathlib

import pytest

from tests.programs.children import ROOT
from tests.programs.notebooks import Notebook

PAGES = sorted((ROOT / 'docs/tutorials').glob('*.ipynb'))


def cells(page: pathlib.Path) -> list[dict]:
  return json.loads(page.read_text())['cells']


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_outputs_are_left_out(page):
  code = [cell for cell in cells(page) if cell['cell_type'] == 'code']
  assert code and all(cell['outputs'] == [] and cell['execution_count'] is None for cell in code)
  ids = [cell['id'] for cell in cells(page)]
  assert len(set(ids)) == len(ids)


@pytest.fixture
def opened(request, tmp_path_factory):
  """A kernel that has run all cells of the page that a test names."""
  folder = tmp_path_factory.mktemp('tutorial')
  (folder / 'work').mkdir()
  notebook = Notebook(folder, folder / 'work')
  try:
    for cell in cells(ROOT / f'docs/tutorials/{request.param}.ipynb'):
      if cell['cell_type'] == 'code':
        notebook.run(''.join(cell['source']))
    yield notebook
  finally:
    notebook.close()


@pytest.mark.tensorflow
@pytest.mark.parametrize('opened', ['run_from_python'], indirect=True)
def test_runs_from_python_are_compared_and_drawn(opened):
  assert opened.run('print(*runs)') == 'seed_0 seed_1 seed_2\n'
  assert opened.run("print(open('runs/tutorial/rounds.svg').read().count('<svg'))") == '1\n'
  # The text calls the groups planted: clusters that find them must help all runs.
  gains = "compared.loc['kmeans'] - compared.loc['FedAvg without clusters']"
  assert opened.run(f'print(({gains}).min() > 0.02, compared.shape)') == 'True (3, 3)\n'
  told = opened.run("print(by_round.loc[:6, 'kmeans'].isna().all(), by_round.loc[7:].notna().all().all())")
  assert told == 'True True\n'
  # A summary is what the other tables come to.
  means = "clients.groupby('contender')[['accuracy', 'gain']].mean()"
  lines = "run.summary().set_index('contender')"
  compared = f"(({lines}['difference'] - {means}['gain']).abs().max(), ({lines}['mean_client_accuracy'] - {means}['accuracy']).abs().max())"
  assert opened.run(f'print(max{compared} < 1e-9)') == 'True\n'


@pytest.mark.tensorflow
@pytest.mark.parametrize('opened', ['own_method'], indirect=True)
def test_a_method_of_ones_own_finds_what_was_planted(opened):
  assert (
    opened.run(
      'print(outcome.assignment.clusters == [[str(k) for k in np.flatnonzero(planted == g)] for g in range(3)])'
    )
    == 'True\n'
  )
  # Gonzalez' promise, against every choice of three seeds.
  radius = 'lambda seeds: distances[list(seeds)].min(axis=0).max()'
  opened.run(
    'import itertools\nfrom scipy.spatial import distance\ndistances = distance.cdist(vectors, vectors)\n'
    f'radius = {radius}\nbest = min(map(radius, itertools.combinations(range(15), 3)))\n'
    'told = float(outcome.notes[0].split()[5])'
  )
  assert opened.run('print(best <= told * 1.01 and told <= 2.01 * best)') == 'True\n'
  assert opened.run("print(sorted({*clusters['contender']}))") == "['farthest', 'kmeans', 'planted']\n"
  assert opened.run("print(len(own_clients), own_clients['clusters'].nunique())") == '9 3\n'
