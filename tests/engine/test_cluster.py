"""A Dask cluster: the bits of one machine, whoever takes part, is lost, late, slow or foreign."""

import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest

from tests.conftest import make_population
from tests.engine import slow
from tests.engine.dask_cluster import Authority, DaskCluster, Program, wait_for
from tests.engine.slow import slow_result_sum, slow_results, total
from tests.federated.small_trainer import computations_of, with_aggregator
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.engine.jobs import Job

pytestmark = pytest.mark.tensorflow

# A client of these takes some hundredths of a second.
STEPS = slow.STEPS // 10
ODD = 'tests.engine.odd_worker'
# A TFF worker that hangs is replaced after this.
PATIENT = {'DASK_TFF_CLUSTER__WORKER_STALL_TIMEOUT_SECS': '5'}


@pytest.fixture(scope='module')
def authority(tmp_path_factory):
  return Authority(tmp_path_factory.mktemp('authority'))


@pytest.fixture(scope='module')
def dask(authority, tmp_path_factory):
  """A cluster with encryption and one worker, both started as users do; tests add others."""
  made = DaskCluster(tmp_path_factory.mktemp('dask'), authority, Program)
  try:
    made.start_worker(program=Program, **PATIENT)
    yield made
  finally:
    made.end()


@contextlib.contextmanager
def opened(machine, workers=1):
  """Yields a cluster.Cluster, once the scheduler knows of so many workers."""
  from tff_cluster.engine import cluster, side_by_side

  with cluster.connected(machine, side_by_side.Slots(2)) as found:
    wait_for(lambda: len(found._tasks.workers.wait()) >= workers)
    yield found


def steps_of(*counts):
  """Returns jobs of so many steps, whose rows are kept."""
  return [Job({'steps': np.int64(n)}, key=lambda n=n: f'{n:032}') for n in counts]


def results(trainer):
  """Returns everything that a trainer computes, as bytes."""
  everyone = np.arange(trainer.population.num_clients)
  initial = trainer.computations.model.weights
  state, found = trainer.start(initial), []
  for number in (1, 2):
    state, figures = trainer.round(state, everyone, number)
    found += [*trainer.state_arrays(state), np.array(list(figures.values()))]
  few, figures = trainer.round(state, everyone[2:5], 3)
  updates = np.empty((len(everyone), trainer.computations.model.num_parameters), np.float32)
  trainer.local_updates(initial, everyone, 1, updates.__setitem__)
  sketches = np.empty((len(everyone), 4), np.float32)
  buckets = np.arange(updates.shape[1]) % 4
  projection = buckets, np.where(np.arange(updates.shape[1]) % 3, 1, -1)
  trainer.local_sketches(initial, everyone, 1, projection, 4, sketches.__setitem__)
  splits = trainer.population.validation, trainer.population.test
  scores = [*trainer.measure_splits(initial, splits, everyone), trainer.measure_global(initial)]
  scores.append(
    trainer.measure_each([initial, trainer.weights(state)], splits[1], [everyone[:3], everyone[3:]])
  )
  found += [*trainer.state_arrays(few), updates, sketches, trainer.mean_update(initial, everyone, 1)]
  found += [part for each in scores for part in (each.counts, each.loss_sum)]
  return [
    np.asarray(each).tobytes() for each in (*found, trainer.predict(initial, trainer.population.test.x))
  ]


@pytest.fixture(scope='module')
def make_trainer(tff_context):
  from tff_cluster.federated import client_work, optimizers, tff_computations, trainer
  from tff_cluster.models import build

  population = make_population(clients=11)
  keras_model = build.build('logistic', population.input_shape, population.num_classes, 0)
  model = client_work.model_from_keras(keras_model, np.float32)
  computations = tff_computations.Computations(model, optimizers.Local(0.1, 5))

  def make(workers=None):
    return trainer.Trainer(population, computations, 2, 1.0, 3, workers)

  return make


