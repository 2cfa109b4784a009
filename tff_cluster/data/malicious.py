"""Clients that do harm: some of the clients are drawn, and their updates or labels are altered (no paper's setting).

sign_flip   sends the negative of its update, times attack_scale.
scaled      sends its update times attack_scale.
label_flip  trains and validates on labels turned round: classes - 1 - y.
nan         sends NaN.

Choices:
* They are drawn with data_seed among all clients, new ones as well, so that the other clients hold what they would hold
  without them.
* A client that flips labels lies wherever it is asked, so its validation rows are flipped too: they choose thresholds and
  weights. Its test rows stay as they are: those are for reports only, and say what a model does for the client's real task.
  Global test rows stay as they are as well.
* With altered updates, validation and test stay honest: the client measures as the others do.
* Who is malicious is one more planted truth, after all others, for scores in reports and for the oracle
  (planted, with truth=malicious). Where nothing else is planted, it is the only one.
"""

import dataclasses

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.arrays import one_hot
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.partitioners import by_source
from tff_cluster.data.population import MALICIOUS, Population, Split


def draw(config: DataConfig, num_clients: int) -> np.ndarray:
  """Returns bool[clients], true for the malicious ones: the share, rounded, and at least one.

  Args:
    config: malicious_clients (above 0) and data_seed.
    num_clients: All clients, at least two.
  """
  rng = seeding.generator(config.data_seed, 'malicious clients')
  return by_source.assign_sources(num_clients, config.malicious_clients, rng) > 0


def corrupt(population: Population, config: DataConfig) -> Population:
  """Returns the population with some of its clients malicious; itself where there are to be none.

  Args:
    population: All clients of the partition.
    config: malicious_clients, attack, attack_scale and data_seed.
  """
  if config.malicious_clients == 0.0:
    return population
  malicious = draw(config, population.num_clients)
  truths = dict(population.truths) | {MALICIOUS: one_hot(malicious.astype(np.int64), 2)}
  if config.attack == 'label_flip':
    return dataclasses.replace(
      population,
      train=_flipped(population.train, malicious, population.num_classes),
      validation=_flipped(population.validation, malicious, population.num_classes),
      truths=truths,
    )
  scales = np.where(malicious, config.update_scale, 1.0).astype(np.float32)
  return dataclasses.replace(population, truths=truths, update_scales=scales)


def _flipped(split: Split, malicious: np.ndarray, num_classes: int) -> Split:
  """Returns the split with the labels of the malicious clients turned round; the rows are shared."""
  of_malicious = np.repeat(malicious, split.counts)
  y = np.where(of_malicious, num_classes - 1 - split.y, split.y).astype(split.y.dtype)
  return Split(split.x, y, split.offsets)
