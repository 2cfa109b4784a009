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


async def in_a_loop(coroutine):
  return event_loop.complete(coroutine)


@pytest.mark.parametrize('called', [event_loop.complete, lambda coroutine: asyncio.run(in_a_loop(coroutine))])
def test_results_and_errors_reach_callers_without_a_loop_and_within_a_running_one(called):
  thread, result = called(threads_and_result())
  assert result == 7 and not thread.is_alive()
  with pytest.raises(ZeroDivisionError, match='of a coroutine'):
    called(failing())
