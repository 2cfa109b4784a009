"""Which worker of a cluster a task is for: nobody gets more than its share, rows are near, and who is new gets work."""

import dataclasses
import itertools
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine.machine import Machine

pytest.importorskip('distributed')


@dataclasses.dataclass(eq=False)
class Task:
  worker: str = ''
  future: object = None


@dataclasses.dataclass
class Future:
  status: str


class Client:
  """What is asked of a Dask client."""

  status = 'running'

  def __init__(self, threads):
    self.threads = threads

  def nthreads(self):
    return self.threads


def made(threads, **patience):
  from tff_cluster.engine.cluster_workers import Workers

  return Workers(Client(threads), Machine(**patience))


names = st.sampled_from('abcdefgh')
clusters = st.dictionaries(names, st.integers(1, 4), min_size=1)


@given(clusters, st.lists(st.lists(names, unique=True), max_size=30), st.lists(st.lists(names), max_size=30))
def test_nobody_has_more_than_its_share_and_rows_are_near_where_that_allows(threads, before, kept):
  workers = made(threads)
  sent = [Task() for _ in before]
  workers.place(sent, before)
  for task in sent:
    task.future = Future('pending')
  for task in sent[::3]:
    task.future.status = 'finished'
  tasks = [Task() for _ in kept]
  workers.place(tasks, kept)
  old = Counter(task.worker for task in sent if task.future.status == 'pending')
  new = Counter(task.worker for task in tasks)
  share = (old.total() + new.total()) / sum(threads.values())
  limit = {name: math.ceil(share * n) for name, n in threads.items()}
  assert new.keys() <= threads.keys()
  assert all(old[name] + n <= limit[name] for name, n in new.items())
  # Who has its share already gets a task only where everybody has.
  for task, near in zip(tasks, kept, strict=True):
    if near and task.worker not in near:
      assert all(old[name] + new[name] >= limit[name] for name in near if name in threads)


@given(clusters, st.integers(0, 40))
def test_without_rows_tasks_are_spread_as_evenly_as_they_can_be(threads, count):
  workers = made(threads)
  tasks = [Task() for _ in range(count)]
  workers.place(tasks, [()] * count)
  found = Counter(task.worker for task in tasks)
  # The last task of nobody would be begun earlier elsewhere.
  for (one, n), (other, m) in itertools.permutations(threads.items(), 2):
    assert (found[one] - 1) * m <= found[other] * n


def test_tasks_go_to_their_rows_and_to_a_worker_that_comes_late():
  workers = made({'a': 1, 'b': 1})
  tasks = [Task() for _ in range(4)]
  workers.place(tasks, [['b'], ['a'], ['b'], ['a']])
  assert [task.worker for task in tasks] == ['b', 'a', 'b', 'a']
  for task in tasks:
    task.future = Future('pending')
  workers._client.threads = {'a': 1, 'b': 1, 'late': 1}
  workers.forget()
  more = [Task() for _ in range(2)]
  workers.place(more, [['a'], ['b']])
  assert [task.worker for task in more] == ['late', 'late']


def test_calls_of_one_task_each_go_to_one_worker_after_the_other():
  workers = made({'a': 1, 'b': 2, 'c': 1})
  found = Counter()
  for _ in range(40):
    task = Task()
    workers.place([task], [()])
    task.future = Future('finished')
    found[task.worker] += 1
  assert found == {'a': 10, 'b': 20, 'c': 10}


def test_tasks_that_nobody_waits_for_and_tasks_that_are_sent_again_do_not_count():
  workers = made({'a': 1, 'b': 1})
  tasks = [Task() for _ in range(4)]
  workers.place(tasks, [['a'], ['a'], ['b'], ['b']])
  del tasks[:2]
  workers.place(tasks, [(), ()])
  assert {task.worker for task in tasks} == {'a', 'b'}


def test_a_worker_that_is_not_reached_is_chosen_only_where_there_is_no_other():
  workers = made({'a': 1, 'b': 1})
  tasks = [Task() for _ in range(3)]
  workers.place(tasks, [['a']] * 3, without={'a'})
  assert {task.worker for task in tasks} == {'b'}
  workers.place(tasks, [['a']] * 3, without={'a', 'b'})
  assert {task.worker for task in tasks} == {'a', 'b'}


def test_where_no_worker_comes_there_is_no_place():
  workers = made({}, worker_start_timeout_secs=0.2)
  with pytest.raises(EnvironmentFault, match=r'has no worker within 0\.2 s'):
    workers.place([Task()], [()])


def test_a_scheduler_that_is_lost_has_no_workers_however_lately_they_were_seen():
  workers = made({'a': 1}, worker_start_timeout_secs=0.2)
  assert workers.wait() == {'a': 1}
  workers._client.status = 'connecting'
  with pytest.raises(EnvironmentFault, match=r'was lost and did not come back within 0\.2 s'):
    workers.place([Task()], [()])
