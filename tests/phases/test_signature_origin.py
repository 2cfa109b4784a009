"""What the server adds to an update that a client sends, so that it has the signature that Phase 1 saved."""

import numpy as np
import pytest

from tff_cluster.clustering import sketch
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig, TrainingConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases.run_experiment import Silent
from tff_cluster.storage import files

pytestmark = pytest.mark.tensorflow

ROUNDS = 3


@pytest.mark.parametrize('dimension', [None, 64])
def test_signatures_are_origin_plus_update(dimension, tmp_path):
  from tff_cluster.phases import client_signatures, phase1, session

  training = TrainingConfig(
    model='logistic', phase1_rounds=ROUNDS, batch_size=10, sketch_dimension=dimension, seed=5
  )
  clusterings = (
    ClusteringConfig(method='kmeans', num_clusters=2),
    ClusteringConfig(method='kmeans', num_clusters=2, signature='updates', name='on_updates'),
  )
  config = ExperimentConfig(DataConfig(num_clients=4, rows_per_client=40), training, clusterings)
  files.save_json(RunFolder(tmp_path).config, config.to_json())
  with session.opened(RunFolder(tmp_path), config, Silent()) as experiment:
    phase1.run_phase1(experiment)
    origins = {kind: client_signatures.origin(experiment, kind) for kind in ('weights', 'updates')}
    trainer = experiment.trainer
    outcome = experiment.train(
      'again', experiment.everyone, trainer.computations.model.weights, 0, ROUNDS, (ROUNDS - 1,)
    )
    updates = np.empty((4, trainer.computations.model.num_parameters), np.float32)
    trainer.local_updates(
      outcome.weights[ROUNDS - 1], range(4), ROUNDS, lambda k, u: np.copyto(updates[k], u)
    )
    shares = experiment.population.train.counts / experiment.population.train.counts.sum()
  saved = {kind: client_signatures.load(RunFolder(tmp_path), kind).vectors for kind in origins}
  assert not origins['updates'].any() and origins['updates'].shape == saved['updates'][0].shape
  if dimension is None:
    assert np.array_equal(saved['weights'], origins['weights'] + updates)
    # The mean of what the clients of the last round had is the model after it (McMahan 2017).
    after = np.concatenate([np.ravel(w) for w in outcome.weights[ROUNDS]])
    np.testing.assert_allclose(
      shares @ (saved['weights'] - origins['weights']), after - origins['weights'], atol=1e-6
    )
  else:
    # A sketch is linear, so those of the updates are what is left.
    expected = sketch.sketch(updates, dimension, 5)
    np.testing.assert_allclose(saved['weights'] - origins['weights'], expected, atol=1e-5)
