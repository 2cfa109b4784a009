"""Pieces of work on threads: cores that are shared, what fails, what is interrupted, and a worker that dies under several."""

import os
import signal
import threading
import time

import pytest

from tests.engine.slow import STEPS, slow_sum, total
from tests.engine.test_context import opened, pid_of, soon
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine.side_by_side import Cancelled, Slots, each


class Cores:
  """Sleeps in place of clients, and keeps account of who is busy."""

  def __init__(self, count):
    self.slots, self.busy, self.most, self.worked = Slots(count), 0, 0, 0.0
    self._lock = threading.Lock()

  def call(self, clients, seconds):
    """Takes as long as so many clients take on these cores, one after the other on each."""
    used = min(clients, self.slots.count)
    with self.slots.taken(clients):
      with self._lock:
        self.busy += used
        self.most = max(self.most, self.busy)
      time.sleep(seconds * -(-clients // self.slots.count))
      with self._lock:
        self.busy -= used
        self.worked += seconds * clients


def test_calls_take_no_more_than_two_slots_a_core_and_none_waits_for_ever():
  cores = Cores(3)
  threads = [threading.Thread(target=cores.call, args=(clients, 0.01)) for clients in (1, 3, 1, 7, 2, 1) * 3]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(20)
  assert not any(thread.is_alive() for thread in threads)
  assert cores.most == 6 and cores.busy == 0


def test_a_call_of_many_clients_is_not_overtaken():
  slots, begun = Slots(2), []
  first, second = slots.taken(2), slots.taken(1)
  first.__enter__()
  second.__enter__()

  def work(name, clients):
    with slots.taken(clients):
      begun.append(name)

  threads = []
  for name, clients in (('both', 2), ('one', 1)):
    threads.append(threading.Thread(target=work, args=(name, clients)))
    threads[-1].start()
    time.sleep(0.05)
  assert begun == []
  first.__exit__(None, None, None)
  for thread in threads:
    thread.join(10)
  assert begun == ['both', 'one']


@pytest.mark.tensorflow
def test_sixteen_cores_are_full_with_forty_one_clusters_of_which_twenty_five_draw_one_client():
  cores, rounds, client_round = Cores(16), 4, 0.02
  cohorts = [1] * 25 + [2] * 8 + [4] * 8

  def train(cluster):
    for _ in range(rounds):
      cores.call(cohorts[cluster], client_round)
    return cohorts[cluster]

  each(len, [''], 2)  # Imports TFF.
  begun = time.monotonic()
  found = each(train, range(len(cohorts)), cores.slots.count)
  wall = time.monotonic() - begun
  assert dict(found) == dict(enumerate(cohorts))
  work = rounds * sum(cohorts) * client_round
  assert cores.worked == pytest.approx(work)
  assert work / (wall * 16) > 0.6 > work / (rounds * len(cohorts) * client_round * 16)


def call_until_cancelled(slots, item, ended):
  """Calls for two seconds; an item that is cancelled meanwhile is put into a list."""
  try:
    for _ in range(200):
      with slots.taken(1):
        time.sleep(0.01)
  except Cancelled:
    ended.append(item)
    raise


@pytest.mark.tensorflow
def test_the_first_failure_is_raised_once_the_others_have_ended():
  slots, ended = Slots(2), []

  def work(item):
    if item == 1:
      raise ValueError('planted')
    call_until_cancelled(slots, item, ended)

  with pytest.raises(ValueError, match='planted'):
    each(work, range(5), 2)
  assert ended == [0]
  assert each(lambda item: item * item, iter([3, 4]), 2) == [(3, 9), (4, 16)]
  assert each(lambda item: item, [], 2) == []


@pytest.mark.tensorflow
def test_what_fails_in_naming_the_next_piece_ends_the_others():
  slots, ended = Slots(2), []

  def items():
    yield 0
    raise ValueError('planted')

  with pytest.raises(ValueError, match='planted'):
    each(lambda item: call_until_cancelled(slots, item, ended), items(), 2)
  assert ended == [0]


@pytest.mark.tensorflow
def test_several_threads_compute_in_one_worker_and_lose_it_together(caplog):
  with opened(worker_retries=1) as context:
    assert each(lambda n: slow_sum()([n * STEPS]), (1, 2), 2) == [(1, total()), (2, total(2 * STEPS))]
    first = pid_of(context)
    soon(lambda: os.kill(first, signal.SIGKILL), 0.4)
    found = each(lambda n: slow_sum()([3 * STEPS, 3 * STEPS]), range(4), 2)
    assert [value for _, value in found] == [2 * total(3 * STEPS)] * 4
    assert pid_of(context) != first
    assert len(caplog.records) == 1


@pytest.mark.tensorflow
def test_a_short_call_ends_beside_a_long_one():
  with opened():
    slow_sum()([1])
    ended = []
    each(lambda steps: ended.append(slow_sum()([steps])), (8 * STEPS, 2), 2)
    assert ended == [total(2), total(8 * STEPS)]


@pytest.mark.tensorflow
def test_a_worker_that_dies_of_its_own_fault_ends_all_threads():
  with opened() as context:
    soon(lambda: os.kill(pid_of(context), signal.SIGSEGV), 0.4)
    with pytest.raises(EnvironmentFault, match='died of SIGSEGV'):
      each(lambda n: slow_sum()([20 * STEPS] * 2), range(4), 2)


@pytest.mark.tensorflow
def test_an_interrupted_caller_does_not_wait_for_its_pieces():
  with opened() as context:
    soon(lambda: os.kill(os.getpid(), signal.SIGINT), 0.5)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
      each(lambda n: slow_sum()([400 * STEPS] * 2), range(4), 2)
    assert time.monotonic() - begun < 8
    assert not context._worker.alive
