"""What a run may use to compute, and how patient it is; none of it changes a result."""

import dataclasses
import ipaddress
import json
import os
import re

from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.fields import option
from tff_cluster.storage import small_file

_ADDRESS = re.compile(
  r'(?P<protocol>tls|tcp)://(?P<host>[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})'
)
# How a line ends that tells of a run which the machine stopped.
SAVED = 'what was finished is saved, give the same command again to go on'
_TLS = ('tls_ca', 'tls_cert', 'tls_key')


@dataclasses.dataclass(frozen=True)
class Scheduler:
  """How the scheduler of a Dask cluster is reached.

  Attributes:
    address: tls://HOST:PORT, or tcp://HOST:PORT on this machine.
    tls: Paths of the authority's certificate, the own certificate and its key; None: as Dask's own configuration says.
  """

  address: str
  tls: tuple[str, str, str] | None = None


@dataclasses.dataclass(frozen=True)
class Machine:
  """Workers and patience. `Machine()` is one worker on this machine."""

  clients_in_parallel: int = option(
    0,
    'Clients that train side by side in the worker of this machine; 0: as many as cores.',
    at_least=0,
    # Each is a thread of the worker; with thousands it dies, and no machine has as many cores.
    at_most=1024,
  )
  scheduler: str | None = option(
    None,
    'Scheduler of a Dask cluster whose workers train the clients (docs/cluster.md), as tls://HOST:PORT; tcp:// is not encrypted '
    'and reaches this machine only. Default: one worker on this machine.',
  )
  scheduler_file: str | None = option(
    None, 'File in which a Dask scheduler has written its address; takes the place of the address.'
  )
  tls_ca: str | None = option(
    None,
    "PEM file of the cluster's certificate authority; default: as Dask's own configuration says.",
    is_path=True,
  )
  tls_cert: str | None = option(
    None, 'PEM file of a certificate by that authority, for this run.', is_path=True
  )
  tls_key: str | None = option(None, 'PEM file of the private key of that certificate.', is_path=True)
  worker_start_timeout_secs: float = option(
    60.0,
    'Seconds to wait for a worker to start, and for a cluster: for its scheduler, and while it has no worker.',
    above=0.0,
  )
  worker_stall_timeout_secs: float = option(
    60.0,
    'Seconds without any progress after which the worker of this machine is given up.',
    at_least=5.0,
  )
  worker_retries: int = option(
    2,
    'How often work is repeated, on a new worker, when a worker dies, hangs or answers an error; after that the run stops.',
    at_least=0,
  )

  @property
  def cluster(self) -> Scheduler | None:
    """The scheduler, with the address from its file where that is given; None without a cluster.

    Raises:
      InputError: if what is given is no address or no file, is not all of what TLS takes, is for nothing, or would
        leave this machine without encryption.
    """
    tls = self._tls()
    if self.scheduler is not None and self.scheduler_file is not None:
      raise InputError(
        f'{argument("scheduler")} and {argument("scheduler_file")} are both given; give one of the two'
      )
    if self.scheduler is not None:
      given, address = argument('scheduler', self.scheduler), self.scheduler
    elif self.scheduler_file is not None:
      given = argument('scheduler_file', self.scheduler_file)
      address = _address_in(self.scheduler_file)
    elif tls is not None:
      raise InputError(
        f'{argument("tls_ca")} is for a cluster; give {argument("scheduler")} or {argument("scheduler_file")}, too'
      )
    else:
      return None
    _check_address(given, address, tls is not None)
    return Scheduler(address, tls)

  def _tls(self) -> tuple[str, str, str] | None:
    paths = {name: getattr(self, name) for name in _TLS}
    missing = [name for name, path in paths.items() if path is None]
    if len(missing) == len(_TLS):
      return None
    if missing:
      there = next(name for name in _TLS if name not in missing)
      raise InputError(
        f'{argument(there)} is given without {" and ".join(map(argument, missing))}; TLS takes all three'
      )
    for name, path in paths.items():
      if not os.path.isfile(path):
        raise InputError(f'{argument(name, path)}: there is no such file')
    return (paths['tls_ca'], paths['tls_cert'], paths['tls_key'])


def _address_in(path: str) -> str:
  """Returns the address that a scheduler has written into a file."""
  try:
    found = json.loads(small_file.read(path))
  except OSError as error:
    raise InputError(
      f'{argument("scheduler_file", path)}: {error.strerror}; the scheduler writes it when it starts'
    ) from None
  except ValueError as error:
    if isinstance(error, InputError):
      raise
    found = None
  address = found.get('address') if isinstance(found, dict) else None
  if not isinstance(address, str):
    raise InputError(
      f'{argument("scheduler_file", path)} is not what a Dask scheduler writes: it names no address'
    )
  return address


def _check_address(given: str, address: str, with_tls: bool) -> None:
  found = _ADDRESS.fullmatch(address)
  if found is None or not 0 < int(found['port']) < 65536:
    told = '' if given.endswith(address) else f': {address!r}'
    raise InputError(f'{given}{told}: expected tls://HOST:PORT, for instance tls://10.0.0.5:8786')
  if found['protocol'] == 'tls':
    return
  if with_tls:
    raise InputError(
      f'{given}: tcp:// is not encrypted, so {argument("tls_ca")} is for nothing; give tls://HOST:PORT'
    )
  if not _is_here(found['host'].strip('[]')):
    told = 'this address' if given.endswith(address) else address
    raise InputError(
      f'{given}: {told} is not encrypted, and whoever reaches such a cluster runs code on its machines; give tls://HOST:PORT, '
      'or reach it through a tunnel as tcp://127.0.0.1:PORT'
    )


def _is_here(host: str) -> bool:
  """Tells whether a host is this machine, whatever the network says."""
  try:
    return ipaddress.ip_address(host).is_loopback
  except ValueError:
    return host == 'localhost'


ONE_WORKER = Machine()
