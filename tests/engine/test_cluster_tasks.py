"""Tasks of one call are spread over all workers of a cluster, who fetch what they share and rows once; the workers only sleep."""

import contextlib
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from tff_cluster.engine.jobs import Job
from tff_cluster.engine.machine import Machine

pytestmark = pytest.mark.tensorflow
distributed = pytest.importorskip('distributed')

WORKERS = 8
SECONDS = 0.05


def asleep(shared, rows, beside):
  """Takes the place of dask_worker.work: the sum of what the clients have."""
  from tff_cluster.engine import dask_worker

  time.sleep(SECONDS)
  total = sum(int(own['x'].sum()) for own in rows) + sum(int(other['n']) for other in beside)
  return dask_worker.Answer([np.int64(total)], distributed.get_worker().address, ())


def jobs_of(numbers, kept=True):
  """Returns a client for each number, whose rows are that number twice."""
  return [
    Job({'x': np.array([n, n])}, {'n': np.int64(1)}, (lambda n=n: f'{n:032}') if kept else None)
    for n in numbers
  ]


def sums_of(groups):
  return [sum(2 * int(job.rows['x'][0]) + 1 for job in group) for group in groups]


def chunks_of(numbers, size=4, kept=True):
  jobs = jobs_of(numbers, kept)
  return [jobs[k : k + size] for k in range(0, len(jobs), size)]


@pytest.fixture(scope='module')
def local():
  """Workers in this process, of one thread each; tasks stay where they were sent, however slow this machine is."""
  import dask

  with (
    dask.config.set({'distributed.scheduler.work-stealing': False}),
    distributed.LocalCluster(
      n_workers=WORKERS, threads_per_worker=1, processes=False, dashboard_address=':0', memory_limit=0
    ) as made,
  ):
    yield made


@pytest.fixture
def tasks(local, monkeypatch):
  from tff_cluster.engine import cluster_tasks, dask_worker

  monkeypatch.setattr(dask_worker, 'work', asleep)
  with distributed.Client(local, set_as_default=False) as client:
    client.wait_for_workers(WORKERS)
    made = cluster_tasks.Tasks(client, Machine(worker_start_timeout_secs=20.0))
    made.workers.wait()
    yield made


def call():
  from tff_cluster.engine import cluster_tasks, dask_worker

  return cluster_tasks.Call(dask_worker.Shared(b'', [np.zeros(1000)], True, {}))


def workers_of(tasks, asked, groups):
  """Returns how many tasks each worker did; they are right."""
  answers = list(tasks.answers(asked, groups))
  assert [int(each) for answer in answers for each in answer.results] == sums_of(groups)
  return Counter(answer.worker for answer in answers)


@pytest.mark.parametrize('kept', [False, True])
def test_tasks_of_a_call_are_spread_over_all_workers(tasks, kept):
  mixed = np.random.default_rng(0).permutation(160).tolist()
  # The last has other clients side by side than those whose rows lie together.
  for numbers in (range(160), range(160), mixed):
    found = workers_of(tasks, call(), chunks_of(numbers, kept=kept))
    assert len(found) == WORKERS
    assert set(found.values()) == {40 // WORKERS}


def test_what_tasks_share_is_fetched_once_a_worker(tasks, local):
  asked = call()
  workers_of(tasks, asked, chunks_of(range(160)))
  fetched = Counter(
    worker.address
    for worker in local.workers.values()
    for transfer in worker.transfer_incoming_log
    if asked.sent.key in transfer['keys']
  )
  # One has it from us.
  assert len(fetched) == WORKERS - 1
  assert set(fetched.values()) == {1}


def test_rows_are_sent_once_a_client_a_message_a_worker(tasks, local):
  messages = []
  scatter = tasks._client.scatter

  def counted(data, **options):
    messages.append((options.get('workers'), len(data)))
    return scatter(data, **options)

  tasks._client.scatter = counted
  # Every client is in two tasks.
  groups = chunks_of([*range(40), *range(40)])
  workers_of(tasks, call(), groups)
  to_workers = [(names, count) for names, count in messages if names is not None]
  assert sum(count for _, count in to_workers) == 40
  assert len(to_workers) <= WORKERS
  assert len({name for names, _ in to_workers for name in names}) == len(to_workers)
  messages.clear()
  workers_of(tasks, call(), groups)
  assert [names for names, _ in messages] == [None]


def test_a_batch_has_at_most_so_many_bytes(tasks, monkeypatch):
  from tff_cluster.engine import cluster_tasks

  # A task has 64 bytes of rows that are kept, and 32 in the message.
  monkeypatch.setattr(cluster_tasks, '_BATCH_BYTES', 2000)
  sent = []
  scatter = tasks._client.scatter
  tasks._client.scatter = lambda data, **options: (sent.append(data), scatter(data, **options))[1]
  workers_of(tasks, call(), chunks_of(range(160)))
  rows = [data for data in sent if isinstance(data, dict)]
  assert sum(map(len, rows)) == 160
  assert max(map(len, rows)) <= 4 * (2000 // (64 + 8 * 32))


def test_a_worker_that_leaves_gives_its_tasks_to_the_others_and_one_that_comes_takes_part(tasks, local):
  asked, groups = call(), chunks_of(range(320))
  answers = tasks.answers(asked, groups)
  found = [next(answers)]
  leaving = next(worker for worker in local.workers.values() if worker.address != found[0].worker)
  local.sync(leaving.close, nanny=False, reason='planted')
  with contextlib.ExitStack() as opened:
    late = opened.enter_context(started(local))
    # Who is there is looked up once a second, which is longer than this takes.
    tasks.workers.forget()
    found += answers
    assert [int(each) for answer in found for each in answer.results] == sums_of(groups)
    assert late.address in {answer.worker for answer in found}


@contextlib.contextmanager
def started(local):
  """Yields one more worker."""

  async def start():
    return await distributed.Worker(local.scheduler.address, nthreads=1, memory_limit=0)

  worker = local.sync(start)
  try:
    yield worker
  finally:
    local.sync(worker.close, nanny=False)


def test_a_worker_whose_engine_is_over_takes_another_one_for_later_runs(monkeypatch):
  from tff_cluster.engine import dask_worker

  made = []
  monkeypatch.setattr(
    dask_worker,
    '_Engine',
    lambda _: made.append(SimpleNamespace(context=SimpleNamespace(is_over=False))) or made[-1],
  )
  monkeypatch.setattr(dask_worker, '_engine', None)
  first = dask_worker._started(1)
  assert dask_worker._started(1) is first
  first.context.is_over = True  # It died of a fault of its own.
  assert dask_worker._started(1) is made[1] is not first
