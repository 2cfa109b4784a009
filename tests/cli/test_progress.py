"""One bar over everything on a terminal; elsewhere one line for each finished phase."""

import io
import re

import pytest

from tff_cluster.cli.progress import Progress


class _Terminal(io.StringIO):
  def isatty(self):
    return True


def shares(stream):
  """Returns the percentages that a bar went through."""
  return [int(found) for found in re.findall(r'(\d+)%\|', stream.getvalue())]


def test_a_line_a_phase_with_what_was_found_and_the_time_where_nobody_watches():
  stream = io.StringIO()
  with Progress(stream) as progress:
    with progress.run('seed 3', 2, 5):
      with progress.phase('Phase 1', 3) as tell, progress.stage('phase1', 3):
        for _ in range(3):
          progress.update(accuracy=0.5)
        tell(accuracy=0.934)
      with progress.phase('clustering kmeans') as tell:
        tell('4 clusters')
    with progress.phase('report'):
      pass
  lines = stream.getvalue().splitlines()
  assert [re.sub(r'[\d.]+ s$', 'T', line) for line in lines] == [
    'seed 3 (2 of 5), Phase 1: 93.4% accuracy, T',
    'seed 3 (2 of 5), clustering kmeans: 4 clusters, T',
    'report: T',
  ]


def test_a_stage_alone_and_a_phase_that_fails_are_no_line():
  stream = io.StringIO()
  progress = Progress(stream)
  with progress.stage('distances', 2):
    progress.update()
  with pytest.raises(ValueError, match='stop'), progress.phase('Phase 1'):
    raise ValueError('stop')
  assert stream.getvalue() == ''


def test_a_terminal_sees_one_bar_over_all_phases_of_all_runs():
  stream = _Terminal()
  with Progress(stream, interval=0) as progress:
    for number in (1, 2):
      with progress.run(f'seed {number}', number, 2):
        progress.plan({'Phase 1': 30, 'Phase 2 of kmeans': 10})
        with progress.phase('Phase 1', 2), progress.stage('phase1', 2):
          progress.update(accuracy=0.5)
          assert shares(stream)[-1] == 50 * (number - 1) + round(37.5 / 2)
          progress.update()
        with progress.phase('Phase 2 of kmeans', 4), progress.stage('kmeans/cluster_000', 4):
          progress.update(9)  # More steps than were announced are not more than the phase.
  text = stream.getvalue()
  assert text.count('\n') == 1, 'one bar'
  assert shares(stream) == sorted(shares(stream)) and shares(stream)[-1] == 100
  assert 'seed 2 (2 of 2), Phase 2 of kmeans' in text and 'accuracy=50.0%' in text and 'left' in text


def test_a_phase_that_was_done_before_counts_as_done():
  stream = _Terminal()
  with Progress(stream, interval=0) as progress:
    progress.plan({'Phase 1': 60, 'Phase 2': 40})
    with progress.phase('Phase 2', 2):
      assert shares(stream)[-1] == 60


def test_a_bar_is_closed_after_an_error():
  stream = _Terminal()
  progress = Progress(stream)
  with pytest.raises(ValueError, match='stop'), progress.stage('outer', 2):
    with progress.stage('inner', 4):
      progress.update()
    raise ValueError('stop')
  text = stream.getvalue()
  assert 'outer' in text and 'inner' in text and text.endswith('\n')
  progress.update()  # No phase is left: nothing to draw.
  assert stream.getvalue() == text
