"""The connection to a Dask scheduler: its certificates, and how what is lost or lacks something there is told."""

import concurrent.futures
import contextlib
import logging
import warnings
from collections.abc import Iterator

import distributed
import distributed.versions

from tff_cluster.base.errors import EnvironmentFault, InputError, argument
from tff_cluster.base.words import first_line
from tff_cluster.engine import dask_worker
from tff_cluster.engine import machine as machine_lib

TICK_SECS = 1.0
# What tells that a worker, the scheduler or the way there is lost; tasks tell all else by an error of their own.
LOST = (
  concurrent.futures.CancelledError,
  distributed.CancelledError,
  distributed.KilledWorker,
  distributed.client.ClosedClientError,
  OSError,  # CommClosedError and TimeoutError among them.
)


@contextlib.contextmanager
def client(machine: machine_lib.Machine) -> Iterator[distributed.Client]:
  """Yields the connection to the scheduler that a machine names.

  Args:
    machine: Where its scheduler is, and how patient to be.

  Raises:
    InputError: if certificates are missing, or are none.
    EnvironmentFault: if the scheduler cannot be reached, or does not take the certificate.
  """
  place = machine.cluster
  assert place is not None
  security = _security(place)
  with contextlib.ExitStack() as opened:
    # What Dask logs of losses is told in a line of ours.
    opened.enter_context(distributed.utils.silence_logging_cmgr(logging.CRITICAL + 1))
    opened.enter_context(warnings.catch_warnings())
    warnings.simplefilter('ignore', distributed.versions.VersionMismatchWarning)
    try:
      found = distributed.Client(
        place.address,
        security=security,
        timeout=machine.worker_start_timeout_secs,
        set_as_default=False,
        name='tff_cluster',
      )
    except (OSError, ValueError, RuntimeError) as error:
      raise EnvironmentFault(
        f'cannot connect to the scheduler {place.address}: {words(_root(error))}'
      ) from error
    opened.callback(_leave, found)
    yield found


def dashboard(client: distributed.Client) -> str | None:
  """Returns the address of the scheduler's dashboard; None where it has none.

  Raises:
    EnvironmentFault: if the scheduler does not have this package.
  """
  try:
    return client.dashboard_link if client.run_on_scheduler(dask_worker.has_dashboard) else None
  except Exception as error:
    raise unreadable(error) or error from None


def unreadable(error: Exception) -> EnvironmentFault | None:
  """Returns what to raise where a scheduler or worker failed because it lacks what the run has; None where it failed otherwise."""
  if not isinstance(error, ImportError) and 'deserialization' not in str(error):
    return None
  return EnvironmentFault(
    f'the cluster cannot read what it is sent ({words(error)}); install scheduler and workers from the same '
    f'requirements.lock, with this package; {machine_lib.SAVED}'
  )


def words(error: BaseException) -> str:
  """Returns an error in one line."""
  kind, told = type(error).__name__, first_line(error, '')
  return f'{kind}: {told}' if told else kind


def _root(error: BaseException) -> BaseException:
  while error.__cause__ is not None:
    error = error.__cause__
  return error


def _leave(client: distributed.Client) -> None:
  with contextlib.suppress(*LOST):
    client.close(timeout=2 * TICK_SECS)


def _security(place: machine_lib.Scheduler) -> distributed.Security:
  """Returns the certificates, as they were given or as Dask's own configuration has them."""
  given = dict(zip(('tls_ca_file', 'tls_client_cert', 'tls_client_key'), place.tls or (), strict=False))
  encrypted = place.address.startswith('tls://')
  named = 'tls_ca' if place.tls else 'scheduler'
  try:
    security = distributed.Security(require_encryption=encrypted, **given)
    ready = security.get_connection_args('client')['ssl_context'] is not None
  except (OSError, ValueError) as error:  # ssl.SSLError is an OSError.
    raise InputError(f'the certificates for {place.address} cannot be used: {words(error)}') from None
  if encrypted and not ready:
    raise InputError(
      f'{argument(named, place.address)}: TLS takes certificates; give {argument("tls_ca")}, {argument("tls_cert")} and '
      f"{argument('tls_key')}, or Dask's own configuration (distributed.comm.tls)"
    )
  return security
