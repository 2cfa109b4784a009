"""Clients at work: what a client is sent, and who computes with it. Here: the worker of this machine; cluster.py has others."""

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from tff_cluster.engine import side_by_side

# What a computation of TFF returns.
Result: TypeAlias = Any
# A gRPC message over 2 GB kills the worker; the rest is room for what travels beside the payload.
MESSAGE_BYTES = 400_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
  """A client with what it is sent.

  Attributes:
    rows: The client's own arrays, by name.
    beside: What is sent with them each time, by name.
    key: Gives a digest of `rows`, under which a worker of a cluster keeps them, where they are asked for again; None: they
      are sent each time. It is not called on one machine.
  """

  rows: Mapping[str, np.ndarray]
  beside: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  key: Callable[[], str] | None = None

  @property
  def argument(self) -> 'collections.OrderedDict[str, Any]':
    """What a computation takes of the client."""
    return collections.OrderedDict(**self.rows, **self.beside)

  @property
  def num_bytes(self) -> int:
    """Bytes of the rows."""
    return sum(array.nbytes for array in self.rows.values())

  @property
  def message_bytes(self) -> int:
    """Bytes of what is sent each time: what is beside the rows, and rows that nobody keeps."""
    import tensorflow as tf

    beside = sum(np.asarray(value).nbytes for value in tf.nest.flatten(dict(self.beside)))
    return beside if self.key else beside + self.num_bytes


class Workers(Protocol):
  """Who has clients work. What they compute does not depend on who does, nor on what is computed beside it.

  Attributes:
    apart: Whether sums are to be asked for chunk by chunk, because chunks go to different machines.
    at_once: Pieces of work, such as clusters, whose calls fill the workers together.
  """

  apart: bool
  at_once: int

  def each(
    self, computation: Any, shared: Sequence[Any], jobs: Sequence[Job], result_bytes: int = 0
  ) -> Iterator[Result]:
    """Yields the result of a computation (*shared@SERVER, {clients}@CLIENTS) -> {result}@CLIENTS for each job, in order.

    Args:
      computation: The computation.
      shared: What all clients get, such as the model.
      jobs: The clients.
      result_bytes: Bytes of a result, about.
    """

  def totals(
    self, computation: Any, shared: Sequence[Any], chunks: Sequence[Sequence[Job]]
  ) -> Iterator[Result]:
    """Yields the result of a computation (*shared@SERVER, {clients}@CLIENTS) -> {total}@SERVER for each chunk, in order."""

  def busy(self, clients: int) -> contextlib.AbstractContextManager[None]:
    """Waits until cores of this machine are free for a call with so many clients, and takes them while the block lasts."""


class OneMachine:
  """The worker of this machine, in the TFF context of the calling thread."""

  apart = False

  def __init__(self, slots: side_by_side.Slots):
    self._slots = slots
    self.at_once = slots.count

  def each(
    self, computation: Any, shared: Sequence[Any], jobs: Sequence[Job], result_bytes: int = 0
  ) -> Iterator[Result]:
    """See Workers.each; as many jobs are sent at a time as fit into one message."""
    for some in portions([result_bytes + job.num_bytes for job in jobs]):
      with self.busy(len(some)):
        results = computation(*shared, [jobs[k].argument for k in some])
      yield from results

  def totals(
    self, computation: Any, shared: Sequence[Any], chunks: Sequence[Sequence[Job]]
  ) -> Iterator[Result]:
    """See Workers.totals."""
    for chunk in chunks:
      with self.busy(len(chunk)):
        total = computation(*shared, [job.argument for job in chunk])
      yield total

  def busy(self, clients: int) -> contextlib.AbstractContextManager[None]:
    """See Workers.busy."""
    return self._slots.taken(clients)


def portions(sizes: Sequence[int], most: int = MESSAGE_BYTES) -> Iterator[list[int]]:
  """Yields runs of positions whose sizes together stay below a limit, or that are one.

  Args:
    sizes: Bytes that each position adds to a message.
    most: The limit, in bytes.
  """
  some: list[int] = []
  total = 0
  for position, size in enumerate(sizes):
    if some and total + size > most:
      yield some
      some, total = [], 0
    some.append(position)
    total += size
  if some:
    yield some
