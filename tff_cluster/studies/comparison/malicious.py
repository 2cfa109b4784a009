"""Malicious clients in a comparison: what the honest ones have under each contender, and whether clusters isolate the others."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.words import percent
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.experiment.measured import Evaluation
from tff_cluster.experiment.result_parts import Sides
from tff_cluster.report.malicious_section import attack_words, caution, isolation_words
from tff_cluster.report.pages import Section, Table
from tff_cluster.scorecard.contenders import Contender, Runs, has_owners
from tff_cluster.scorecard.intervals import Interval, cautious_intervals
from tff_cluster.scorecard.paired_statistics import Difference, share_interval
from tff_cluster.studies.comparison import sections


@dataclasses.dataclass(frozen=True, eq=False)
class Harm:
  """What malicious clients do under one contender, over all seeds; FedAvg without clusters is one.

  Attributes:
    name: FEDAVG or the label of a clustering; of identical ones all their labels, see identical_clusterings.joined.
    is_oracle: Whether the clusters are the planted groups.
    honest: Mean accuracy of the honest clients, with its 95% interval over seeds and clients.
    malicious: Mean over seeds of the mean accuracy of the malicious clients.
    over_fedavg: Of the same honest client under the same seed, against FedAvg without clusters; None for FedAvg.
    beside: One a seed, the share of honest clients that share a cluster with a malicious one; empty for FedAvg.
    dropped: One a seed, updates that were not finite and left out.
  """

  name: str
  is_oracle: bool
  honest: Interval
  malicious: float
  over_fedavg: Difference | None
  beside: tuple[float, ...]
  dropped: tuple[int, ...]


def measure(runs: Runs, contenders: Sequence[Contender], samples: int = 10_000) -> list[Harm]:
  """Returns FedAvg and each clustering among the contenders; nothing unless every run has both kinds of clients.

  Args:
    runs: Seed and results of finished runs, by ascending seed, see contenders.checked.
    contenders: Those of the runs.
    samples: Bootstrap samples of an interval.
  """
  about = [results.malicious for _, results in runs if results.malicious is not None]
  if len(about) < len(runs):
    return []
  masks = [
    np.isin(results.population.client_ids, found.client_ids)
    for (_, results), found in zip(runs, about, strict=True)
  ]
  if not all(mask.any() and not mask.all() for mask in masks):
    return []

  def intervals(values: Sequence[np.ndarray]) -> list[Interval]:
    # The same draws for every contender, so that equal ones have equal intervals.
    rng = seeding.generator(runs[0][0], 'comparison of malicious clients')
    return cautious_intervals(values, rng, samples, clients=clients)

  def of_clients(evaluations: Sequence[Evaluation], chosen: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [
      np.asarray(evaluation.client_accuracy, np.float64)[mask]
      for evaluation, mask in zip(evaluations, chosen, strict=True)
    ]

  def harm(name: str, is_oracle: bool, evaluations: Sequence[Evaluation], found: Sequence[Sides]) -> Harm:
    own = of_clients(evaluations, honest)
    gains = [mine - fedavg for mine, fedavg in zip(own, references, strict=True)]
    return Harm(
      name=name,
      is_oracle=is_oracle,
      honest=share_interval(intervals(own)[0]),
      malicious=float(np.mean([of_seed.mean() for of_seed in of_clients(evaluations, masks)])),
      over_fedavg=None if name == FEDAVG else Difference.of(gains, *intervals(gains)),
      beside=tuple(f.honest_beside_malicious for f in found if f.honest_beside_malicious is not None),
      dropped=tuple(f.dropped_updates for f in found),
    )

  honest = [~mask for mask in masks]
  clients: list[list[str]] | None = None
  if has_owners(runs[0][1]):
    clients = [
      np.asarray(r.population.client_ids)[mask].tolist() for (_, r), mask in zip(runs, honest, strict=True)
    ]
  baselines = [results.baseline.evaluation for _, results in runs]
  references = of_clients(baselines, honest)
  harms = [harm(FEDAVG, False, baselines, [a.baseline for a in about])]
  for contender in contenders:
    if contender.is_clustering:
      label = contender.each[0].name
      evaluations = [results_lib.own(results.clustering(label)) for _, results in runs]
      found = [a.clusterings[label] for a in about]
      harms.append(harm(contender.name, contender.kind == 'oracle', evaluations, found))
  return harms


def caution_of(found: Sequence[Harm]) -> str:
  """Returns what a reader of means over all clients must know."""
  return caution(
    {each.name: each.over_fedavg.interval.mean for each in found if each.over_fedavg is not None}
  )


def section(found: Sequence[Harm], runs: Runs) -> Section | None:
  """Returns the answer and the table of all contenders; None without malicious clients."""
  if not found:
    return None
  rows = [
    (
      harm.name,
      sections.mean_cell(harm.honest, percent),
      '–' if harm.over_fedavg is None else sections.difference_cell(harm.over_fedavg),
      percent(harm.malicious),
      percent(float(np.mean(harm.beside))) if harm.beside else '–',
      f'{harm.beside.count(0.0)} of {len(harm.beside)}' if harm.beside else '–',
      ', '.join(f'{count:,}' for count in harm.dropped),
    )
    for harm in found
  ]
  header = (
      '', 'honest clients', 'against FedAvg', 'malicious clients', 'honest beside malicious', 'seeds isolated', 'dropped updates'
  )  # fmt: skip
  # Isolated is what is isolated under every seed; the oracle is no method.
  worst = {harm.name: max(harm.beside) for harm in found if harm.beside and not harm.is_oracle}
  means = {harm.name: float(np.mean(harm.beside)) for harm in found if harm.name in worst}
  told = worst if 0.0 in worst.values() else means
  data = {
    'counts': sorted(
      {len(results.malicious.client_ids) for _, results in runs if results.malicious is not None}
    ),
    'attack': attack_words(runs[0][1].config.data),
    'story': isolation_words(told),
    'means': Table(header, rows, range(1, len(header))),
  }
  return Section('Malicious clients', sections.TEMPLATE, 'malicious', data)


def document(found: Sequence[Harm]) -> list[Mapping[str, Any]] | None:
  """Returns `malicious` of comparison.json; None without malicious clients."""
  if not found:
    return None
  return [
    {
      'contender': harm.name,
      'honest': dataclasses.asdict(harm.honest),
      'malicious': harm.malicious,
      'over_fedavg': harm.over_fedavg and harm.over_fedavg.to_json(),
      'honest_beside_malicious': list(harm.beside),
      'dropped_updates': list(harm.dropped),
    }
    for harm in found
  ]
