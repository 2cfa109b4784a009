"""What the rounds of a method that alternates came to in a run, and what they cost."""

import numpy as np

from tests.made_up import linear_model
from tff_cluster.base.cost import Cost
from tff_cluster.experiment import phase_files
from tff_cluster.storage import files, saved_rounds


def saved(run, label):
  """Returns what a clustering's rounds came to, and their arrays."""
  found = run.folder.load_finished(run.folder.alternation(label), phase_files.Alternation)
  return found, files.load_arrays(run.folder.memberships(label))


def models(run, label, last=None):
  """Returns the models of a clustering's clusters after a round, the last one if not given."""
  name = f'round_{last or run.config.training.last_round:05d}.npz'
  phase2 = run.folder.load_finished(run.folder.phase2(label), phase_files.Phase2)
  return [
    saved_rounds.model(files.load_arrays(run.folder.store / each.artifact / name), 2, each.position)
    for each in phase2.trajectories
  ]


def cost(run, client_rounds, down, up, rows_trained, rows_forward):
  """Returns a cost with the bytes of its models."""
  size = run.phase1.model_bytes
  return Cost(client_rounds, down, up, down * size, up * size, int(rows_trained), int(rows_forward))


def costs(arrays):
  """Returns the cost of each round."""
  return [Cost(*line) for line in arrays['cost'].tolist()]


def cross_entropy(weights, split):
  """Returns float64[clients], the mean cross-entropy of a linear model."""
  return np.array(
    [linear_model.cross_entropies(weights, *split.client(k)).mean() for k in range(len(split.counts))]
  )