@pytest.fixture(scope='module')
def expected(make_trainer):
  return results(make_trainer())


def test_one_worker_gives_the_bits_of_this_machine(dask, make_trainer, expected):
  with opened(dask.machine()) as cluster:
    assert results(make_trainer(cluster)) == expected
    assert cluster.dashboard is None


def test_a_worker_that_comes_late_takes_part_and_rows_stay_where_they_were_sent(dask, make_trainer, expected):
  with opened(dask.machine()) as cluster:
    assert results(make_trainer(cluster)) == expected
    late = dask.start_worker(**PATIENT)
    wait_for(lambda: len(cluster._tasks.workers.wait()) == 2, late)
    kept = len(cluster._tasks.rows)
    assert results(make_trainer(cluster)) == expected
    assert len(cluster._tasks.rows) == kept
    # Whatever Dask makes of it: more work than one worker can hide.
    steps = range(STEPS, STEPS + 40)
    assert [int(n) for n in cluster.each(slow_results(), [], steps_of(*steps))] == [total(n) for n in steps]
    assert len(cluster.met) == 2


def test_a_slow_worker_of_another_type_changes_no_bit_and_is_told_of_once(
  dask, make_trainer, expected, caplog
):
  slow = dask.start_worker(preload=ODD, TFF_CLUSTER_TEST_ODD='slow,instructions')
  try:
    with opened(dask.machine(), workers=3) as cluster:
      for _ in range(2):
        assert results(make_trainer(cluster)) == expected
      assert len(cluster.met) == 3
    with opened(dask.machine()) as cluster:
      assert cluster.at_once == 3
    assert caplog.text.count('has another type of processor (') == 1
  finally:
    slow.kill()


def with_adam(trainer):
  """Returns it with everything that a client may be sent beside its rows, and a server that remembers."""
  from tff_cluster.federated import optimizers

  local = optimizers.Local(0.1, 5, 'momentum', proximal_mu=0.5, learning_rate_decay=0.5)
  server = optimizers.Server(0.05, 'adam')
  trainer.computations = computations_of(trainer.computations.model, local, server, 'mean')
  return trainer


@pytest.mark.parametrize('altered', [lambda trainer: with_aggregator(trainer, 'robust'), with_adam])
def test_other_aggregators_and_optimizers_give_the_bits_of_this_machine(dask, make_trainer, altered):
  everyone = np.arange(11)

  def rounds(workers=None):
    trainer = altered(make_trainer(workers))
    state = trainer.start(trainer.computations.model.weights)
    for number in (1, 2):
      state, _ = trainer.round(state, everyone, number)
    return [array.tobytes() for array in trainer.state_arrays(state)]

  with opened(dask.machine()) as cluster:
    assert rounds(cluster) == rounds()


def test_a_round_of_a_hundred_clients_brings_a_quarter_of_their_updates_home(dask, tff_context):
  from tff_cluster.federated import client_work, optimizers, tff_computations, trainer
  from tff_cluster.models import build

  population = make_population(clients=100, rows=3)
  keras_model = build.build('2nn', population.input_shape, population.num_classes, 0)
  computations = tff_computations.Computations(
    client_work.model_from_keras(keras_model, np.float32), optimizers.Local(0.1, 5)
  )
  model = computations.model
  with opened(dask.machine()) as cluster:
    made = trainer.Trainer(population, computations, 1, 1.0, 3, cluster)
    made.round(made.start(model.weights), np.arange(100), 1)
    assert 25 * model.num_bytes <= cluster.received < 25 * (model.num_bytes + 100)
    # What came home before sums were made there.
    before = cluster.received
    made.local_updates(model.weights, range(100), 1, lambda *_: None)
    assert cluster.received - before == 100 * model.num_bytes


