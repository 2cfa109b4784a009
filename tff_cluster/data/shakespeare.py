"""Shakespeare's plays by character, through tff.simulation.datasets.shakespeare (Caldas et al. 2018, LEAF)."""

import os
from typing import Any

from tff_cluster.data import downloads, tff_database
from tff_cluster.data.characters import Text, to_source
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.source import Source

DATABASE = tff_database.Database('shakespeare', 'shakespeare.sqlite')


def load_shakespeare(config: DataConfig) -> Source:
  """Loads all characters of all plays; their training and test snippets are TFF's.

  Returns:
    Rows as characters.to_source gives them; the owner is TFF's client id, which names play and character.

  Raises:
    InputError: if no character says enough.
    EnvironmentFault: if the database is neither cached nor can be downloaded, or is damaged.
  """
  path = DATABASE.path(config.data_dir)
  folder = os.path.dirname(path)
  with downloads.quiet():
    import tensorflow_federated as tff

    official = tff.simulation.datasets.shakespeare.load_data
    if not os.path.isfile(path):
      DATABASE.download(official, folder)
    DATABASE.check_whole(path)
    with tff_database.reading(path):
      train, test = (texts_of(data) for data in official(cache_dir=folder))
  return to_source('shakespeare', train, test, config)


def texts_of(data: Any) -> list[Text]:
  """Returns what each client of a tff.simulation.datasets.ClientData says: its snippets, one space between words."""
  found = []
  for client in data.client_ids:
    rows = data.create_tf_dataset_for_client(client).as_numpy_iterator()
    words = [word for row in rows for word in row['snippets'].decode('utf-8', 'replace').split()]
    found.append(Text(client, '', ' '.join(words)))
  return found
