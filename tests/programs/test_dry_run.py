"""--dry_run tells what a run would cost, trains nothing and leaves nothing; afterwards it tells that all is stored."""

import re

import pytest

from tests.programs.children import run_here

pytestmark = [pytest.mark.tensorflow, pytest.mark.program]

EXPERIMENT = (
    '--dataset=digits', '--partition=rotated', '--num_clients=4', '--num_groups=2', '--rows_per_client=20', '--model=logistic',
    '--phase1_rounds=2', '--phase2_rounds=1', '--clustering=kmeans,num_clusters=2',
)  # fmt: skip


@pytest.mark.parametrize(('program', 'more'), [('run_all', ()), ('compare', ('--seeds=0,1',))])
def test_a_dry_run_tells_what_the_run_then_does(program, more, tmp_path, capsys):
  folder = tmp_path / 'run'
  line = (f'phases.{program}', *EXPERIMENT, *more, f'--output_dir={folder}')
  beside = ('--runs_in_parallel=2',) if more else ()
  assert run_here(*line, *beside, '--dry_run') == 0
  told = capsys.readouterr().out.splitlines()
  runs = 2 if more else 1
  # FedAvg is 3 rounds of 4 clients; the clusters, not known yet, count as one round of all.
  assert told[-2].startswith(f'in all: {runs * 16} client-rounds, 0 stored, {runs * 16} to train, about ')
  assert told[-2].endswith(' on this machine, 2 runs side by side' if more else ' on this machine')
  assert told[0].endswith('; clusters: kmeans not known') and len(told) == runs + 2
  assert not folder.exists()

  assert run_here(*line, *(('--runs_in_parallel=1',) if more else ())) == 0
  done = capsys.readouterr()
  *_, last = done.out.splitlines()
  assert last.startswith('report ')
  summary = [out for out in done.out.splitlines() if '95% interval' in out]
  over = 'seeds and clients' if more else 'clients'
  assert len(summary) == 1 and summary[0].startswith('kmeans: ') and f'interval over {over} ' in summary[0]
  phases = [re.sub(r'^seed . \(. of 2\), ', '', row).partition(':')[0] for row in done.err.splitlines()]
  ahead = ['Phase 2, all of its models', 'FedAvg without clusters']
  one = ['Phase 1', 'clustering kmeans', *ahead, 'Phase 2 of kmeans', 'Phase 3 of kmeans']
  assert phases == one * runs + ['report']

  assert run_here(*line, '--dry_run') == 0
  told = capsys.readouterr().out.splitlines()
  assert told[-1] == (
    f'in all: {runs * 16} client-rounds, {runs * 16} stored, 0 to train, about 0.0 s on this machine'
  )
  assert told[0].endswith('; clusters: kmeans 2 clusters')

  if not more:
    assert run_here(*line, '--learning_rate=0.3', '--dry_run') == 2
    assert capsys.readouterr().err.startswith(f'error: --output_dir={folder} holds another experiment')