def doom(cluster, *programs):
  """Has workers end in the midst of their next task, as in a power cut."""

  def ends_soon():
    from tff_cluster.engine import dask_worker

    dask_worker._computed = lambda *_: os.killpg(0, signal.SIGKILL)

  client = cluster._tasks._client
  of_program = {pid: address for address, pid in client.run(os.getpid, on_error='ignore').items()}
  client.run(ends_soon, workers=[of_program[program.process.pid] for program in programs])


def test_a_worker_that_is_killed_in_mid_round_gives_its_clients_to_the_others(dask):
  # Of those of earlier tests, if there are two.
  living = [worker for worker in dask.workers if worker.process.poll() is None]
  doomed = living[-1] if len(living) > 1 else dask.start_worker()
  steps = range(2 * STEPS, 2 * STEPS + 16)
  expected = [total(n) for n in steps]
  with opened(dask.machine(), workers=2) as cluster:
    assert [int(n) for n in cluster.each(slow_results(), [], steps_of(*steps))] == expected
    chunks = [steps_of(*steps[k : k + 4]) for k in range(0, 16, 4)]
    doom(cluster, doomed)
    found = cluster.totals(slow_result_sum(), [], chunks)
    assert [int(n) for n in found] == [sum(expected[k : k + 4]) for k in range(0, 16, 4)]
    doomed.process.wait(20)
    assert [int(n) for n in cluster.each(slow_results(), [], steps_of(*steps))] == expected


def test_all_workers_are_killed_and_come_back(dask, caplog):
  steps = range(STEPS, STEPS + 6)
  with opened(dask.machine()) as cluster:
    assert [int(n) for n in cluster.each(slow_results(), [], steps_of(*steps))] == [total(n) for n in steps]

    living = [worker for worker in dask.workers if worker.process.poll() is None]

    def replace():
      wait_for(lambda: all(worker.process.poll() is not None for worker in living))
      dask.start_worker(**PATIENT)

    doom(cluster, *living)
    replacing = threading.Thread(target=replace)
    replacing.start()
    try:
      assert [int(n) for n in cluster.each(slow_results(), [], steps_of(*steps))] == [total(n) for n in steps]
    finally:
      replacing.join()  # The new worker ends with the others.
  assert caplog.text.count('its clients are sent again') >= 1


def test_a_tff_worker_that_hangs_is_replaced_on_its_machine(dask):
  worker = dask.workers[-1]
  hanging = worker.tff_worker
  os.kill(hanging, signal.SIGSTOP)
  with opened(dask.machine()) as cluster:
    assert [int(n) for n in cluster.each(slow_results(), [], steps_of(STEPS, 3))] == [total(STEPS), 3]
  assert 'hung (it did nothing for 5 s)' in worker.log.read_text()
  assert worker.tff_worker != hanging


def test_an_error_of_the_computation_ends_the_run_with_the_worker_and_its_cause(dask):
  import tensorflow as tf
  import tensorflow_federated as tff

  kind = tff.types.tensorflow_to_type({'steps': tf.TensorSpec([], tf.int64)})

  @tff.tensorflow.computation(kind)
  def refuse(client):
    with tf.control_dependencies([tf.debugging.assert_less(client['steps'], np.int64(3), 'planted refusal')]):
      return tf.identity(client['steps'])

  @tff.federated_computation(tff.types.FederatedType(kind, tff.CLIENTS))
  def each(clients):
    return tff.federated_map(refuse, clients)

  words = r'^the worker tls://.*: the TFF worker failed 3 times in a row.*planted refusal.*; what was finished is saved'
  with opened(dask.machine()) as cluster, pytest.raises(EnvironmentFault, match=words) as caught:
    list(cluster.each(each, [], steps_of(1, 5)))
  assert str(caught.value).count('what was finished') == 1


