"""Several workers: the same bits as one, whoever is fast, lost, late or foreign."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tests.conftest import make_population
from tests.engine.slow import STEPS, slow_sum, slow_totals, total
from tff_cluster.base import environment
from tff_cluster.base.errors import EnvironmentFault
from tff_cluster.engine.machine import Machine

pytestmark = pytest.mark.tensorflow

ROOT = pathlib.Path(__file__).parents[2]


class Served:
  """A worker service on a free port of this machine, in a process of its own."""

  def __init__(self, port=0, clients_in_parallel=1, **about):
    request = {
      'address': '127.0.0.1',
      'port': port,
      'clients_in_parallel': clients_in_parallel,
      'about': environment.about_worker() | about,
    }
    self.process = subprocess.Popen(
      [sys.executable, '-m', 'tff_cluster.engine.worker_service', json.dumps(request)],
      cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    line = self.process.stdout.readline()
    if 'allows no private network' in line:
      self.end()
      pytest.skip('this system lets nobody keep TFF off the network')
    self.port = int(re.fullmatch(r'serving on 127\.0\.0\.1:(\d+)\n', line).group(1))
    self.address = f'127.0.0.1:{self.port}'

  @property
  def binary(self):
    """The process of TFF's worker."""
    found = subprocess.run(['pgrep', '-P', str(self.process.pid)], capture_output=True, text=True, check=True)
    return int(found.stdout.split()[0])

  def end(self):
    self.process.kill()
    self.process.communicate(timeout=20)


@contextlib.contextmanager
def served(count=2, **more):
  services = [Served(**more) for _ in range(count)]
  try:
    yield services
  finally:
    for service in services:
      service.end()


@contextlib.contextmanager
def opened(*addresses, **patience):
  from tff_cluster.engine import context, worker

  with context.connected(worker.start(2), Machine(workers=','.join(addresses), **patience)):
    yield


def free_port():
  with socket.socket() as probe:
    probe.bind(('127.0.0.1', 0))
    return probe.getsockname()[1]


def test_clients_keep_their_order_and_sums_are_computed_here():
  steps = [10 * k for k in range(23)]
  with served() as services, opened(*(s.address for s in services)):
    assert list(slow_totals()(steps)) == [total(n) for n in steps]
    assert slow_sum()(steps) == sum(map(total, steps))
    assert list(slow_totals()(steps[:1])) == [total(steps[0])]


def test_a_worker_that_is_lost_in_mid_computation_gives_its_clients_to_the_other(caplog):
  steps = [STEPS + k for k in range(6)]
  with served() as (first, second), opened(first.address, second.address):
    slow_totals()([1, 2])
    threading.Timer(0.3, first.end).start()
    assert list(slow_totals()(steps)) == [total(n) for n in steps]
    assert first.process.poll() is not None
  assert any(f'the worker {first.address}' in record.getMessage() for record in caplog.records)


def test_the_worker_of_this_machine_is_not_trusted_again_after_a_fault_of_its_own():
  import tensorflow_federated as tff

  with served(1) as (one,), opened(one.address):
    context = tff.framework.get_context_stack().current
    os.kill(context._server._worker.process.pid, signal.SIGSEGV)
    with pytest.raises(EnvironmentFault, match='died of SIGSEGV'):
      slow_sum()([1, 2])


def test_a_worker_that_hangs_is_replaced_and_its_clients_move(caplog):
  steps = [STEPS + k for k in range(4)]
  with served() as (first, second), opened(first.address, second.address, worker_stall_timeout_secs=5.0):
    slow_totals()([1, 2, 3, 4])
    hanging = first.binary
    os.kill(hanging, signal.SIGSTOP)
    assert list(slow_totals()(steps)) == [total(n) for n in steps]
    assert 'hung (it did nothing for 5 s)' in ' '.join(r.getMessage() for r in caplog.records)
    deadline = time.monotonic() + 30
    while first.binary == hanging and time.monotonic() < deadline:
      time.sleep(0.1)
    assert first.binary != hanging


def test_a_worker_that_comes_later_takes_part(caplog):
  late = free_port()
  with served(1) as (first,), opened(first.address, f'127.0.0.1:{late}'):
    assert list(slow_totals()([5, 6])) == [10, 15]
    second = Served(port=late)
    try:
      deadline = time.monotonic() + 30
      while 'is there' not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.1)
      first.end()
      steps = [7, 8, 9]
      assert list(slow_totals()(steps)) == [total(n) for n in steps]
    finally:
      second.end()


def test_other_versions_are_refused():
  packages = {'tensorflow': '2.14.1', 'tensorflow-federated': '0.86.0'}
  words = r'tensorflow-federated 0\.86\.0.*0\.87\.0'
  with (
    served(1, packages=packages) as (other,),
    opened(other.address),
    pytest.raises(EnvironmentFault, match=words),
  ):
    slow_totals()([1])


