"""What a report says of clients that took no part and were assigned to clusters from one local update."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base.words import percent, plural, score, signed
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.markup import Markup, table, tag
from tff_cluster.scorecard.intervals import SAME

HINDSIGHT = (
  'The best single cluster is known in hindsight only: it is the one whose model is right most often on the client’s test '
  'rows, which chose nothing. Regret is its accuracy minus the client’s own. It is never below zero for a client of one '
  'cluster; with several, the mean of their models can be better than each.'
)


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
    client_rounds: Local updates that assigned them.
    recovery: Scores by planted grouping of all clients, new ones among them.
  """

  own: np.ndarray
  fedavg: np.ndarray
  best: np.ndarray
  regret: np.ndarray
  with_best: float
  memberships: float
  fallbacks: int
  client_rounds: int
  recovery: Mapping[str, Mapping[str, float | None]]


def read_new_clients(results: Mapping[str, Any], clustering: Mapping[str, Any]) -> NewClients:
  """Reads what results.json says of the new clients of one clustering.

  Args:
    results: results.json of a run with new clients.
    clustering: One entry of results['clusterings'].
  """
  found = clustering['new_clients']
  each = np.asarray(found['cluster_accuracy'], np.float64)
  best = each.max(axis=0)
  held = [
    bool((each[clusters, client] >= best[client] - SAME).any())
    for client, clusters in enumerate(found['assigned'])
  ]
  return NewClients(
    own=np.asarray(found['client_accuracy'], np.float64),
    fedavg=np.asarray(results['new_clients']['fedavg']['client_accuracy'], np.float64),
    best=best,
    regret=np.asarray(found['regret'], np.float64),
    with_best=float(np.mean(held)),
    memberships=float(np.mean([len(clusters) for clusters in found['assigned']])),
    fallbacks=sum(found['fallback']),
    client_rounds=int(found['ledger']['client_rounds']),
    recovery=found['recovery'],
  )


def recovery_words(scores: Mapping[str, float | None]) -> str:
  """Returns 'ARI 0.93', or Omega where clusters or groups overlap."""
  ari = scores.get('ari')
  return f'Omega {score(scores.get("omega"))}' if ari is None else f'ARI {score(ari)}'


def new_clients_section(run: FinishedRun) -> list[Markup]:
  """Returns how the new clients fared under each clustering; nothing where every client took part."""
  about = run.results.get('new_clients')
  if about is None:
    return []
  clusterings = run.results['clusterings']
  found = {clustering['label']: read_new_clients(run.results, clustering) for clustering in clusterings}
  fedavg = float(np.mean(about['fedavg']['client_accuracy']))
  truths = list(about.get('truths') or {})
  rows: list[Sequence[Any]] = [('FedAvg without clusters', percent(fedavg), *['–'] * (8 + len(truths)))]
  for label, new in found.items():
    rows.append((
        label, percent(float(new.own.mean())), signed(100 * float((new.own - new.fedavg).mean())), percent(float(new.best.mean())),
        signed(100 * float(new.regret.mean())), signed(100 * float(new.regret.max())), percent(new.with_best), f'{new.memberships:.1f}',
        f'{new.fallbacks:,}', f'{new.client_rounds:,}', *(recovery_words(new.recovery[name]) for name in truths),
    ))  # fmt: skip
  header = (
      '', 'accuracy', 'against FedAvg', 'in hindsight', 'regret', 'worst', 'with the best', 'clusters', 'nowhere fit', 'updates',
      *(f'“{name}”' for name in truths),
  )  # fmt: skip
  count = len(about['client_ids'])
  # What the oracle attains is no method's merit.
  methods = {c['label']: found[c['label']] for c in clusterings if c['kind'] != 'oracle'}
  return [
      tag(
          'p', f'{plural(count, "client")} took no part in training or clustering. When all was done, each trained for one round '
          'from the model that the others’ signatures started from, and its own signature alone assigned it to clusters, by the rule of the '
          'method. All accuracies are on the new clients’ own test rows; differences and regrets are in points.',
      ),
      *([tag('p', tag('strong', _story(methods, fedavg)))] if methods else []),
      table(header, rows, numeric=range(1, len(header))),
      tag('p', HINDSIGHT, class_='note'),
      tag(
          'p', '“In hindsight” is the best single cluster, “with the best” are clients whose clusters hold the best one. “Nowhere fit” are clients that no cluster takes by '
          'the method’s own rule, because some member is further than the distance threshold; they are put where the farthest '
          'member is nearest; under the planted groups they are those of whose groups nobody took part. The last columns score the planted groups of all clients with the new ones in their clusters. The '
          'planted groups ask for no update, CFL for one at each split on the way.',
          class_='note',
      ),
  ]  # fmt: skip


def _story(found: Mapping[str, NewClients], fedavg: float) -> str:
  """Says which clusterings leave new clients better off than FedAvg's model, on average."""
  means = {label: float(new.own.mean()) for label, new in found.items()}
  best = max(means, key=lambda label: means[label])
  above = sum(mean > fedavg + SAME for mean in means.values())
  text = f'New clients have {percent(fedavg)} with FedAvg’s model and {percent(means[best])} with the clusters of {best}'
  if len(means) > 1:
    text += f', the highest of {len(means)}; {above} of {len(means)} clusterings leave them better off than FedAvg on average'
  return f'{text}.'
