"""What a run has to say to the paper's claims, as plain numbers by name."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tff_cluster.papers import rohith2020


@dataclasses.dataclass(frozen=True)
class Evidence:
  """The numbers that claims are checked against, all from 0 to 1 (see `quantities`).

  Attributes:
    phase1: 'global', 'mean' and 'highest' of the global model at the end of Phase 1.
    baseline: The same of the unclustered FedAvg at equal rounds.
    methods: Quantities by method; the clustering nearest to the paper stands for its method.
    labels: What the run calls these clusterings.
    departures: In what each of them differs from the paper's, one phrase each.
  """

  phase1: Mapping[str, float]
  baseline: Mapping[str, float]
  methods: Mapping[str, Mapping[str, float]]
  labels: Mapping[str, str]
  departures: Mapping[str, list[str]]


def quantities(results: Mapping[str, Any], clustering: Mapping[str, Any]) -> dict[str, float]:
  """Returns the quantities of one clustering that have a counterpart in Rohith et al. 2020.

  phase1_global, average_global, weighted_global: accuracies on the global test set (table 3).
  highest, share_at_highest: over clients that use the blended cluster models, which is how section 7.2
  describes the update of the clients ("the average of the cluster weights it belongs to and all other
  clusters"). own_*: the same, and means over clients, with every client's own model after Phase 2.
  members_*, global_*: means over clusters of the accuracy of the clusters' models, unblended and blended
  with the average of all, on their members' test rows and on the global test set (section 6.3).
  """
  evaluations = clustering['evaluations']
  own, blended = evaluations['own']['clients'], evaluations['blended']['clients']
  return {
    'phase1_global': results['phase1']['evaluation']['global']['accuracy'],
    'average_global': evaluations['average']['global']['accuracy'],
    'weighted_global': evaluations['weighted']['global']['accuracy'],
    'highest': blended['highest_client_accuracy'],
    'share_at_highest': blended['share_at_highest'],
    **{
      f'{where}_{kind}': float(np.mean(clustering['cluster_scores'][kind][where]))
      for where in ('members', 'global')
      for kind in ('unblended', 'blended')
    },
    'own_highest': own['highest_client_accuracy'],
    'own_share_at_highest': own['share_at_highest'],
    'own_mean': own['mean_client_accuracy'],
  }


def gather(results: Mapping[str, Any]) -> Evidence:
  """Returns the evidence of a run."""
  chosen: dict[str, Mapping[str, Any]] = {}
  for clustering in sorted(results['clusterings'], key=distance_from_paper):
    chosen.setdefault(clustering['method'], clustering)
  return Evidence(
    phase1=_stage(results['phase1']),
    baseline=_stage(results['baseline']),
    methods={method: quantities(results, clustering) for method, clustering in chosen.items()},
    labels={method: clustering['label'] for method, clustering in chosen.items()},
    departures={method: paper_differences(clustering) for method, clustering in chosen.items()},
  )


def paper_differences(clustering: Mapping[str, Any]) -> list[str]:
  """Returns in what a clustering's parameters differ from the paper's, one phrase each."""
  return rohith2020.departures(clustering)


def distance_from_paper(clustering: Mapping[str, Any]) -> int:
  """Returns in how many parameters a clustering differs from the paper's (sorts the nearest first)."""
  return len(paper_differences(clustering))


def _stage(stage: Mapping[str, Any]) -> dict[str, float]:
  evaluation = stage['evaluation']
  accuracy = np.asarray(evaluation['client_accuracy'], np.float64)
  return {
    'global': evaluation['global']['accuracy'],
    'mean': float(accuracy.mean()),
    'highest': float(accuracy.max()),
  }
