"""The door to a worker: this process comes through, once, and nobody else does; what passes is what was sent."""

import os
import socket
from concurrent import futures

import pytest

from tests.engine.reach import as_a_stranger, listening
from tff_cluster.engine import socket_relay


@pytest.fixture
def inside():
  """Returns a connected pair of TCP sockets, and how often the first was asked for."""
  with (
    socket.create_server(('127.0.0.1', 0)) as server,
    socket.create_connection(server.getsockname()) as ours,
  ):
    theirs, _ = server.accept()
    with theirs:
      asked = []
      yield lambda: asked.append(1) or ours.dup(), theirs, asked


def name_of(door):
  kind, _, name = door.address.partition(':')
  assert kind == 'unix-abstract'
  return name


def called(door):
  caller = socket.socket(socket.AF_UNIX)
  caller.settimeout(20)
  caller.connect('\0' + name_of(door))
  return caller


def test_strangers_are_sent_away_and_this_process_comes_through(inside):
  connect, theirs, asked = inside
  door = socket_relay.Door(connect)
  for _ in range(2):
    # The end of the stream, or a reset where it spoke before it was sent away.
    seen = as_a_stranger(name_of(door))
    assert seen in ("answered b''", 'refused ConnectionResetError', 'refused BrokenPipeError')
  assert not asked
  with called(door) as caller:
    caller.sendall(b'it is me')
    theirs.settimeout(20)
    assert theirs.recv(100) == b'it is me'
    theirs.sendall(b'come in')
    assert caller.recv(100) == b'come in'
    # It has shut: the name is gone, for strangers and for this process.
    assert as_a_stranger(name_of(door)) == 'refused ConnectionRefusedError'
    with pytest.raises(ConnectionRefusedError):
      called(door)
  assert asked == [1]


def test_a_door_can_be_shut_and_leads_nowhere_where_nothing_can_be_connected_to(inside):
  def fail():
    raise ConnectionRefusedError

  with called(socket_relay.Door(fail)) as caller:
    assert caller.recv(1) == b''
  door = socket_relay.Door(inside[0])
  assert any(name_of(door) in line for line in listening(os.getpid()))
  door.close()
  with pytest.raises(ConnectionRefusedError):
    called(door)
  door.close()


def test_both_directions_at_once_pass_on_every_byte_in_order(inside):
  connect, theirs, _ = inside
  up, down = os.urandom(5_000_000), os.urandom(5_000_000)
  theirs.settimeout(60)

  def receive(source, count):
    pieces = []
    while count and (piece := source.recv(min(count, 1 << 16))):
      pieces.append(piece)
      count -= len(piece)
    return b''.join(pieces)

  with called(socket_relay.Door(connect)) as caller, futures.ThreadPoolExecutor(4) as threads:
    sending = [threads.submit(caller.sendall, up), threads.submit(theirs.sendall, down)]
    received = [threads.submit(receive, theirs, len(up)), threads.submit(receive, caller, len(down))]
    found_up, found_down = (each.result() for each in received)
    for each in sending:
      each.result()
    assert found_up == up and found_down == down
    theirs.shutdown(socket.SHUT_RDWR)
    assert caller.recv(1) == b''  # The end is passed on, too.
