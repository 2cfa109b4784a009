"""Which number of machines a round on a cluster is worth, computed from what a client, a model, the network and a task take.

A round of n clients of s seconds each, on N machines that train T clients at a time, with a model of M bytes, and B bytes a second on
each machine's line, takes, in seconds,

  f  +  (1 + N) M / B  +  the longest of  c + min(N, k) M / B,  k M / B,  k t

for k tasks of at most four clients (federated/chunked_sum.py). The model goes from home to the first machine, and at worst from there
to all others. Then they train, c = ceil(4 ceil(k / N) / T) s for the machine with the most tasks, and the sums of the last tasks
come home through one line; or all the sums take longer than that, or the t seconds that each task costs the scheduler. f is what
a round costs whatever is in it. One machine without a cluster takes ceil(n / T) s.

A number of machines pays where all of them spend at least half of the round with their clients. The program prints a table; its last
line is one JSON list, an object a cell: `pays` and `fastest`, each [machines, how much faster than one machine they are together].
"""

import dataclasses
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks import common
from tff_cluster.base.errors import InputError

# Bytes of a model, and its name.
_MODELS = {'2nn': 796_840, 'mnist_cnn': 6_653_480, '25 million weights': 100_000_000}
_CLIENT_SECONDS = (0.05, 0.4, 2.0, 10.0)
_CLIENTS_OF_TASK = 4
_MOST_MACHINES = 1000
_PAYS = 0.5


@dataclasses.dataclass(frozen=True)
class Cluster:
  """What a cluster is made of.

  Attributes:
    threads: Clients that a machine trains at a time.
    line: Bytes a second of each machine's line.
    task_seconds: That a task costs the scheduler.
    round_seconds: That a round costs beside.
  """

  threads: int
  line: float
  task_seconds: float
  round_seconds: float


def round_seconds(cluster: Cluster, machines: int, clients: int, client_seconds: float, model: int) -> float:
  """Returns the seconds of a round; see the module's docstring."""
  tasks, of_model = -(-clients // _CLIENTS_OF_TASK), model / cluster.line
  most = min(_CLIENTS_OF_TASK * -(-tasks // machines), clients)
  training = -(-most // cluster.threads) * client_seconds
  longest = max(training + min(machines, tasks) * of_model, tasks * of_model, tasks * cluster.task_seconds)
  return cluster.round_seconds + (1 + machines) * of_model + longest


def times_as_fast(
  cluster: Cluster, clients: int, client_seconds: float, model: int
) -> Iterator[tuple[int, float]]:
  """Yields numbers of machines, and how much faster than one machine without a cluster they are together."""
  alone = -(-clients // cluster.threads) * client_seconds
  for machines in range(1, _MOST_MACHINES + 1):
    yield machines, alone / round_seconds(cluster, machines, clients, client_seconds, model)


def worth(cluster: Cluster, clients: int, client_seconds: float, model: int) -> dict[str, Any]:
  """Returns [machines, times as fast] up to which machines pay, and of the shortest round; None where one machine is faster."""
  found = list(times_as_fast(cluster, clients, client_seconds, model))
  paying = [each for each in found if each[0] > 1 and each[1] >= _PAYS * each[0]]
  fastest = max(found, key=lambda each: each[1])
  return {'pays': paying[-1] if paying else None, 'fastest': fastest if fastest[1] > 1 else None}


def table(cluster: Cluster, clients: Sequence[int]) -> tuple[list[str], list[dict[str, Any]]]:
  """Returns the lines of a table in Markdown, a row a model and a client's seconds, and what is in it."""
  heads = [words.format(n) for n in clients for words in ('{} clients: pay up to', 'fastest')]
  lines, found = [f'| model | a client | {" | ".join(heads)} |', '| --- ' * (2 + len(heads)) + '|'], []
  for (name, model), seconds in itertools.product(_MODELS.items(), _CLIENT_SECONDS):
    row = [worth(cluster, n, seconds, model) for n in clients]
    cells = [f'{each[0]} ({each[1]:.1f})' if each else 'none' for cell in row for each in cell.values()]
    lines.append(f'| {name}, {model / 1e6:.3g} MB | {seconds:g} s | {" | ".join(cells)} |')
    found += [
      {'bytes': model, 'client_seconds': seconds, 'clients': n} | cell
      for n, cell in zip(clients, row, strict=True)
    ]
  return lines, found


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  parser.add_argument(
    '--clients', type=int, nargs='+', default=[100, 1000], help='of a round; default: %(default)s'
  )
  parser.add_argument('--threads', type=int, default=8, help='T; default: %(default)s')
  parser.add_argument('--megabits', type=float, default=1000.0, help='B, in 10^6 bits; default: %(default)s')
  parser.add_argument('--task_ms', type=float, default=3.0, help='t, in milliseconds; default: %(default)s')
  parser.add_argument(
    '--round_ms', type=float, default=300.0, help='f, in milliseconds; default: %(default)s'
  )
  flags = parser.parse_args()
  if min(*flags.clients, flags.threads) < 1 or min(flags.megabits, flags.task_ms, flags.round_ms) <= 0:
    raise InputError('--clients and --threads are at least 1, all others above 0')
  cluster = Cluster(flags.threads, flags.megabits * 125_000, flags.task_ms / 1000, flags.round_ms / 1000)
  lines, found = table(cluster, flags.clients)
  print(*lines, sep='\n')
  return found


if __name__ == '__main__':
  sys.exit(main())
