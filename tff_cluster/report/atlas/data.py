"""What the page of an atlas knows: a comparison's runs, client by client, as one small JSON document.

  schema       int, SCHEMA
  answer       {headline: text, sentences: [text]} and
  alarms       [text], both as in comparison.json
  target       float, the target accuracy
  budgets      {budget: words}
  palette      [colour], of planted groups and of clusters
  contenders   [{name, kind, kinds [text], summaries: {budget: SUMMARY}, recovery: {truth: {measure, values [float], one a seed}}}]
  runs         [RUN], one a seed, ascending

  SUMMARY      over all seeds: mean, low, high (accuracy with its 95% interval), over_fedavg, over_local, over_fine_tuning and
               over_ditto: null, or
               mean, low and high of the difference. low and high are null for one client under one seed
  RUN          seed (int), clients [id], classes (int), labels int[clients][classes] (training rows),
               groups [{name, members [[client]], shares [[float]] or null}] (planted; null where nobody has parts),
               geometry {signature: GEOMETRY}, empty where the run has no distances,
               contenders [MEASURED], in the order above
  GEOMETRY     positions [[x, y]] (classical scaling; null for a client whose update is not finite, who has no neighbours),
               kept (share of the squared distances that the plane shows, null where all are zero), mean (distance of two
               clients), neighbours [[client]] and distances [[float]] (at most NEIGHBOURS, nearest first)
  MEASURED     budgets {budget: {accuracy [float, one a client], mean, worst_decile, at_target, harmed_fedavg,
               harmed_local, harmed_fine_tuning, harmed_ditto, passes and the parts of the cost (tff_cluster/base/cost.py)}},
               signature (text or null), num_clusters (int or null), memberships,
               clusters [[client]] or null, shares [[float, one a member]] or null (as much of each), colours [position in
               palette, null for a cluster that is left grey] or null, way (null but for a method that alternates with training,
               whose memberships are known: WAY), stages [{round, clusters, models}]: of a recursion the clusters after each round
               that split some, but the last; of a way the clients of each model after some rounds, and in `models` which these
               are, -1 for those of whom nothing is known yet
  WAY          start (text), first and last (rounds), names [text] and colours (as above), one a model, clients
               [[[round, [model]]]]: for each client its models from that round on

Clients are positions in `clients`. Accuracies and shares are from 0 to 1. Accuracies of single clients are rounded to
DECIMALS: two that differ by less count as equal on the page, which matters beyond 10,000 test rows a client. Distances and
positions have DIGITS digits.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.base.cost import Cost
from tff_cluster.experiment.result_parts import Clustering, Split
from tff_cluster.experiment.results import Results
from tff_cluster.report.atlas import ways
from tff_cluster.report.figures import base, ordering
from tff_cluster.scorecard import cluster_contents
from tff_cluster.scorecard.contenders import BUDGETS, REFERENCES, Contender, Measured, Runs

SCHEMA = 1
NEIGHBOURS = 8
DECIMALS, DIGITS = 4, 4
_TABLE = (
    'worst_decile', 'at_target', *(f'harmed_{kind}' for kind in REFERENCES),
    'passes', *(field.name for field in dataclasses.fields(Cost)),
)  # fmt: skip
Arrays = Mapping[int, Mapping[str, np.ndarray]]


def make(
  runs: Runs, arrays: Arrays, contenders: Sequence[Contender], document: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns the document of an atlas.

  Args:
    runs: Seed and results of each run, by ascending seed, see contenders.checked.
    arrays: By seed, the run's arrays.npz; a seed may be missing, and arrays that do not fit are left out.
    contenders: The rows of the comparison.
    document: comparison.json, see comparison/saved.py.
  """
  lines = {(line['contender'], line['seed'], line['budget']): line for line in document['lines']}
  kinds = {seed: _all_kinds(results) for seed, results in runs}
  most = max([1, *(number + 1 for seed, results in runs for number in _numbers(results, kinds[seed]))])
  palette = base.colours(min(most, base.MOST_COLOURS))
  return {
    'schema': SCHEMA,
    'answer': document['answer'],
    'alarms': document['alarms'],
    'target': document['target'],
    'budgets': {budget: BUDGETS[budget] for budget in contenders[0].runs[0].accuracy},
    'palette': palette,
    'contenders': [_contender(entry, len(runs)) for entry in document['contenders']],
    'runs': [
      _run(seed, results, arrays.get(seed, {}))
      | {
        'contenders': [
          _measured(contender, place, results, arrays.get(seed, {}), kinds[seed], len(palette), lines)
          for contender in contenders
        ]
      }
      for place, (seed, results) in enumerate(runs)
    ],
  }


