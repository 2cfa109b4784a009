"""Pieces of work on threads: cores that are shared, what fails, what is interrupted, and a worker that dies under several."""

import os
import signal
import threading
import time

import pytest

from tests.engine.dask_cluster import wait_for
from tests.engine.slow import STEPS, slow_sum, total
from tests.engine.test_context import opened, pid_of, soon
from tff_cluster.base.cancelling import Cancelled
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine.side_by_side import Slots, each

# Who waits longer waits for ever.
PATIENCE = 20.0


class Cores:
  """Takes slots in place of clients, and keeps account of who is busy."""

  def __init__(self, count):
    self.slots, self.busy, self.most = Slots(count), 0, 0
    self._lock = threading.Lock()

  def call(self, clients, work=lambda: None):
    """Does work in the slots of so many clients."""
    used = min(clients, self.slots.count)
    with self.slots.taken(clients):
      with self._lock:
        self.busy += used
        self.most = max(self.most, self.busy)
      work()
      with self._lock:
        self.busy -= used


def started(work, *arguments):
  thread = threading.Thread(target=work, args=arguments, daemon=True)
  thread.start()
  return thread


def queued(slots):
  """Returns how many calls wait for slots that are not free."""
  with slots._changed:
    return len(slots._waiting)


def test_calls_take_no_more_than_two_slots_a_core_and_none_waits_for_ever():
  cores, full, leave = Cores(3), threading.Barrier(4), threading.Event()

  def stay():
    full.wait(PATIENCE)
    leave.wait(PATIENCE)

  threads = [started(cores.call, clients, stay) for clients in (1, 7, 2)]
  full.wait(PATIENCE)  # Three calls have all six slots: of the seven clients three.
  threads += [started(cores.call, clients) for clients in (1, 3, 1, 7, 2, 1)]
  wait_for(lambda: queued(cores.slots) == 6, patience=PATIENCE)
  leave.set()
  for thread in threads:
    thread.join(PATIENCE)
  assert not any(thread.is_alive() for thread in threads)
  assert cores.most == 6 and cores.busy == 0


def test_a_call_of_many_clients_is_not_overtaken():
  cores, begun, leave = Cores(2), [], threading.Event()
  threads = [started(cores.call, clients, leave.wait) for clients in (2, 1)]
  wait_for(lambda: cores.busy == 3, patience=PATIENCE)
  for name, clients in (('both', 2), ('one', 1)):
    threads.append(started(cores.call, clients, lambda name=name: begun.append(name)))
    wait_for(lambda: begun or queued(cores.slots) == len(threads) - 2, patience=PATIENCE)
  assert begun == []  # Though a slot is free for the one.
  leave.set()
  for thread in threads:
    thread.join(PATIENCE)
  assert sorted(begun) == ['both', 'one']


@pytest.mark.tensorflow
def test_sixteen_cores_are_full_with_forty_one_clusters_of_which_twenty_five_draw_one_client():
  cores, rounds = Cores(16), 4
  cohorts = [1] * 25 + [2] * 8 + [4] * 8
  # The first sixteen meet in each round, a client on each core, and so do the last eight, with two on each.
  first, last = threading.Barrier(16, timeout=PATIENCE), threading.Barrier(8, timeout=PATIENCE)
  works = [first.wait] * 16 + [lambda: None] * 17 + [last.wait] * 8

  def train(cluster):
    for _ in range(rounds):
      cores.call(cohorts[cluster], works[cluster])
    return cohorts[cluster]

  each(len, [''], 2)  # Imports TFF.
  found = each(train, range(len(cohorts)), cores.slots.count)
  assert dict(found) == dict(enumerate(cohorts))
  assert cores.most == 32 and cores.busy == 0


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
