"""What a report says of clients that took no part and were assigned to clusters from one local update."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base.cost import Cost
from tff_cluster.base.words import percent, score, signed
from tff_cluster.clustering.recovery import Recovery, summed_up
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.experiment.results import Results
from tff_cluster.report import costs
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.pages import Section, Table
from tff_cluster.scorecard.intervals import SAME


@dataclasses.dataclass(frozen=True, eq=False)
class NewClients:
  """New clients under one clustering.

  Attributes:
    own: float[new], accuracy with the mean of the models of their clusters.
    fedavg: float[new], with the model of FedAvg without clusters.
    best: float[new], with the best single cluster's model, in hindsight.
    regret: float[new], best minus own.
    with_best: Share whose clusters hold one that is best in hindsight.
    memberships: Mean number of their clusters.
    fallbacks: How many no cluster took by the method's own rule.
    cost: Of what assigned them.
    recovery: Scores by planted grouping of all clients, new ones among them.
    truths: These groups, float[groups, clients].
  """

  own: np.ndarray
  fedavg: np.ndarray
  best: np.ndarray
  regret: np.ndarray
  with_best: float
  memberships: float
  fallbacks: int
  cost: Cost
  recovery: Mapping[str, Recovery]
  truths: Mapping[str, np.ndarray]


def read_new_clients(results: Results, clustering: Clustering) -> NewClients:
  """Reads what results.json says of the new clients of one clustering.

  Args:
    results: Of a run with new clients.
    clustering: One of the run's.
  """
  found, about = clustering.new_clients, results.new_clients
  assert found is not None and about is not None
  each = np.asarray(found.cluster_accuracy, np.float64)
  best = each.max(axis=0)
  held = [
    bool((each[clusters, client] >= best[client] - SAME).any())
    for client, clusters in enumerate(found.assigned)
  ]
  return NewClients(
    own=np.asarray(found.client_accuracy, np.float64),
    fedavg=np.asarray(about.fedavg.client_accuracy, np.float64),
    best=best,
    regret=np.asarray(found.regret, np.float64),
    with_best=float(np.mean(held)),
    memberships=float(np.mean([len(clusters) for clusters in found.assigned])),
    fallbacks=sum(found.fallback),
    cost=found.cost,
    recovery=found.recovery,
    truths={
      name: np.concatenate([results.population.truths[name], about.truths[name]], axis=1)
      for name in found.recovery
    },
  )


def recovery_words(scores: Recovery, truth: np.ndarray, members_tell: bool = True) -> str:
  """Returns 'ARI 0.93', or another score where that tells nothing of these groups, float[groups, clients], see summed_up."""
  measure, (value,) = summed_up([scores], [truth], members_tell)
  return f'{measure} {score(value)}'


def new_clients_section(run: FinishedRun) -> Section | None:
  """Returns how the new clients fared under each clustering; None where every client took part."""
  about = run.results.new_clients
  if about is None:
    return None
  clusterings = run.results.clusterings
  found = {clustering.label: read_new_clients(run.results, clustering) for clustering in clusterings}
  fedavg = float(np.mean(about.fedavg.client_accuracy))
  truths, tell = list(about.truths), {clustering.label: clustering.members_tell for clustering in clusterings}
  rows: list[Sequence[Any]] = [(FEDAVG, percent(fedavg), *['–'] * (7 + len(truths)))]
  for label, new in found.items():
    rows.append((
        label, percent(float(new.own.mean())), signed(100 * float((new.own - new.fedavg).mean())), percent(float(new.best.mean())),
        signed(100 * float(new.regret.mean())), signed(100 * float(new.regret.max())), percent(new.with_best), f'{new.memberships:.1f}',
        f'{new.fallbacks:,}', *(recovery_words(new.recovery[name], new.truths[name], tell[label]) for name in truths),
    ))  # fmt: skip
  header = (
      '', 'accuracy', 'against FedAvg', 'in hindsight', 'regret', 'worst', 'with the best', 'clusters', 'nowhere fit',
      *(f'“{name}”' for name in truths),
  )  # fmt: skip
  spent = [(label, *costs.cells([new.cost])) for label, new in found.items()]
  # What the oracle attains is no method's merit.
  methods = {c.label: found[c.label] for c in clusterings if c.kind != 'oracle'}
  data = {
    'count': len(about.client_ids),
    'story': _story(methods, fedavg) if methods else '',
    'means': Table(header, rows, range(1, len(header))),
    'costs': Table(
      ('', *costs.HEADER), spent, range(1, len(costs.HEADER) + 1), 'What it cost to assign them'
    ),
  }
  return Section('New clients', 'clusters.html', 'new_clients', data)


def _story(found: Mapping[str, NewClients], fedavg: float) -> str:
  """Says which clusterings leave new clients better off than FedAvg's model, on average."""
  means = {label: float(new.own.mean()) for label, new in found.items()}
  best = max(means, key=lambda label: means[label])
  above = sum(mean > fedavg + SAME for mean in means.values())
  text = f'New clients have {percent(fedavg)} with FedAvg’s model and {percent(means[best])} with the clusters of {best}'
  if len(means) > 1:
    text += f', the highest of {len(means)}; {above} of {len(means)} clusterings leave them better off than FedAvg on average'
  return f'{text}.'