def neighbours(distances: np.ndarray, count: int = NEIGHBOURS) -> np.ndarray:
  """Returns int64[clients, min(count, clients - 1)], the others by ascending distance, then by position.

  Args:
    distances: float[clients, clients].
    count: Of neighbours, at most.
  """
  apart = np.array(distances, np.float64)
  np.fill_diagonal(apart, np.inf)
  return np.argsort(apart, axis=1, kind='stable')[:, : min(count, len(apart) - 1)]


def stages(splits: Sequence[Split], clients: Sequence[str]) -> list[dict[str, Any]]:
  """Returns the clusters after each round in which a recursion split some, but the last, whose clusters are its leaves.

  Args:
    splits: The tests of a recursion.
    clients: All ids; clusters hold positions in them.
  """
  found: list[dict[str, Any]] = []
  clusters = [list(range(len(clients)))]
  taken = [split for split in splits if split.verdict == 'split']
  for at in sorted({split.round for split in taken}):
    for split in (split for split in taken if split.round == at):
      halves = _positions(split.halves or (), clients)
      i = clusters.index(sorted(halves[0] + halves[1]))
      clusters = [*clusters[:i], *halves, *clusters[i + 1 :]]
    found.append({'round': at, 'clusters': clusters})
  return found[:-1]


def _contender(entry: Mapping[str, Any], seeds: int) -> dict[str, Any]:
  return {
    'name': entry['name'],
    'kind': entry['kind'],
    'kinds': list(dict.fromkeys(entry['labels'].values())),
    'summaries': {
      budget: _interval(summary['accuracy'])
      | {
        name: None if summary[name] is None else _interval(summary[name]['interval'])
        for name in (f'over_{kind}' for kind in REFERENCES)
      }
      for budget, summary in entry['budgets'].items()
    },
    'recovery': {
      scores['truth']: {'measure': scores['measure'], 'values': [_rounded(v) for v in scores['values']]}
      for scores in entry['recovery']
      if len(scores['values']) == seeds
    },
  }


def _interval(interval: Mapping[str, float | None]) -> dict[str, float | None]:
  return {name: _rounded(interval[name], 6) for name in ('mean', 'low', 'high')}


