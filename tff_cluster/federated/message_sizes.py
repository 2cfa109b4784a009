"""Whether the rows and updates of clients fit into the messages that TFF can send."""

import numpy as np

from tff_cluster.base.errors import InputError, argument
from tff_cluster.data import population as population_lib

# A message of 2 GB kills a TFF worker, and what the clients of a round are sent is one.
_MAX_BYTES = 1_800_000_000


def check(population: population_lib.Population, cohort_fraction: float, local_epochs: int) -> None:
  """Raises InputError if the training rows of the largest cohort, with their orders of visits, cannot be sent.

  Args:
    population: The clients.
    cohort_fraction: Share of the clients that train in a round.
    local_epochs: How often each visits its rows, in an order of its own each time.
  """
  train = population.train
  # A row, its label, and its places in the orders; integers of Python, since epochs may be any number.
  row_bytes = train.x[:1].nbytes + 4 + 4 * local_epochs
  members = population_lib.cohort_size(cohort_fraction, len(train.counts))
  cohort = row_bytes * int(np.sort(train.counts)[::-1][:members].sum())
  if cohort > _MAX_BYTES:
    fewer = argument('rows_per_client') if members == 1 else argument('cohort_fraction')
    fewer = argument('local_epochs') if 8 * local_epochs > row_bytes else fewer
    raise InputError(
      f'a cohort can hold {cohort / 1e9:.1f} GB of training rows, TFF sends at most {_MAX_BYTES / 1e9:.1f} GB '
      f'a round; use a smaller {fewer}'
    )


def check_updates(clients: int, model_bytes: int) -> None:
  """Raises InputError if the updates of so many clients, each as large as the model, cannot be sent to an aggregator together."""
  if clients * model_bytes > _MAX_BYTES:
    raise InputError(
      f'an aggregator other than {argument("aggregator", "mean")} takes the updates of {clients:,} clients at once, '
      f'{clients * model_bytes / 1e9:.1f} GB, and TFF sends at most {_MAX_BYTES / 1e9:.1f} GB; use a smaller '
      f'{argument("cohort_fraction")} or model'
    )