def test_another_type_of_processor_is_told(caplog):
  with served(1, instructions=['sse4_1']) as (other,), opened(other.address):
    assert list(slow_totals()([3])) == [3]
  assert 'another type of processor' in caplog.text


def test_without_any_worker_the_run_ends_with_what_each_of_them_did():
  with socket.create_server(('127.0.0.1', 0)) as silent:
    addresses = f'127.0.0.1:{free_port()}', f'127.0.0.1:{silent.getsockname()[1]}'
    with (
      opened(*addresses, worker_start_timeout_secs=8.0),
      pytest.raises(EnvironmentFault, match=r'none of the workers is there: .*cannot be reached.*; what was'),
    ):
      slow_totals()([1])


@pytest.mark.parametrize('answer', [b'', b'HTTP/1.1 400 Bad Request\r\n', b'[1]\n', b'{"alive": true}\n'])
def test_a_service_of_another_kind_is_no_worker(answer):
  from tff_cluster.engine import connection, remote_worker

  with socket.create_server(('127.0.0.1', 0)) as other:

    def serve():
      caller, _ = other.accept()
      with caller:
        caller.recv(100)
        caller.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    worker = remote_worker.RemoteWorker(f'127.0.0.1:{other.getsockname()[1]}', Machine())
    with pytest.raises(connection.WorkerLost, match=r'is no worker of python -m phases\.worker'):
      worker.connect()


def test_a_deterministic_error_ends_the_run_with_its_cause():
  import tensorflow as tf
  import tensorflow_federated as tff

  @tff.tensorflow.computation(np.int32)
  def refuse(number):
    with tf.control_dependencies([tf.debugging.assert_less(number, 3, 'planted refusal')]):
      return tf.identity(number)

  @tff.federated_computation(tff.types.FederatedType(np.int32, tff.CLIENTS))
  def each(numbers):
    return tff.federated_map(refuse, numbers)

  words = r'failed on workers 2 times.*planted refusal'
  with (
    served(1) as (one,),
    opened(one.address, worker_retries=1),
    pytest.raises(EnvironmentFault, match=words),
  ):
    each([1, 5])


@pytest.fixture
def make_trainer():
  from tff_cluster.federated import client_work, process, trainer
  from tff_cluster.models import build

  population = make_population(clients=7)

  def make(spread):
    keras_model = build.build('logistic', population.input_shape, population.num_classes, 0)
    model = client_work.model_from_keras(keras_model, np.float32)
    return trainer.Trainer(population, process.Computations(model, 0.1, 5), 2, 1.0, 3, spread)

  return make


def results(trainer):
  """Returns everything that a trainer computes, as arrays."""
  everyone = np.arange(trainer.population.num_clients)
  initial = trainer.computations.model.weights
  state, found = trainer.start(initial), []
  for number in (1, 2, 3):
    state, figures = trainer.round(state, everyone, number)
    found += [*trainer.state_arrays(state), np.array(sorted(figures.items()), object)[:, 1].astype(float)]
  updates = np.empty((7, trainer.computations.model.num_parameters), np.float32)
  trainer.local_updates(initial, everyone, 1, updates.__setitem__)
  scores = trainer.measure(initial, trainer.population.test, everyone)
  x = trainer.population.global_test_x
  mean = trainer.mean_update(initial, everyone, 1)
  return [*found, updates, scores.counts, scores.loss_sum, mean, trainer.predict(initial, x)]


def test_everything_that_a_run_computes_has_the_bits_of_one_worker(make_trainer):
  from tff_cluster.engine import context, worker

  with context.connected(worker.start(2)):
    expected = results(make_trainer(spread=False))
  with served(2) as (first, second), opened(first.address, second.address):
    found = results(make_trainer(spread=True))
  assert len(found) == len(expected)
  for one, other in zip(found, expected, strict=True):
    np.testing.assert_array_equal(one, other)


def test_a_worker_that_is_ten_times_as_fast_does_most_of_the_work(monkeypatch):
  from tff_cluster.engine import remote_worker, several_machines

  done = {'fast:1': 0, 'slow:1': 0}

  class Pretended:
    def __init__(self, address, machine):
      del machine
      self.address = address

    def connect(self):
      """It is there."""

    def differs_in(self):
      return ''

    def invoke(self, computation, steps):
      del computation
      done[self.address] += len(steps)
      time.sleep((0.02 if self.address == 'fast:1' else 0.2) * len(steps))
      return [total(n) for n in steps]

    def leave(self):
      """Nothing is left behind."""

  monkeypatch.setattr(remote_worker, 'RemoteWorker', Pretended)
  context = several_machines.SpreadContext(None, Machine(workers='fast:1,slow:1'))
  steps = list(range(36))
  started = time.monotonic()
  assert context.invoke(slow_totals(), steps) == [total(n) for n in steps]
  taken = time.monotonic() - started
  context.close()
  assert sum(done.values()) == 36 and done['fast:1'] >= 24
  # Dealt out evenly it would take 18 times 0.2 s.
  assert taken < 3.4
