"""All phases in a row, in one folder: what phases.run_all runs, and what ten lines of Python run."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from tff_cluster.data import population as population_lib
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import added_rules, assembly, local_training, new_clients, session, three_phase
from tff_cluster.phases import live_experiment as live_experiment_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Done:
  """A finished run.

  Attributes:
    results: As in results.json.
    asked, trained: Client-rounds that the results stand on, and those that had to be trained now.
    failed: What went wrong with clusterings, by label, and rules of Phase 3, by Rule.called, that the run therefore does
      not have.
    report: The report, where one was asked for.
  """

  results: dict[str, Any]
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
  finished = three_phase.is_done(folder, config, export_models) and added_rules.is_done(folder, config)
  if (claim is not None and claim.adds) or not finished:
    with session.opened(folder, config, progress, machine, fold, claim) as experiment:
      population = experiment.population
      progress.plan(_plan(config, population.num_clients))
      three_phase.run_phase1(experiment)
      failed = three_phase.make_clusterings(experiment, config.clusterings)
      experiment.config = three_phase.drop(folder, config, failed)
      three_phase.run_baseline(experiment)
      local_training.run_local(experiment)
      later: dict[str, Exception] = {}
      for clustering in experiment.config.clusterings:
        with three_phase.apart(later, clustering.label):
          three_phase.run_phase2(experiment, clustering.label, export_models)
          three_phase.run_phase3(experiment, clustering.label)
          new_clients.run_clustering(experiment, clustering)
          added_rules.run(experiment, clustering.label, later)
      experiment.config = three_phase.drop(folder, experiment.config, later)
      new_clients.run_baseline(experiment)
      failed |= later
      asked, trained = experiment.asked, experiment.trained
  elif claim is not None:
    claim.write()
  results = assembly.run_assembly(folder, population or session.clients(folder, config, fold))
  return Done(results, asked, trained, failed)


def _plan(config: config_lib.ExperimentConfig, num_clients: int) -> dict[str, float]:
  """Returns the phases in their order with what each costs, in client-rounds, as far as it is known before.

  A clustering is taken for one that trains every client once a round.
  """
  training, labels = config.training, [clustering.label for clustering in config.clusterings]
  cohort = population_lib.cohort_size(training.cohort_fraction, num_clients)
  plan: dict[str, float] = {'Phase 1': training.phase1_rounds * cohort}
  plan |= {f'clustering {label}': cohort for label in labels}
  plan[three_phase.FEDAVG] = training.phase2_rounds * cohort
  if config.evaluation.local_training:
    plan[local_training.LOCAL] = (training.phase1_rounds + training.phase2_rounds) * num_clients
  for label in labels:
    plan |= {f'Phase 2 of {label}': training.phase2_rounds * cohort, f'Phase 3 of {label}': cohort}
  return plan | {'report': cohort}
