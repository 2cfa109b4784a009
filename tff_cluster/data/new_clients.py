"""Which clients take no part: they come when everything is trained, as clients that join later do.

They are drawn from all clients of the partition, so that they are like the others: without new clients the same
configuration gives the same clients the same rows. A client's own rows, test rows among them, are its own: those of new
clients reach no training, clustering or choice. The global test set is not touched, but for by_writer, where it is made
of the clients' test rows: there it has those of the clients that take part only.
"""

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.population import Population


def participants(config: DataConfig, num_clients: int) -> np.ndarray:
  """Returns int64[clients that take part], their positions among all clients, ascending.

  Args:
    config: new_clients and data_seed.
    num_clients: All clients, more than new_clients.
  """
  if not config.new_clients:
    return np.arange(num_clients)
  generator = seeding.generator(config.data_seed, 'new clients')
  new = generator.choice(num_clients, config.new_clients, replace=False)
  return np.setdiff1d(np.arange(num_clients), new)


def split(population: Population, config: DataConfig) -> tuple[Population, Population | None]:
  """Returns the clients that take part, and the new ones; None where there are none.

  Args:
    population: All clients of the partition.
    config: new_clients and data_seed.
  """
  if not config.new_clients:
    return population, None
  chosen = participants(config, population.num_clients)
  new = np.setdiff1d(np.arange(population.num_clients), chosen)
  return population.take(chosen), population.take(new)
