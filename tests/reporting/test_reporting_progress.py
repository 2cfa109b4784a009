"""Progress bars appear on a terminal and nowhere else."""

import io

import pytest

from tff_cluster.reporting.progress import Progress


class _Terminal(io.StringIO):
  def isatty(self):
    return True


def test_silent_when_nobody_watches():
  stream = io.StringIO()
  progress = Progress(stream)
  with progress.stage('Phase 1', 3):
    for _ in range(3):
      progress.update(accuracy=0.5)
  assert stream.getvalue() == ''


def test_a_terminal_sees_name_count_and_figures():
  stream = _Terminal()
  progress = Progress(stream)
  with progress.stage('Phase 1', 3):
    for _ in range(3):
      progress.update(accuracy='93.4%')
  assert (
    'Phase 1' in stream.getvalue() and '3/3' in stream.getvalue() and 'accuracy=93.4%' in stream.getvalue()
  )


def test_the_innermost_stage_counts_and_bars_are_closed_after_an_error():
  stream = _Terminal()
  progress = Progress(stream)
  with pytest.raises(ValueError, match='stop'), progress.stage('outer', 2):
    with progress.stage('inner', 4):
      progress.update(4)
    progress.update()
    raise ValueError('stop')
  text = stream.getvalue()
  assert 'inner' in text and 'outer' in text and '1/2' in text and '5/2' not in text
  length = len(stream.getvalue())
  progress.update()  # No stage is left: nothing to draw.
  assert len(stream.getvalue()) == length
