"""What a run may use to compute, and how patient it is; none of it changes a result."""

import dataclasses
import re

from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.fields import option

# A name or an IPv4 address. The colons of an IPv6 address would be taken for the one before the port.
_HOST = re.compile(r'[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?')


@dataclasses.dataclass(frozen=True)
class Machine:
  """Workers and patience. `Machine()` is one worker on this machine."""

  clients_in_parallel: int = option(
    0,
    'Clients that train side by side in a worker; 0: as many as cores.',
    at_least=0,
    # Each is a thread of the worker; with thousands it dies, and no machine has as many cores.
    at_most=1024,
  )
  workers: str | None = option(
    None,
    "Workers on other machines, started there by python -m phases.worker, as HOST:PORT,HOST:PORT; each round's clients "
    'are spread over them. Default: one worker on this machine.',
  )
  worker_start_timeout_secs: float = option(60.0, 'Seconds to wait for a worker to start.', above=0.0)
  worker_stall_timeout_secs: float = option(
    60.0, 'Seconds without any progress after which a worker is given up.', at_least=5.0
  )
  worker_retries: int = option(
    2,
    'How often work is repeated, on a new worker, when a worker dies, hangs or answers an error; after that the run stops.',
    at_least=0,
  )

  @property
  def addresses(self) -> tuple[str, ...]:
    """The HOST:PORT of `workers`, as given.

    Raises:
      InputError: naming the first that is none, or that is given twice.
    """
    if self.workers is None:
      return ()
    found = tuple(part.strip() for part in self.workers.split(','))
    for address in found:
      host, colon, port = address.rpartition(':')
      if not (
        colon and _HOST.fullmatch(host) and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536
      ):
        raise InputError(
          f'{argument("workers", self.workers)}: {address!r} is not HOST:PORT with a port from 1 to 65535, for instance 10.0.0.5:7000'
          '; HOST is a name or an IPv4 address, no IPv6 address'
        )
    repeated = sorted({address for address in found if found.count(address) > 1})
    if repeated:
      raise InputError(f'{argument("workers", self.workers)}: {repeated[0]} is given twice')
    return found


ONE_WORKER = Machine()
