"""A whole run, and what tests read of its folder."""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Iterator

import numpy as np

from tests.federated.small_trainer import visit_orders
from tests.made_up import linear_model
from tests.phases import one_worker
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.data import saved
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import cost_estimates, run_experiment, session
from tff_cluster.storage import files


class Stopped(BaseException):
  """Stands for a kill."""


def changed(config, data=(), training=(), **parts):
  """Returns an experiment with other fields of its data and of its training, and with other parts."""
  fields = {'data': dataclasses.replace(config.data, **dict(data))}
  fields['training'] = dataclasses.replace(config.training, **dict(training))
  return dataclasses.replace(config, **fields, **parts)


class WholeRun:
  """A finished run of an experiment; options are run_experiment's, but that models are exported on demand only."""

  def __init__(self, config, path, export_models=False, **options):
    self.config, self.folder = config, RunFolder(path)
    began = time.monotonic()
    with one_worker.kept():
      self.done = run_experiment.run_experiment(config, path, export_models=export_models, **options)
    self.results, self.seconds = self.done.results, time.monotonic() - began

  @property
  def store(self):
    return str(self.folder.store)

  @functools.cached_property
  def population(self):
    return saved.load_population(self.folder.population)

  @functools.cached_property
  def phase1(self):
    return self.folder.load_finished(self.folder.phase1, phase_files.Phase1)

  def clustering(self, label):
    return next(c for c in self.results.clusterings if c.label == label)

  def membership(self, label):
    """Returns float64[clusters, clients]."""
    clusters = self.clustering(label).clusters
    return ClusterAssignment.from_clusters(clusters, self.population.client_ids).membership

  def signatures(self, kind='weights'):
    return np.array(files.load_rows(self.folder.store / self.phase1.signatures[kind] / 'vectors.npy'))

  @functools.cached_property
  def models(self):
    """The weights of the exported models, by label, as Keras loads them."""
    return {
      c.label: [self._load(c.label, row).get_weights() for row in range(c.num_clusters)]
      for c in self.results.clusterings
    }

  @functools.cached_property
  def _keras(self):
    return self._load(self.results.clusterings[0].label, 0)

  def _load(self, label, row):
    import tensorflow as tf

    return tf.keras.models.load_model(self.folder.model(label, row))

  def predict(self, weights, x):
    """Returns float32[rows, classes], what Keras makes of images with values from 0 to 255."""
    self._keras.set_weights(weights)
    return self._keras(x.astype(np.float32) / np.float32(255)).numpy()

  def opened(self):
    return opened(self.folder, self.config)


@contextlib.contextmanager
def opened(folder, config) -> Iterator:
  """Yields a run's experiment for training."""
  with one_worker.kept(), session.opened(folder, config, run_experiment.Silent()) as experiment:
    yield experiment


def estimated(config, path, store=None):
  """Returns what a dry run says of a run: client-rounds asked for, and those that are stored, in its own store or in this one."""
  with one_worker.kept():
    run = cost_estimates.Run('run', config, RunFolder(path))
    (found,) = cost_estimates.estimates([run], store, run_experiment.Silent())
  return found.asked, found.stored


def accuracy(weights, split, client):
  """Returns the share of a client's rows that a linear model is right on."""
  x, y = split.client(client)
  return np.mean(linear_model.logits(weights, x).argmax(axis=1) == y)


def sgd(run, weights, client, number, **pull):
  """Returns float64[features], a linear model after a client's local epochs of a round; `pull` is as in linear_model.sgd."""
  training, rows = run.config.training, run.population.train.client(client)
  orders = visit_orders(run.population, client, number, training.local_epochs, training.seed)
  return linear_model.sgd(weights, *rows, orders, training.batch_size, training.learning_rate, **pull)


def accuracy_of(evaluation):
  """Returns the mean over clients."""
  return evaluation.clients.mean_client_accuracy


def scaled(population, factors):
  """Returns the population with float32 rows from 0 to 1, those of some clients multiplied: at 1e30 training diverges."""

  def of(split):
    x = (split.x / 255.0).astype(np.float32)
    for client, factor in factors.items():
      x[split.offsets[client] : split.offsets[client + 1]] *= factor
    return dataclasses.replace(split, x=x)

  splits = {name: of(getattr(population, name)) for name in ('train', 'validation', 'test')}
  return dataclasses.replace(
    population, **splits, global_test_x=(population.global_test_x / 255.0).astype(np.float32)
  )
