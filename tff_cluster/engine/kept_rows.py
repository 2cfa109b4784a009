"""Clients' rows on the workers of a cluster: sent once, they stay where they are until the run ends or their worker is lost."""

import collections
import dataclasses
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import distributed
import numpy as np

from tff_cluster.engine import cluster_connection as connection
from tff_cluster.engine import jobs as jobs_lib

Rows: TypeAlias = Mapping[str, np.ndarray]
_Sent: TypeAlias = Mapping[str, distributed.Future]


@dataclasses.dataclass(frozen=True, eq=False)
class _Kept:
  """A client's rows, and the worker that they were sent to."""

  future: distributed.Future
  worker: str

  @property
  def is_there(self) -> bool:
    return self.future.status == 'finished'


class KeptRows:
  """What workers keep of clients."""

  def __init__(self, client: distributed.Client):
    self._client = client
    self._sending = threading.Lock()
    self._kept: dict[str, _Kept] = {}

  def __len__(self) -> int:
    return len(self._kept)

  def keepers(self, jobs: Iterable[jobs_lib.Job]) -> list[str]:
    """Returns the workers that keep rows of some clients, those with the most clients first."""
    found = (self._kept.get(job.key()) for job in jobs if job.key is not None)
    counts = collections.Counter(kept.worker for kept in found if kept is not None and kept.is_there)
    return [worker for worker, _ in counts.most_common()]

  def missing(self, jobs: Iterable[jobs_lib.Job], again: bool = False) -> dict[str, jobs_lib.Job]:
    """Returns {key: client} of those whose rows are not there, or not to be trusted."""
    keyed = ((job.key(), job) for job in jobs if job.key is not None)
    return {key: job for key, job in keyed if again or key not in self._kept or not self._kept[key].is_there}

  def send(
    self, wanted: Mapping[str, Sequence[jobs_lib.Job]], again: bool = False
  ) -> Mapping[str, Exception]:
    """Sends rows that are not there yet, to all workers side by side.

    Args:
      wanted: {worker: clients whose rows it is to keep}; a client that is wanted twice goes to the first.
      again: Whether what seems to be there is not to be trusted.

    Returns:
      {worker: error} of the workers that could not be reached.
    """
    if not any(self.missing(jobs, again) for jobs in wanted.values()):
      return {}
    # One call at a time: others may want rows of the same clients.
    with self._sending:
      sent, taken = {}, set[str]()
      for worker, jobs in wanted.items():
        missing = {key: job for key, job in self.missing(jobs, again).items() if key not in taken}
        taken |= missing.keys()
        if missing:
          sent[worker] = missing
      found = self._client.sync(self._scatter_all, sent)
      lost = {}
      for (worker, missing), futures in zip(sent.items(), found, strict=True):
        if isinstance(futures, Exception):
          lost[worker] = futures
        else:
          kept = (_Kept(future, worker) for future in futures.values())
          self._kept |= zip(missing, kept, strict=True)
    return lost

  def of(self, jobs: Iterable[jobs_lib.Job]) -> list[distributed.Future | Rows]:
    """Returns each client's rows: where they are kept, or themselves."""
    return [dict(job.rows) if job.key is None else self._kept[job.key()].future for job in jobs]

  async def _scatter_all(self, sent: Mapping[str, Mapping[str, jobs_lib.Job]]) -> list[_Sent | Exception]:
    """Sends {worker: {key: client}}; what comes for a worker that is not reached is its error."""
    found: list[_Sent | Exception] = await distributed.utils.All(
      [self._scatter(worker, jobs) for worker, jobs in sent.items()]
    )
    return found

  async def _scatter(self, worker: str, jobs: Mapping[str, jobs_lib.Job]) -> _Sent | Exception:
    # Names that nobody has used: Dask does not take again what it has just lost.
    named = {f'rows-{key[:16]}-{uuid.uuid4().hex}': dict(job.rows) for key, job in jobs.items()}
    try:
      sent: _Sent = await self._client.scatter(
        named, workers=[worker], hash=False, timeout=connection.TICK_SECS, asynchronous=True
      )
    except (*connection.LOST, KeyError) as error:  # KeyError: the worker is gone.
      return error
    return sent
