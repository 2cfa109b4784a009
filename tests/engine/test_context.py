"""Computations survive their worker: it dies, hangs or answers an error, and its work is repeated on another one."""

import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest

from tests.engine.reach import listening
from tests.engine.slow import STEPS, slow_sum, total
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine.machine import Machine

pytestmark = pytest.mark.tensorflow


@contextlib.contextmanager
def opened(model=None, **patience):
  from tff_cluster.engine import context, worker

  with context.connected(worker.start(2), Machine(**patience), model):
    import tensorflow_federated as tff

    yield tff.framework.get_context_stack().current


EXPECTED = 2 * total()


def soon(action, after=0.15):
  timer = threading.Timer(after, action)
  timer.start()
  return timer


def pid_of(context):
  return context._worker.process.pid


def test_a_worker_that_dies_in_mid_computation_is_started_again_as_often_as_asked(caplog):
  with opened(worker_retries=1) as context:
    assert slow_sum()([STEPS, STEPS]) == EXPECTED
    for number, code in ((signal.SIGKILL, -9), (signal.SIGTERM, -15)):
      first = pid_of(context)
      soon(lambda first=first, number=number: os.kill(first, number))
      assert slow_sum()([4 * STEPS] * 2) == 2 * total(4 * STEPS)
      assert pid_of(context) != first
      assert f'exit code {code}' in caplog.text and '(1 of 1)' in caplog.text
    context._machine = Machine(worker_retries=0)
    soon(lambda: os.kill(pid_of(context), signal.SIGKILL))
    with pytest.raises(EnvironmentFault, match=r'in the middle of a round: it ended .exit code -9'):
      slow_sum()([20 * STEPS] * 2)
  assert len(caplog.records) == 2


@pytest.mark.parametrize('name', ['SIGSEGV', 'SIGABRT'])
def test_a_worker_that_dies_of_its_own_fault_is_not_trusted_again(name, caplog):
  with opened('of_mine:wide', worker_retries=5) as context:
    first = pid_of(context)
    soon(lambda: os.kill(first, getattr(signal, name)))
    words = rf'^the TFF worker died of {name} while it computed with model=of_mine:wide: .*cannot be trusted'
    with pytest.raises(EnvironmentFault, match=words) as caught:
      slow_sum()([20 * STEPS] * 2)
    assert 'saved and may be wrong' in str(caught.value) and '\n' not in str(caught.value)
    assert pid_of(context) == first
  assert not caplog.records


def test_a_fault_is_seen_however_late_the_system_reports_the_end(monkeypatch):
  """The connection of a process that dies can break long before its parent can learn of what."""
  from tff_cluster.engine import one_machine

  with opened() as context:
    monkeypatch.setattr(one_machine.ProcessWatch, 'cause', lambda *_: 'answered UNAVAILABLE: Socket closed')
    monkeypatch.setattr(one_machine.ProcessWatch, 'tick', lambda _: None)
    soon(lambda: os.kill(pid_of(context), signal.SIGSEGV))
    with pytest.raises(EnvironmentFault, match='died of SIGSEGV'):
      slow_sum()([20 * STEPS] * 2)


def test_the_runner_listens_nowhere_while_it_computes():
  with opened() as context:
    if not context._worker.private:
      pytest.skip('this system allows no private network')
    before = listening(os.getpid())
    assert slow_sum()([STEPS, STEPS]) == EXPECTED
    # The door has shut behind the one caller.
    assert len(listening(os.getpid())) == len(before) - 1
    assert listening(context._worker.process.pid) == []


def test_a_worker_that_hangs_is_given_up_in_bounded_time(caplog):
  with opened(worker_stall_timeout_secs=5.0) as context:
    first = pid_of(context)
    os.kill(first, signal.SIGSTOP)
    started = time.monotonic()
    assert slow_sum()([STEPS, STEPS]) == EXPECTED
    assert time.monotonic() - started < 60
  (record,) = caplog.records
  assert 'hung (it did nothing for 5 s)' in record.getMessage()


def test_a_worker_that_works_longer_than_the_patience_is_left_alone(caplog):
  with opened(worker_stall_timeout_secs=5.0) as context:
    first = pid_of(context)
    with context._connection._lane() as lane:  # The next call takes it, too.
      lane.calls.watch._patience = 1
    assert slow_sum()([3 * STEPS] * 2) == 2 * total(3 * STEPS)
    assert pid_of(context) == first
  assert not caplog.records


def test_a_worker_that_answers_an_error_each_time_ends_the_run_with_the_cause(caplog):
  import tensorflow as tf
  import tensorflow_federated as tff

  @tff.tensorflow.computation(np.int32)
  def refuse(number):
    with tf.control_dependencies([tf.debugging.assert_less(number, 3, 'planted refusal')]):
      return tf.identity(number)

  with opened(worker_retries=1) as context:
    assert refuse(2) == 2
    with pytest.raises(EnvironmentFault, match=r'failed 2 times in a row.*planted refusal.*is saved'):
      refuse(5)
    process = context._worker.process
  assert len(caplog.records) == 1
  assert process.poll() is not None


def test_a_call_that_failed_as_often_as_allowed_ends_the_run_though_another_thread_began_again():
  from tff_cluster.engine import connection

  with opened(worker_retries=2) as context:
    lost, mine = connection.WorkerLost('ended (exit code -9)'), object()
    with context._lock:
      context._begin_again(
        mine, lost, 1
      )  # The worker that is there is another one, which has not failed yet.
      with pytest.raises(EnvironmentFault, match=r'failed 3 times in a row, at last it ended'):
        context._begin_again(mine, lost, 2)
    assert slow_sum()([STEPS, STEPS]) == EXPECTED
