"""What a report says of malicious clients: what they did to the others, and whether clusters kept them apart."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base.words import percent, plural, series, signed
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.population import MALICIOUS
from tff_cluster.experiment.config import FEDAVG
from tff_cluster.experiment.result_parts import Sides
from tff_cluster.experiment.results import Results
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.new_clients_section import recovery_words
from tff_cluster.report.pages import Section, Table
from tff_cluster.scorecard import identical_clusterings

_ATTACKS = {
  'sign_flip': 'sends the negative of its update',
  'scaled': 'sends a multiple of its update',
  'label_flip': 'trains and validates on labels that are turned round',
  'nan': 'sends NaN',
}


def attack_words(data: DataConfig) -> str:
  """Returns what a malicious client does, 'sends the negative of its update (times 2)' for instance."""
  times = '' if data.attack_scale is None else f' (times {data.attack_scale:g})'
  return f'{_ATTACKS[data.attack]}{times}'


def isolation_words(beside: Mapping[str, float | None]) -> str:
  """Returns one sentence: which clusterings isolated the malicious clients, or which came nearest.

  Args:
    beside: By label, the share of honest clients that share a cluster with a malicious one; clusterings without one
      are not told.
  """
  told = {label: share for label, share in beside.items() if share is not None}
  if not told:
    return 'There is no clustering that could isolate them.'
  isolating = [label for label, share in told.items() if share == 0.0]
  if isolating:
    rest = len(told) - len(isolating)
    others = f'; {rest} of {plural(len(told), "clustering")} did not' if rest else ''
    return (
      f'{series(isolating)} isolated them: no honest client shares a cluster with a malicious one{others}.'
    )
  nearest = min(told, key=lambda label: told[label])
  words = f'with {nearest}' + (', the nearest' if len(told) > 1 else '')
  return (
    f'No clustering isolated them: {words}, {percent(told[nearest])} of the honest clients share a cluster with a '
    'malicious one.'
  )


def caution(gains: Mapping[str, float]) -> str:
  """Returns what a reader of means over all clients must know.

  Args:
    gains: By label of a clustering, how far the mean accuracy of honest clients is above theirs with FedAvg.
  """
  told = [f'{signed(100.0 * gain)} points with {label}' for label, gain in gains.items()]
  alone = f' The honest ones alone are beside FedAvg without clusters at {series(told)}.' if told else ''
  return f'Means over clients count the malicious ones too.{alone}'


def caution_of(results: Results) -> str:
  """Returns the same of a run; empty where no malicious client takes part."""
  about = results.malicious
  if about is None or not about.client_ids:
    return ''
  fedavg, honest = (
    about.baseline.honest_accuracy,
    {k: v.honest_accuracy for k, v in about.clusterings.items()},
  )
  return caution({k: v - fedavg for k, v in honest.items() if v is not None and fedavg is not None})


def malicious_section(run: FinishedRun) -> Section | None:
  """Returns honest and malicious clients apart, without clusters and under each clustering; None where all are honest."""
  about = run.results.malicious
  if about is None:
    return None
  fedavg, planted = about.baseline, np.asarray(run.results.population.truths[MALICIOUS])
  rows: list[Sequence[Any]] = [(FEDAVG, *_cells(fedavg, None), '–', '–', '–', f'{fedavg.dropped_updates:,}')]
  beside = {}
  for clustering in run.results.clusterings:
    parts = identical_clusterings.parts(clustering)
    found = about.clusterings[parts[0].label]
    # What the oracle keeps apart is no method's merit.
    if any(part.kind != 'oracle' for part in parts):
      beside[clustering.label] = found.honest_beside_malicious
    rows.append((
        clustering.label, *_cells(found, fedavg.honest_accuracy), f'{clustering.num_clusters:,}',
        percent(found.honest_beside_malicious), recovery_words(clustering.recovery[MALICIOUS], planted, clustering.members_tell), f'{found.dropped_updates:,}',
    ))  # fmt: skip
  header = (
      '', 'honest clients', 'against FedAvg', 'malicious clients', 'clusters', 'honest beside malicious', f'“{MALICIOUS}”',
      'dropped updates',
  )  # fmt: skip
  count = len(about.client_ids)
  data = {
    'count': count,
    'clients': len(run.client_ids),
    'attack': attack_words(run.results.config.data),
    'story': isolation_words(beside) if count else 'None of them takes part.',
    'means': Table(header, rows, range(1, len(header))),
  }
  return Section('Malicious clients', 'clusters.html', 'malicious', data)


def _cells(sides: Sides, fedavg: float | None) -> tuple[str, str, str]:
  """Returns the honest clients' accuracy, its difference to FedAvg's, and the malicious clients' accuracy."""
  honest = sides.honest_accuracy
  difference = '–' if honest is None or fedavg is None else signed(100.0 * (honest - fedavg))
  return percent(honest), difference, percent(sides.malicious_accuracy)