def _run(seed: int, results: Results, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
  population = results.population
  signatures = [name.removeprefix('distances_') for name in arrays if name.startswith('distances_')]
  found = {s: _geometry(arrays, s, len(population.client_ids)) for s in sorted(signatures)}
  return {
    'seed': seed,
    'clients': population.client_ids,
    'classes': population.num_classes,
    'labels': population.label_counts,
    'groups': [_group(name, truth) for name, truth in population.truths.items()],
    'geometry': {signature: geometry for signature, geometry in found.items() if geometry is not None},
  }


def _group(name: str, truth: Any) -> dict[str, Any]:
  weights = np.asarray(truth, np.float64)
  members = [np.flatnonzero(row > 0) for row in weights]
  parts = [weights[g, who].round(DECIMALS).tolist() for g, who in enumerate(members)]
  whole = all(part == 1.0 for row in parts for part in row)
  return {'name': name, 'members': [who.tolist() for who in members], 'shares': None if whole else parts}


def _geometry(arrays: Mapping[str, np.ndarray], signature: str, clients: int) -> dict[str, Any] | None:
  distances, positions = arrays[f'distances_{signature}'], arrays.get(f'embedding_{signature}')
  shapes = (distances.shape, None if positions is None else positions.shape)
  if positions is None or shapes != ((clients, clients), (clients, 2)):
    return None
  there = np.flatnonzero(np.isfinite(positions).all(axis=1))
  apart, places = np.asarray(distances, np.float64)[np.ix_(there, there)], positions[there].astype(np.float64)
  if not len(there) or not np.isfinite(apart).all():
    return None

  def of_everybody(rows: np.ndarray, nothing: list[float] | None) -> list[Any]:
    found = dict(zip(there.tolist(), rows.tolist(), strict=True))
    return [found.get(client, nothing) for client in range(clients)]

  nearest, count = neighbours(apart), len(there)
  squares = float(np.square(apart).sum())
  # Of all pairs, each twice: sum |x_i - x_j|^2 = 2 n sum |x_i - mean|^2.
  shown = 2 * count * float(np.square(places - places.mean(axis=0)).sum())
  return {
    'positions': of_everybody(_digits(places), None),
    'kept': _rounded(min(shown / squares, 1.0)) if squares else None,
    'mean': float(_digits(np.array(apart.sum() / max(count * (count - 1), 1)))),
    'neighbours': of_everybody(there[nearest], []),
    'distances': of_everybody(_digits(np.take_along_axis(apart, nearest, axis=1)), []),
  }


def _measured(
  contender: Contender,
  place: int,
  results: Results,
  arrays: Mapping[str, np.ndarray],
  kinds: Mapping[str, np.ndarray],
  colours: int,
  lines: Mapping[tuple[str, int, str], Mapping[str, Any]],
) -> dict[str, Any]:
  run = contender.runs[place]
  found: dict[str, Any] = {
    'budgets': {
      budget: _at_budget(run, budget, lines[contender.each[0].name, run.seed, budget])
      for budget in run.accuracy
    },
    'signature': None,
    'num_clusters': run.num_clusters,
    'memberships': _rounded(run.memberships),
    'clusters': None,
    'shares': None,
    'colours': None,
    'way': None,
    'stages': [],
  }
  if contender.is_clustering:
    by_label = {clustering.label: clustering for clustering in results.clusterings}
    parts = [by_label[part.name] for part in contender.each]
    clients = results.population.client_ids
    found |= {
      'signature': parts[0].signature,
      'clusters': _positions(parts[0].clusters, clients),
      'colours': [int(kind) if kind < colours else None for kind in kinds[parts[0].label]],
      'shares': _shares(parts[0]),
      **_over_rounds(parts, arrays, clients, kinds, colours),
    }
  return found


def _over_rounds(
  parts: Sequence[Clustering],
  arrays: Mapping[str, np.ndarray],
  clients: Sequence[str],
  kinds: Mapping[str, np.ndarray],
  colours: int,
) -> dict[str, Any]:
  """Returns `stages` and `way` of a contender that stands for these clusterings: of the first that has any."""
  for part in parts:
    own = ways.read(part, arrays, len(clients))
    if own is not None:
      return ways.over_rounds(part, own, kinds[part.label], colours)
  return {'stages': stages(next((part.splits for part in parts if part.splits), ()), clients)}


def _at_budget(run: Measured, budget: str, line: Mapping[str, Any]) -> dict[str, Any]:
  return {
    'accuracy': run.accuracy[budget].round(DECIMALS).tolist(),
    'mean': _rounded(line['accuracy'], 6),
    **{name: _rounded(line[name], 6) for name in _TABLE},
  }


def _all_kinds(results: Results) -> dict[str, np.ndarray]:
  """Returns int64[clusters] by label, the colour of each cluster: its planted group's, else the next by size."""
  truths = list(results.population.truths.values())
  truth = np.asarray(truths[0], np.float64) if truths else np.zeros((0, 0))
  found = {'': np.arange(len(truth))}
  for clustering in results.clusterings:
    membership = cluster_contents.shares(results, clustering)
    kinds = ordering.matched_kinds(membership, truth) if len(truth) else np.full(len(membership), len(truth))
    others = np.flatnonzero(kinds >= len(truth))
    by_size = others[np.argsort(-membership[others].sum(axis=1), kind='stable')]
    kinds[by_size] = len(truth) + np.arange(len(by_size))
    found[clustering.label] = kinds
  return found


def _positions(groups: Sequence[Sequence[str]], clients: Sequence[str]) -> list[list[int]]:
  """Returns groups of ids as groups of positions in `clients`, ascending in each."""
  place = {client: k for k, client in enumerate(clients)}
  return [sorted(place[client] for client in group) for group in groups]


def _shares(clustering: Clustering) -> list[list[float]] | None:
  """Returns the members' shares in each cluster, in the order of its members; None where they are not told."""
  if clustering.shares is None:
    return None
  return [[round(share, DECIMALS) for share in row if share > 0.0] for row in clustering.shares]


def _numbers(results: Results, kinds: Mapping[str, np.ndarray]) -> list[int]:
  """Returns all colour numbers of a run, those of models that nobody has too."""
  of_models = [ways.kinds_of_models(c, kinds[c.label]) for c in results.clusterings]
  return [int(number) for some in (*map(np.ndarray.tolist, kinds.values()), *of_models) for number in some]


def _digits(values: np.ndarray) -> np.ndarray:
  """Returns the values rounded to DIGITS digits of the largest of them."""
  largest = float(np.abs(values).max(initial=0.0))
  return values if largest == 0.0 else values.round(DIGITS - 1 - int(np.floor(np.log10(largest))))


def _rounded(value: float | None, decimals: int = DECIMALS) -> float | int | None:
  return value if value is None or isinstance(value, int) else round(float(value), decimals)
