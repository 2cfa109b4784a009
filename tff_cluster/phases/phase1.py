"""Phase 1: FedAvg over all clients (Rohith et al. 2020, section 6.1), and the same FedAvg gone on, without clusters."""

from typing import TYPE_CHECKING

from tff_cluster.experiment import phase_files
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.models import lookup
from tff_cluster.phases import client_signatures, cluster_training, evaluation, personalization
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import files, saved_rounds

if TYPE_CHECKING:
  from tff_cluster.federated import trajectory


def run_phase1(experiment: live_experiment_lib.Experiment) -> None:
  """Runs FedAvg over all clients (section 6.1) and saves `phase1.json` and the signatures that clusterings ask for."""
  if client_signatures.phase1_is_whole(experiment.folder):
    return
  training, trainer = experiment.config.training, experiment.trainer
  last = training.phase1_rounds
  with experiment.timed('Phase 1', last + experiment.population.num_clients) as figures:
    outcome = experiment.train(
      'phase1',
      experiment.everyone,
      trainer.computations.model.weights,
      0,
      last,
      (last - 1,),
      _left(experiment),
    )
    experiment.count(outcome)
    kinds = sorted(training.signatures(c.signature for c in experiment.config.clusterings))
    signatures = {kind: client_signatures.save(experiment, kind, outcome.weights) for kind in kinds}
    client_signatures.check(experiment, signatures)
    sketch = client_signatures.sketch_report(experiment, signatures[kinds[0]]) if signatures else None
    stage = evaluation.stage(experiment, outcome, last)
    timing = figures(accuracy=stage.evaluation.clients.mean_client_accuracy)
    model, seen = trainer.computations.model, experiment.population.digest
    files.save_json(
      experiment.folder.phase1,
      phase_files.Phase1(
        stage,
        outcome.checkpoints,
        signatures,
        sketch,
        model.num_parameters,
        model.num_bytes,
        seen,
        timing,
        lookup.code(experiment.config.training.model),
      ),
    )


def run_baseline(experiment: live_experiment_lib.Experiment) -> None:
  """Goes on with Phase 1 for the rounds of Phase 2, unclustered, and saves `phase2/baseline.json`."""
  if baseline_is_done(experiment):
    return
  training = experiment.config.training
  last = training.last_round
  with experiment.timed(FEDAVG, last) as figures:
    outcome = train_baseline(experiment)
    phase1 = experiment.folder.load_finished(experiment.folder.phase1, phase_files.Phase1)
    experiment.count(outcome, counted=phase1.stage.cost.client_rounds)
    stage = evaluation.stage(experiment, outcome, last)
    timing = figures(accuracy=stage.evaluation.clients.mean_client_accuracy)
    files.save_json(experiment.folder.baseline, phase_files.Baseline(stage, outcome.checkpoints, timing))


def train_baseline(experiment: live_experiment_lib.Experiment) -> 'trajectory.Outcome':
  """Trains it, or what the store lacks of it, and counts nothing; a part of run_baseline."""
  training = experiment.config.training
  last = training.last_round
  keep = {
    training.phase1_rounds - 1,
    training.phase1_rounds,
    *cluster_training.rounds_kept_of_fedavg(experiment),
  }
  initial = experiment.trainer.computations.model.weights
  return experiment.train('baseline', experiment.everyone, initial, 0, last, keep, _left(experiment))


def baseline_is_done(experiment: live_experiment_lib.Experiment) -> bool:
  """Tells whether the baseline has finished, with the models that are still asked for: by new clients, fine-tuning and Ditto."""
  folder, store = experiment.folder, experiment.store
  if not folder.baseline.exists():
    return False
  pulled_to = personalization.models_of_fedavg(experiment)
  if pulled_to is not None and not saved_rounds.are_whole(store, pulled_to):
    return False
  new = experiment.config.data.new_clients and not folder.new_clients_baseline.exists()
  if not new and personalization.FINE_TUNING not in personalization.missing(experiment):
    return True
  saved = folder.load_finished(folder.baseline, phase_files.Baseline)
  return saved_rounds.are_whole(store, saved.trajectory)


def _left(experiment: live_experiment_lib.Experiment) -> tuple[int, ...]:
  """Returns the rounds whose models are left in the store for Ditto."""
  pulled_to = personalization.models_of_fedavg(experiment)
  return () if pulled_to is None else pulled_to.rounds
