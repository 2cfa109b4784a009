"""New clients in a comparison: whether the clusters that they are assigned to serve them better than FedAvg's model."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.grouping import by_key
from tff_cluster.base.words import percent, score, signed
from tff_cluster.clustering.recovery import summed_up
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.report.new_clients_section import NewClients, read_new_clients
from tff_cluster.report.pages import Section, Table
from tff_cluster.scorecard import identical_clusterings
from tff_cluster.scorecard.claims import Finding
from tff_cluster.scorecard.contenders import ROUNDS, Contender, Runs, has_owners
from tff_cluster.scorecard.intervals import Interval, cautious_intervals
from tff_cluster.scorecard.paired_statistics import Difference
from tff_cluster.studies.comparison import sections
from tff_cluster.studies.comparison.verdicts import Check, of_families


@dataclasses.dataclass(frozen=True, eq=False)
class Joining:
  """New clients under one clustering, over all seeds.

  Attributes:
    name: Label of the clustering; of identical ones to which new clients are assigned alike all their labels, see identical_clusterings.joined.
    is_oracle: Whether the clusters are the planted groups and nothing else.
    runs: One a seed, by ascending seed.
    accuracy: Mean accuracy, with its 95% interval over seeds and clients.
    over_fedavg: Against the model of FedAvg without clusters, of the same new client under the same seed.
    regret: Mean regret, with its interval.
    members_tell: False where under any seed every client is in every one of several clusters, see Clustering.members_tell.
  """

  name: str
  is_oracle: bool
  runs: tuple[NewClients, ...]
  accuracy: Interval
  over_fedavg: Difference
  regret: Interval
  members_tell: bool = True


def measure(runs: Runs, contenders: Sequence[Contender], samples: int = 10_000) -> list[Joining]:
  """Returns one entry for each clustering among the contenders; none where the runs have no new clients.

  Args:
    runs: Seed and results of finished runs, by ascending seed, see contenders.checked.
    contenders: Those of the runs. What is one contender is one entry, unless its clusterings assign new clients otherwise.
    samples: Bootstrap samples of an interval.
  """
  about = [results.new_clients for _, results in runs if results.new_clients is not None]
  if len(about) < len(runs):
    return []
  clients = [new.client_ids for new in about] if has_owners(runs[0][1]) else None

  def intervals(values: Sequence[np.ndarray]) -> list[Interval]:
    # The same draws for every clustering, so that equal ones have equal intervals.
    rng = seeding.generator(runs[0][0], 'comparison of new clients')
    return cautious_intervals(values, rng, samples, clients=clients)

  found = []
  for same in (
    same for contender in contenders if contender.is_clustering for same in _alike(contender, runs)
  ):
    of_runs = tuple(read_new_clients(results, results.clustering(same[0].name)) for _, results in runs)
    gains = [new.own - new.fedavg for new in of_runs]
    difference = Difference.of(gains, *intervals(gains))
    found.append(
      Joining(
        identical_clusterings.joined(part.name for part in same),
        all(part.kind == 'oracle' for part in same),
        of_runs,
        intervals([new.own for new in of_runs])[0],
        difference,
        intervals([new.regret for new in of_runs])[0],
        all(run.members_tell for part in same for run in part.runs),
      )
    )
  return found


def _alike(contender: Contender, runs: Runs) -> list[list[Contender]]:
  """Returns the clusterings that a contender stands for, together those under which new clients fare alike in every seed."""

  def fate(part: Contender) -> Hashable:
    every = (results.clustering(part.name).new_clients for _, results in runs)
    return tuple((str(new.assigned), str(new.client_accuracy)) for new in every if new is not None)

  return [*by_key(contender.each, fate).values()]


def _verdicts(found: Sequence[Joining]) -> dict[str, str]:
  """Returns the verdict of every clustering against FedAvg's model, by name; planted groups are judged by themselves."""
  families = [
    {joining.name: joining.over_fedavg for joining in found if joining.is_oracle == planted}
    for planted in (False, True)
  ]
  return of_families(families)


def make_checks(found: Sequence[Joining]) -> list[Check]:
  """Returns for each clustering whether it helps new clients, against FedAvg's model."""
  verdicts = _verdicts(found)
  return [
    Check(
      f'The clusters that {joining.name} assigns a new client to, against FedAvg’s model',
      'new clients',
      (ROUNDS,),
      Finding(
        verdicts[joining.name],
        joining.over_fedavg.words,
        f'{percent(joining.over_fedavg.harmed)} of the new clients are worse off than with FedAvg',
      ),
    )
    for joining in found
  ]


def section(found: Sequence[Joining]) -> Section | None:
  """Returns the table of all clusterings; None without new clients."""
  if not found:
    return None
  first = found[0].runs
  fedavg = float(np.mean([new.fedavg.mean() for new in first]))
  truths = list(first[0].recovery)
  rows: list[Sequence[Any]] = [(FEDAVG, percent(fedavg), *['–'] * (6 + len(truths)))]
  verdicts = _verdicts(found)
  for joining in found:
    runs = joining.runs
    rows.append((
        joining.name, sections.mean_cell(joining.accuracy, percent),
        sections.difference_cell(joining.over_fedavg, verdict=verdicts[joining.name]), percent(joining.over_fedavg.harmed),
        percent(float(np.mean([new.best.mean() for new in runs]))),
        sections.mean_cell(joining.regret, _points),
        _points(max(float(new.regret.max()) for new in runs)),
        f'{np.mean([new.memberships for new in runs]):.1f}',
        *(_mean_recovery(joining, name) for name in truths),
    ))  # fmt: skip
  header = (
      '', 'accuracy', 'against FedAvg', 'harmed', 'in hindsight', 'regret', 'worst', 'clusters',
      *(f'“{name}”' for name in truths),
  )  # fmt: skip
  data = {
    'counts': sorted({len(new.own) for new in first}),
    'means': Table(header, rows, range(1, len(header))),
  }
  return Section('New clients', sections.TEMPLATE, 'new_clients', data)


def document(found: Sequence[Joining]) -> list[Mapping[str, Any]] | None:
  """Returns `new_clients` of comparison.json; None without new clients."""
  if not found:
    return None
  return [
    {
      'clustering': joining.name,
      'accuracy': dataclasses.asdict(joining.accuracy),
      'over_fedavg': joining.over_fedavg.to_json(),
      'regret': dataclasses.asdict(joining.regret),
      'seeds': [
        {
          'clients': len(new.own),
          'accuracy': float(new.own.mean()),
          'fedavg': float(new.fedavg.mean()),
          'best': float(new.best.mean()),
          'worst_regret': float(new.regret.max()),
          'with_best': new.with_best,
          'memberships': new.memberships,
          'fallbacks': new.fallbacks,
          'cost': new.cost.to_json(),
          'recovery': {name: scores.to_json() for name, scores in new.recovery.items()},
        }
        for new in joining.runs
      ],
    }
    for joining in found
  ]


def _points(share: float) -> str:
  return signed(100.0 * share)


def _mean_recovery(joining: Joining, truth: str) -> str:
  """Returns the mean over seeds of the score that tells how well planted groups were found under all of them."""
  scores, truths = zip(*((new.recovery[truth], new.truths[truth]) for new in joining.runs), strict=True)
  measure, values = summed_up(scores, truths, joining.members_tell)
  return f'{score(float(np.mean(values)))} ({measure})'
