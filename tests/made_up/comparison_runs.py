"""Runs of one experiment under several seeds whose accuracies are given client by client."""

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.made_up import finished_run as made_up
from tests.made_up import in_json
from tff_cluster.scorecard.contenders import Runs

FEDAVG = 'FedAvg without clusters'
LOCAL, FINE_TUNED, DITTO = 'every client alone', 'fine-tuned FedAvg', 'Ditto'
_OWN = {'local': LOCAL, 'fine_tuning': FINE_TUNED, 'ditto': DITTO}
Accuracies = Mapping[str, Sequence[Sequence[float]]]


def make(
  accuracies: Accuracies,
  earlier: Accuracies | None = None,
  truth: str = 'disjoint',
  trained_on: Accuracies | None = None,
  **options: Any,
) -> list[tuple[int, dict[str, Any]]]:
  """Returns (seed, results) with seeds 0, 1, ...

  Args:
    accuracies: float[seeds][clients] for FEDAVG, LOCAL, FINE_TUNED and DITTO or not, and labels. A label that begins with 'over' is of an
      overlapping clustering (everybody but one client, in two ways), with 'dial' of dynamic distance, with 'planted' of
      the oracle; others are k-means.
    earlier: The same for labels that cost more than FedAvg, at equal client-rounds. Validation rows say of a clustering what
      its accuracies say, on average.
    truth: See made_up.make_run.
    trained_on: The same for labels whose clients trained on for themselves by the rule fine_tuned.
    **options: Of made_up.make_run.
  """
  labels = [name for name in accuracies if name not in (FEDAVG, *_OWN.values())]
  methods = {'over': 'dynamic_distance', 'dial': 'dynamic_distance', 'plan': 'planted'}
  clients = len(accuracies[FEDAVG][0])
  options = {'groups': 2, 'rounds': (2, 4)} | options
  runs = []
  for seed in range(len(accuracies[FEDAVG])):
    results = copy.deepcopy(
      _results(
        num_clients=clients,
        truth=truth,
        methods=tuple(f'{methods.get(label[:4], "kmeans")}:{label}' for label in labels),
        personalized=tuple(name for name, title in _OWN.items() if title in accuracies),
        seed=seed,
        **options,
      )
    )
    results['config']['data']['num_groups'] = options['groups']
    if trained_on:
      results['rules'] = [
        {'name': 'fine_tuned', 'words': 'w', 'kind': 'training', 'aggregation': 'fine_tuned'}
      ]
    results['baseline']['evaluation']['client_accuracy'] = list(accuracies[FEDAVG][seed])
    for found in results['personalized']:
      found['evaluation']['client_accuracy'] = list(accuracies[_OWN[found['name']]][seed])
    for clustering in results['clusterings']:
      clustering['evaluations']['own']['client_accuracy'] = list(accuracies[clustering['label']][seed])
      if clustering['label'] in (trained_on or {}):
        own = list(trained_on[clustering['label']][seed])
        clustering['evaluations']['fine_tuned'] = clustering['evaluations']['own'] | {
          'client_accuracy': own, 'mixing': None, 'own_rounds': 1,
        }  # fmt: skip
      if clustering['label'].startswith('over'):
        _overlap(clustering, results['population']['client_ids'], options['rounds'])
      history = clustering['history']
      mean = float(np.mean(accuracies[clustering['label']][seed]))
      history['validation_accuracy'] = [mean] * len(history['rounds'])
      later = (earlier or {}).get(clustering['label'])
      if later is not None:
        clustering['equal_cost']['evaluation']['client_accuracy'] = list(later[seed])
        clustering['equal_cost']['validation_accuracy'] = float(np.mean(later[seed]))
    runs.append((seed, results))
  return runs


@functools.cache
def _results(personalized: tuple[str, ...], **options: Any) -> dict[str, Any]:
  """Returns results of made_up.make_run. Most runs of the tests differ in the accuracies alone."""
  return made_up.make_run(personalized=dict.fromkeys(personalized, 0.0), **options)[0]


def typed(runs: Sequence[tuple[int, dict[str, Any]]]) -> Runs:
  """Returns what `make` returned as records, with the digests that finished_run.save writes."""
  return [(seed, in_json.typed(made_up.with_digest(results))) for seed, results in runs]


def constant(value: float, seeds: int = 3, clients: int = 6) -> list[list[float]]:
  """Returns float[seeds][clients], everywhere the value: its differences leave no doubt."""
  return np.full((seeds, clients), value).tolist()


def noisy(value: float, seeds: int = 3, clients: int = 6) -> list[list[float]]:
  """Returns float[seeds][clients] around the value, 0.1 above for every second client and 0.1 below for the others."""
  return (value + 0.1 * np.resize([1.0, -1.0], (seeds, clients))).tolist()


def scattered(value: float, seeds: int = 3, clients: int = 6) -> list[list[float]]:
  """Returns float[seeds][clients] around the value, 0.1 above under every second seed and 0.1 below under the others."""
  return (value + 0.1 * np.resize([[1.0], [-1.0]], (seeds, 1)) * np.ones(clients)).tolist()


def _overlap(clustering: dict[str, Any], ids: Sequence[str], rounds: tuple[int, int]) -> None:
  clusters = [list(ids[:-1]), list(ids[1:])]
  each = sum(map(len, clusters))
  trained = each * rounds[1]
  clustering.update(
    clusters=clusters,
    num_clusters=2,
    overlapping=True,
    memberships=each / len(ids),
    cost=made_up.cost(trained, 20, 10),
    recovery={
      name: scores | {'ari': None, 'nmi': None, 'omega': 1.0}
      for name, scores in clustering['recovery'].items()
    },
  )
  affordable = len(ids) * rounds[1] // each
  clustering['equal_cost'] = {
    'round': rounds[0] + affordable,
    'cost': made_up.cost(affordable * each, 20, 10),
    'evaluation': {'client_accuracy': clustering['evaluations']['own']['client_accuracy']},
  }
