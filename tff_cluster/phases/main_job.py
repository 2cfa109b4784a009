"""All phases in a row, in one folder: what phases.run_all runs, and what ten lines of Python run."""

import dataclasses
import pathlib
from collections.abc import Mapping

from tff_cluster.data import population as population_lib
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.config import FEDAVG, PERSONALIZED
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import (
  added_rules,
  assembly,
  failures,
  new_clients,
  personalization,
  phase1,
  phase2,
  phase3,
  session,
  training_ahead,
)
from tff_cluster.phases import clustering as clustering_lib
from tff_cluster.phases import live_experiment as live_experiment_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Done:
  """A finished run.

  Attributes:
    results: What results.json holds.
    asked, trained: Client-rounds that the results stand on, and those that had to be trained now.
    failed: What went wrong with clusterings, by label, and rules of Phase 3, by Rule.called, that the run therefore does
      not have.
    report: The report, where one was asked for.
  """

  results: results_lib.Results
  asked: int
  trained: int
  failed: Mapping[str, Exception] = dataclasses.field(default_factory=dict)
  report: pathlib.Path | None = None


def run(
  folder: RunFolder,
  config: config_lib.ExperimentConfig,
  progress: live_experiment_lib.Progress,
  machine: machine_lib.Machine = machine_lib.ONE_WORKER,
  fold: tuple[int, int] | None = None,
  export_models: bool = True,
  claim: run_claim.Claim | None = None,
) -> Done:
  """Runs what is not finished, and returns the results. A clustering, or an added rule, that fails leaves the run, and the others go on.

  Args:
    folder, config, progress, machine, fold, claim: See session.opened.
    export_models: Whether the cluster models are written as .keras files too.
  """
  population, asked, trained = None, 0, 0
  failed: dict[str, Exception] = {}
  finished = is_done(folder, config, export_models)
  if (claim is not None and claim.adds) or not finished:
    with session.opened(folder, config, progress, machine, fold, claim) as experiment:
      population = experiment.population
      progress.plan(_plan(config, population.num_clients))
      phase1.run_phase1(experiment)
      failed = clustering_lib.make_clusterings(experiment, config.clusterings)
      experiment.config = failures.drop(folder, config, failed)
      training_ahead.train(experiment)
      phase1.run_baseline(experiment)
      personalization.run(experiment)
      later: dict[str, Exception] = {}
      for clustering in experiment.config.clusterings:
        with failures.apart(later, clustering.label):
          phase2.run_phase2(experiment, clustering.label, export_models)
          phase3.run_phase3(experiment, clustering.label)
          new_clients.run_clustering(experiment, clustering)
          added_rules.run(experiment, clustering.label, later)
      experiment.config = failures.drop(folder, experiment.config, later)
      new_clients.run_baseline(experiment)
      failed |= later
      asked, trained = experiment.asked, experiment.trained
  elif claim is not None:
    claim.write(works=not has_folds(folder, config))
  results = assembly.run_assembly(folder, population or session.clients(folder, config, fold))
  return Done(results, asked, trained, failed)


def has_folds(folder: RunFolder, config: config_lib.ExperimentConfig) -> bool:
  """Tells whether all folds of a run are done, with all that it asks for."""
  folds = [folder.fold(index) for index in range(config.evaluation.num_folds)]
  return all(fold.results.exists() and is_done(fold, config.of_fold) for fold in folds)


def is_done(folder: RunFolder, config: config_lib.ExperimentConfig, export_models: bool = False) -> bool:
  """Tells whether there is nothing left to train, cluster, measure or export in a run."""
  finished = [folder.phase1, folder.baseline]
  finished += [folder.personalized(name) for name in config.evaluation.personalized]
  if config.data.new_clients:
    finished += [folder.new_clients_of(clustering.label) for clustering in config.clusterings]
    finished.append(folder.new_clients_baseline)
  if not added_rules.is_done(folder, config):
    return False
  return all(path.exists() for path in finished) and all(
    clustering_lib.is_made(folder, clustering)
    and phase2.is_done(folder, clustering.label, export_models)
    and phase3.is_done(folder, clustering.label)
    for clustering in config.clusterings
  )


def _plan(config: config_lib.ExperimentConfig, num_clients: int) -> dict[str, float]:
  """Returns the phases in their order with what each costs, in client-rounds, as far as it is known before.

  A clustering is taken for one that trains every client once a round.
  """
  training, labels = config.training, [clustering.label for clustering in config.clusterings]
  cohort = population_lib.cohort_size(training.cohort_fraction, num_clients)
  plan: dict[str, float] = {'Phase 1': training.phase1_rounds * cohort}
  rounds, own = training.last_round, personalization
  plan |= {f'clustering {c.label}': cohort * (rounds if c.rule.trains else 1) for c in config.clusterings}
  costs = {
    own.LOCAL: rounds * num_clients,
    own.FINE_TUNING: config.evaluation.fine_tuning * num_clients,
    own.DITTO: rounds * cohort,
  }
  later: dict[str, float] = {FEDAVG: training.phase2_rounds * cohort}
  later |= {PERSONALIZED[name]: costs[name] for name in config.evaluation.personalized}
  later |= {
    phase2.name_of(c.label): 0.0 if c.rule.trains else training.phase2_rounds * cohort
    for c in config.clusterings
  }
  ahead = [name for name in later if name not in (PERSONALIZED[own.FINE_TUNING], PERSONALIZED[own.DITTO])]
  if len(ahead) > 1:  # Trained side by side, then read again one after the other.
    plan[training_ahead.AHEAD] = sum(later[name] for name in ahead)
    later |= dict.fromkeys(ahead, 0.0)
  plan |= later
  plan |= {f'Phase 3 of {label}': cohort for label in labels}
  return plan | {'report': cohort}
