"""The side of a contender in the conversation with the program that times it. Standard library only.

A contender is a process of its own, so that nobody's threads, allocator or caches are somebody else's, and
so that a package with other requirements can take part from its own environment. The timing program
gives every contender one round in turn. On its standard input a contender reads `round` or `check`, a line
each, and the end of input means that it is over; on its standard output it answers one JSON object a line.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any


class Turns:
  """Waits for turns and answers them.

  What libraries print to standard output goes to standard error from here on: the answers stand alone.
  """

  def __init__(self) -> None:
    self._answers = os.fdopen(os.dup(1), 'w')
    sys.stdout.flush()
    os.dup2(2, 1)

  def ready(self, **notes: Any) -> None:
    """Says that the contender is set up; the notes say what it is (version, number of parameters)."""
    self._answer({'ready': notes})

  def next(self, accuracy: Callable[[], float]) -> bool:
    """Waits for the next turn; returns False once there is none.

    Args:
      accuracy: Measures the model as it is now on all clients' rows; called when a check is asked for.
    """
    for line in sys.stdin:
      command = line.strip()
      if command == 'round':
        return True
      if command == 'check':
        self._answer({'accuracy': float(accuracy())})
      else:
        raise ValueError(f'unknown command {command!r}; known: round, check')
    return False

  def done(self, seconds: float) -> None:
    """Answers the turn: how long its round took."""
    self._answer({'seconds': seconds})

  def serve(self, run_round: Callable[[], float], accuracy: Callable[[], float]) -> None:
    """Answers turns until there are no more; run_round runs a round and returns its seconds."""
    while self.next(accuracy):
      self.done(run_round())

  def _answer(self, message: dict[str, Any]) -> None:
    print(json.dumps(message), file=self._answers, flush=True)


def arguments() -> argparse.Namespace:
  """Parses what the timing program tells a contender: the rows and the setting."""
  parser = argparse.ArgumentParser(allow_abbrev=False)
  parser.add_argument(
    '--rows_file', required=True, help='npz: x uint8[clients, rows, ...], y int32[clients, rows]'
  )
  parser.add_argument('--batch_size', type=int, required=True)
  parser.add_argument('--local_epochs', type=int, required=True)
  parser.add_argument('--learning_rate', type=float, required=True)
  parser.add_argument('--seed', type=int, required=True)
  parser.add_argument('--cores', type=int, required=True)
  parser.add_argument('--form', default='', help='which of its forms a contender takes')
  return parser.parse_args()
