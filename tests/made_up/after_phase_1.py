"""A run whose Phase 1 seems to be done: made-up signatures and clients, without training."""

import pathlib

import numpy as np

from tests.conftest import make_population
from tests.made_up import in_json
from tff_cluster.data import saved
from tff_cluster.experiment import phase_files, run_claim
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files, output_folders


def make(folder: pathlib.Path, config: ExperimentConfig, groups: np.ndarray) -> RunFolder:
  """Returns the folder of a run that nobody holds.

  Args:
    folder: Where it is made.
    config: The experiment.
    groups: int64[clients], planted groups, which the weights of the clients show plainly.
  """
  run = RunFolder(run_claim.claim_output_dir(folder, config).write())
  output_folders.release_all()
  population = make_population(clients=len(groups))
  truth = np.eye(groups.max() + 1)[:, groups]
  population.truths['group'] = truth
  saved.save_population(population, run.population)
  rows = run.store / 'signatures-1' / 'vectors.npy'
  vectors = truth.T * 9 + np.random.default_rng(0).normal(size=truth.T.shape) * 0.01
  files.save_rows(rows, *vectors.shape, lambda array: np.copyto(array, vectors))
  files.save_json(rows.parent / 'clients.json', list(population.client_ids))
  signatures = {'signatures': {'weights': 'signatures-1'}}
  files.save_json(run.phase1, in_json.record(phase_files.Phase1, signatures))
  return run
