"""What TFF does asynchronously is completed whether or not the caller's own event loop runs."""

import asyncio
import threading

import pytest

from tff_cluster.federated import event_loop


async def threads_and_result():
  await asyncio.sleep(0)
  return threading.current_thread(), 7


async def failing():
  raise ZeroDivisionError('of a coroutine')


def test_without_a_loop_and_within_a_running_one():
  async def in_a_loop():
    return event_loop.complete(threads_and_result())

  for thread, result in (event_loop.complete(threads_and_result()), asyncio.run(in_a_loop())):
    assert result == 7
    assert not thread.is_alive()


def test_errors_reach_the_caller():
  async def in_a_loop():
    event_loop.complete(failing())

  with pytest.raises(ZeroDivisionError, match='of a coroutine'):
    event_loop.complete(failing())
  with pytest.raises(ZeroDivisionError, match='of a coroutine'):
    asyncio.run(in_a_loop())
