"""k-fold cross-validation (Rohith et al. 2020, section 4.1): the whole experiment once a fold.

Each client's own rows are cut in k parts; fold i measures on part i what was trained on the others.
The folds differ in data only: seeds, model and settings are the experiment's.
"""

import dataclasses
from typing import Any

import numpy as np
from scipy import stats

from tff_cluster import config as config_lib
from tff_cluster import results as results_lib
from tff_cluster import store
from tff_cluster.algorithms import experiment as experiment_lib
from tff_cluster.algorithms import main_job
from tff_cluster.data import populate, saved
from tff_cluster.run_folder import RunFolder


def run(
  folder: RunFolder,
  config: config_lib.ExperimentConfig,
  done: main_job.Done,
  progress: experiment_lib.Progress,
  clients_in_parallel: int = 0,
  worker_start_timeout_secs: float = 60.0,
) -> main_job.Done:
  """Runs the folds that are not finished, and adds `cross_validation` to the results.

  Args:
    folder: The run's folder; fold i lies in folds/i below it.
    config: The experiment.
    done: The experiment on its own split, as main_job.run returned it.
    progress, clients_in_parallel, worker_start_timeout_secs: See session.opened.
  """
  folds = config.evaluation.num_folds
  plain = dataclasses.replace(config, evaluation=config_lib.EvaluationConfig())
  asked, trained, each = done.asked, done.trained, []
  for index in range(folds):
    fold = RunFolder(folder.root / 'folds' / f'{index:02d}')
    if not fold.population.exists():
      saved.save_population(populate.build_population(config.data, fold=(index, folds)), fold.population)
    store.save_json(fold.config, plain.to_json())
    store.save_json(fold.environment, done.results['environment'])
    part = main_job.run(fold, plain, progress, clients_in_parallel, worker_start_timeout_secs)
    asked, trained = asked + part.asked, trained + part.trained
    each.append(part.results)
  summary = {'folds': folds, 'evaluations': _summaries(each)}
  complete = results_lib.with_digest(done.results | {'cross_validation': summary})
  store.save_json(folder.results, complete)
  return main_job.Done(complete, asked, trained)


def _summaries(each: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
  rows = {'unclustered/baseline': [fold['baseline']['evaluation'] for fold in each]}
  for position, clustering in enumerate(each[0]['clusterings']):
    for name in clustering['evaluations']:
      rows[f'{clustering["label"]}/{name}'] = [
        fold['clusterings'][position]['evaluations'][name] for fold in each
      ]
  return {
    name: _interval([e['clients']['mean_client_accuracy'] for e in evaluations])
    | {'recall': float(np.mean([e['clients']['recall'] for e in evaluations]))}
    for name, evaluations in rows.items()
  }


def _interval(values: list[float]) -> dict[str, float]:
  """Returns mean and Student's 95% interval over folds."""
  mean = float(np.mean(values))
  half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
  return {'mean': mean, 'low': mean - half, 'high': mean + half}