def test_a_piece_beside_one_that_failed_is_not_waited_for(dask, tff_context):
  from tff_cluster.engine import side_by_side

  done = []
  with opened(dask.machine()) as cluster:

    def work(piece):
      if piece:
        time.sleep(0.5)
        raise EnvironmentFault('planted')
      for result in cluster.each(slow_results(), [], steps_of(*range(10 * STEPS, 10 * STEPS + 24))):
        done.append(result)

    with pytest.raises(EnvironmentFault, match='planted'):
      side_by_side.each(work, [0, 1], 2)
  assert len(done) < 24


def refused(machine, kind=EnvironmentFault):
  """Returns the line with which a cluster is not opened."""
  started = time.monotonic()
  with pytest.raises(kind) as caught, opened(machine):
    pass
  assert time.monotonic() - started < 25
  return str(caught.value)


def test_who_has_no_certificate_of_the_authority_is_sent_away(dask, authority, tmp_path):
  stranger = Authority(tmp_path, 'stranger')
  certificate, key = map(str, stranger.certificate('run'))
  theirs = {'tls_ca': str(stranger.ca), 'tls_cert': certificate, 'tls_key': key}
  from tff_cluster.engine.machine import Machine

  for tls in (theirs, theirs | {'tls_ca': str(authority.ca)}):
    words = refused(Machine(scheduler=dask.address, worker_start_timeout_secs=5.0, **tls))
    assert words.startswith(f'cannot connect to the scheduler {dask.address}: ')
  plain = dask.address.replace('tls', 'tcp')
  words = refused(Machine(scheduler=plain, worker_start_timeout_secs=5.0))
  assert words.startswith(f'cannot connect to the scheduler {plain}: ')
  words = refused(Machine(scheduler=dask.address), InputError)
  assert 'TLS takes certificates; give tls_ca' in words
  unfit = authority.certificate('other')[0]
  words = refused(Machine(scheduler=dask.address, **(dask.tls() | {'tls_cert': str(unfit)})), InputError)
  assert words.startswith(f'the certificates for {dask.address} cannot be used: ')


def test_certificates_of_the_configuration_of_dask_itself_are_used(dask):
  import dask as library

  from tff_cluster.engine.machine import Machine

  tls = dask.tls()
  paths = {'ca-file': tls['tls_ca'], 'client.cert': tls['tls_cert'], 'client.key': tls['tls_key']}
  given = {f'distributed.comm.tls.{name}': path for name, path in paths.items()}
  with library.config.set(given), opened(Machine(scheduler_file=str(dask.file))) as cluster:
    assert [int(n) for n in cluster.each(slow_results(), [], steps_of(5))] == [10]


def test_runs_that_are_tasks_start_again_where_their_worker_is_lost(dask):
  from tff_cluster.engine import cluster, cluster_connection

  machine = dask.machine()
  doomed = dask.start_worker(preload=None)
  pid = doomed.process.pid

  def work(number):
    if os.getpid() == pid:
      os.killpg(0, signal.SIGKILL)
    return slow.sleep_and_double(number)

  with cluster_connection.client(machine) as client:
    wait_for(lambda: len(client.nthreads()) >= 2, doomed)
    futures = [client.submit(work, n, pure=False) for n in range(6)]
    found = dict(cluster.as_completed(client, futures, machine))
    assert [found[future] for future in futures] == [0, 2, 4, 6, 8, 10]
    doomed.process.wait(20)
    with pytest.raises(ZeroDivisionError):
      list(cluster.as_completed(client, [client.submit(divmod, 1, 0)], machine))


def test_a_worker_with_other_versions_is_refused(authority, tmp_path):
  made = DaskCluster(tmp_path, authority)
  try:
    assert 'has no worker within 2 s' in refused(made.machine(worker_start_timeout_secs=2.0))
    made.start_worker(preload=ODD, TFF_CLUSTER_TEST_ODD='versions')
    words = r'tensorflow-federated 0\.86\.0, the run .*0\.87\.0; install both from the same'
    with opened(made.machine()) as cluster, pytest.raises(EnvironmentFault, match=words):
      list(cluster.each(slow_results(), [], steps_of(1)))
  finally:
    made.end()
