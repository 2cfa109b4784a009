"""A header that is parsed while other threads parse is no damaged file."""

import gc
import io
import sys
import threading

import numpy as np
import pytest

from tff_cluster.base import numpy_reading

_MISMATCH = 'AST constructor recursion depth mismatch (before=57, after=69)'


class _Garbage:
  """Its end is Python that runs in the middle of a parse, where another thread can take over."""

  def __init__(self):
    self.itself = self

  def __del__(self):
    for _ in range(200):
      pass


@pytest.fixture
def much_garbage():
  before, interval = gc.get_threshold(), sys.getswitchinterval()
  gc.set_threshold(5)
  sys.setswitchinterval(1e-6)
  yield
  gc.set_threshold(*before)
  sys.setswitchinterval(interval)


def test_threads_that_read_at_the_same_time_all_have_their_arrays(much_garbage):
  stream = io.BytesIO()
  np.save(stream, np.arange(12.0).reshape(3, 4))
  content, wrong = stream.getvalue(), []

  def deep(levels):
    if levels:
      return deep(levels - 1)
    for _ in range(1500):
      _Garbage()
      try:
        found = numpy_reading.read(lambda: np.load(io.BytesIO(content)))
      except SystemError as error:
        wrong.append(error)
        continue
      if found.shape != (3, 4):
        wrong.append(found)

  threads = [threading.Thread(target=deep, args=(10 * k,)) for k in range(6)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert not wrong


def test_only_that_error_is_tried_again_and_not_for_ever():
  calls = []

  def failing(error):
    def read():
      calls.append(None)
      raise error

    return read

  for error, times in ((SystemError(_MISMATCH), 20), (SystemError('another'), 1), (ValueError(_MISMATCH), 1)):
    calls.clear()
    with pytest.raises(type(error)):
      numpy_reading.read(failing(error))
    assert len(calls) == times
