"""A Dask cluster on loopback for tests: scheduler and workers are processes, with certificates of an authority of their own."""

import contextlib
import datetime
import ipaddress
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from tests.programs import children

ROOT = pathlib.Path(__file__).parents[2]
PATIENCE = 90.0
PRELOAD = 'tff_cluster.engine.dask_worker'


class Authority:
  """A certificate authority, and certificates by it.

  Attributes:
    ca: The file of its own certificate.
  """

  def __init__(self, folder, name='ca'):
    from cryptography.hazmat.primitives.asymmetric import ec

    self._folder, self._name = folder, name
    self._key = ec.generate_private_key(ec.SECP256R1())
    self.ca = self._certificate(name, self._key, name)[0]

  def certificate(self, name):
    """Returns the files (certificate, key) for somebody."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return self._certificate(f'{self._name}-{name}', ec.generate_private_key(ec.SECP256R1()), self._name)

  def flags(self, name):
    """Returns the flags with which Dask's programs take a certificate."""
    certificate, key = self.certificate(name)
    return [f'--tls-ca-file={self.ca}', f'--tls-cert={certificate}', f'--tls-key={key}']

  def _certificate(self, subject, key, issuer):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    def named(name):
      return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])

    now = datetime.datetime.now(datetime.UTC)
    signed = (
      x509.CertificateBuilder()
      .subject_name(named(subject))
      .issuer_name(named(issuer))
      .public_key(key.public_key())
      .serial_number(x509.random_serial_number())
      .not_valid_before(now - datetime.timedelta(days=1))
      .not_valid_after(now + datetime.timedelta(days=1))
      .add_extension(x509.BasicConstraints(ca=subject == issuer, path_length=None), critical=True)
      .add_extension(
        x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address('127.0.0.1'))]), critical=False
      )
      .sign(self._key, hashes.SHA256())
    )
    paths = self._folder / f'{subject}.pem', self._folder / f'{subject}-key.pem'
    paths[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    encoding = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(*encoding))
    return paths


class Program:
  """A scheduler or a worker; it ends with the block."""

  def __init__(self, folder, name, *flags, **environment):
    self.log = folder / f'{name}.log'
    self.log.touch()
    self.process = self._start(flags, environment)

  def _start(self, flags, environment):
    with self.log.open('ab') as log:
      return subprocess.Popen(
        [sys.executable, '-m', 'dask', *flags],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | environment,
        start_new_session=True,
      )  # fmt: skip

  def kill(self):
    """Ends it and what it has started as a power cut would."""
    if self.process.poll() is None:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(self.process.pid, signal.SIGKILL)
    self.process.wait(20)

  @property
  def tff_worker(self):
    """The process of TFF's worker."""
    found = subprocess.run(
      ['pgrep', '-P', str(self.process.pid), '-f', 'worker_binary'],
      capture_output=True,
      text=True,
      check=True,
    )
    return int(found.stdout.split()[0])


class ForkedProgram(Program):
  """The same in a fork of a process that has imported what it imports, which saves a worker ten seconds of a core."""

  def _start(self, flags, environment):
    return _Forked(flags, environment, self.log)


class _Forked:
  """What Program needs of subprocess.Popen, for a fork."""

  def __init__(self, *told):
    self._process = children.SERVER.Process(target=_become_dask, args=told)
    self._process.start()
    self.pid = self._process.pid
    # Until it leads a session, it is not ended with what it starts.
    while self.poll() is None and os.getsid(self.pid) != self.pid:
      time.sleep(0.005)

  def poll(self):
    return self._process.exitcode

  def wait(self, timeout):
    self._process.join(timeout)
    assert self.poll() is not None


def _become_dask(flags, environment, log):
  """Runs a program of Dask in this process, to its end."""
  os.setsid()
  os.chdir(ROOT)
  os.environ.update(environment)
  descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
  for standard in (1, 2):
    os.dup2(descriptor, standard)
  import dask.__main__

  dask.config.refresh()  # Of the environment.
  sys.argv = ['dask', *flags]
  dask.__main__.main()


class DaskCluster:
  """A scheduler and any number of workers.

  Attributes:
    scheduler: Its process.
    file: What it writes its address into.
    workers: Those that were started.
  """

  def __init__(self, folder, authority=None, program=ForkedProgram):
    self._folder, self._authority, self._program = folder, authority, program
    self.file = folder / 'scheduler.json'
    self.workers = []
    self.port = 0
    self.start_scheduler()

  def start_scheduler(self):
    self.file.unlink(missing_ok=True)
    self.scheduler = self._program(
      self._folder, 'scheduler', 'scheduler', '--host=127.0.0.1', f'--port={self.port}', '--no-dashboard',
      f'--scheduler-file={self.file}', *self._tls('scheduler'),
    )  # fmt: skip
    wait_for(lambda: self.file.exists() and self.file.read_text().endswith('}'), self.scheduler)
    self.address = json.loads(self.file.read_text())['address']
    self.port = int(self.address.rpartition(':')[2])

  def start_worker(self, threads=1, preload=PRELOAD, program=ForkedProgram, **environment):
    name = f'w{len(self.workers)}'
    preloads = ['--preload', preload] if preload else []
    worker = program(
      self._folder, name, 'worker', self.address, '--host=127.0.0.1', '--no-dashboard', '--no-nanny', f'--name={name}',
      f'--nthreads={threads}', '--memory-limit=0', f'--local-directory={self._folder}', *preloads,
      *self._tls(name), **environment,
    )  # fmt: skip
    self.workers.append(worker)
    return worker

  def machine(self, **more):
    """Returns a machine.Machine that uses this cluster."""
    from tff_cluster.engine.machine import Machine

    return Machine(scheduler=self.address, **self.tls(), **more)

  def tls(self):
    """Returns the settings of a run's certificate."""
    if self._authority is None:
      return {}
    certificate, key = self._authority.certificate('run')
    return {'tls_ca': str(self._authority.ca), 'tls_cert': str(certificate), 'tls_key': str(key)}

  def end(self):
    for each in (*self.workers, self.scheduler):
      each.kill()

  def _tls(self, name):
    return ['--protocol=tls', *self._authority.flags(name)] if self._authority else []


def wait_for(condition, *programs, patience=PATIENCE):
  """Waits until something is so; fails where it does not come, or one of the programs has ended."""
  deadline = time.monotonic() + patience
  while not condition():
    for each in programs:
      assert each.process.poll() is None, each.log.read_text()
    assert time.monotonic() < deadline, [each.log.read_text() for each in programs]
    time.sleep(0.05)
