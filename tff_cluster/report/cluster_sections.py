"""The sections of report.html about the clusters: recovery, each clustering, and what else could have been found."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tff_cluster.base.words import client, error, percent, plural, score, series
from tff_cluster.clustering.recovery import Recovery
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.report.experts_section import as_experts
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.pages import Cell, Section, Table
from tff_cluster.report.pictures import Picture
from tff_cluster.scorecard import identical_clusterings

_TEMPLATE = 'clusters.html'
_OPEN_UP_TO = 12
# Rows of a table of clusters; the smaller clusters are left out.
_MOST_CLUSTERS = 200
# Shown where either side overlaps.
_OVERLAPPING = {
  'onmi': 'ONMI',
  'bcubed_f': 'BCubed F',
  'bcubed_precision': 'precision',
  'bcubed_recall': 'recall',
}


def recovery_section(run: FinishedRun) -> Section:
  """Returns the recovery scores of every clustering against every planted grouping."""
  truths = run.truths
  pairs = [(c, truth) for c in run.results.clusterings for truth in truths]
  found = [c.recovery[truth] for c, truth in pairs]
  names, overlapping = _overlapping_scores(found, tuple(_OVERLAPPING))
  rows = [
      (
          c.label, plural(c.num_clusters, 'cluster') + (', overlapping' if c.overlapping else ''),
          f'{truth} ({len(truths[truth])})', score(scores.ari), score(scores.nmi), score(scores.omega),
          error(scores.share_error), *shown,
      )
      for (c, truth), scores, shown in zip(pairs, found, overlapping, strict=True)
  ]  # fmt: skip
  header = ('clustering', 'found', 'planted (groups)', 'ARI', 'NMI', 'Omega', 'share error', *names)
  data = {
    'scores': Table(header, rows, range(3, len(header))) if truths else None,
    'overlapping': bool(names),
    'not_scored': _not_scored(run),
  }
  return Section('Planted groups and found clusters', _TEMPLATE, 'recovery', data)


def clustering_section(
  run: FinishedRun, clustering: Clustering, figures: Callable[[str], Sequence[Picture]]
) -> Section:
  """Returns one clustering: notes, its clusters and its pictures.

  Args:
    run: The run.
    clustering: One of the run's.
    figures: Returns the pictures of a section, here of 'clustering LABEL'.
  """
  count = clustering.num_clusters
  memberships = f', {clustering.memberships:.1f} memberships a client' if clustering.overlapping else ''
  parts = identical_clusterings.parts(clustering)
  found_on = [
    f'{"" if len(parts) == 1 else part.label + ": "}found on the clients’ {part.basis}'
    + ('' if part.threshold is None else f', distance threshold {part.threshold:.4g}')
    for part in parts
  ]
  notes = [note if len(parts) == 1 else f'{part.label}: {note}' for part in parts for note in part.notes]
  # As trained, and as rules of Phase 3 make them.
  _, *made = clustering.cluster_scores
  words = results_lib.rule_words(run.results)
  header = (
      'cluster', 'members', 'planted groups among them', 'best validation', 'members’ test', *made, 'global test', *made,
      'client ids',
  )  # fmt: skip
  which = f'All {count}' if count <= _MOST_CLUSTERS else f'The {_MOST_CLUSTERS} largest of {count:,}'
  data = {
    'found': f'{plural(count, "cluster")}{memberships}; {"; ".join(found_on)}.',
    'notes': notes,
    'clusters': Table(header, _cluster_rows(run, clustering), (0, 1, *range(3, len(header) - 1))),
    'folded_as': which if count > _OPEN_UP_TO else '',
    'left_out': max(count - _MOST_CLUSTERS, 0),
    'file': f'clusterings/{parts[0].label}/clusters.json',
    'rules': [(name, words[name]) for name in made],
    'experts': as_experts(run, clustering),
    'pictures': figures(f'clustering {clustering.label}'),
  }
  return Section(f'Clusters of {clustering.label}', _TEMPLATE, 'clustering', data)


def candidates_section(run: FinishedRun, figures: Callable[[str], Sequence[Picture]]) -> Section:
  """Returns the clusterings of the same signatures that were not trained."""
  candidates = run.results.candidates
  truth = next(iter(run.truths), None)
  found = [None if truth is None or c.recovery is None else c.recovery[truth] for c in candidates]
  names, overlapping = _overlapping_scores(found, ('onmi', 'bcubed_f'))
  rows = []
  for c, scores, shown in zip(candidates, found, overlapping, strict=True):
    settings = ', '.join(f'{k}={v}' for k, v in c.parameters.items() if v is not None and k != 'method')
    rows.append((
        c.method, c.signature, Cell(settings, c.notes),
        '–' if c.num_clusters is None else c.num_clusters,
        '–' if c.memberships is None else f'{c.memberships:.1f}', score(c.silhouette),
        *(['–'] * 3 if scores is None else [score(scores.ari), score(scores.omega), error(scores.share_error)]), *shown,
    ))  # fmt: skip
  header = (
      'method', 'clusters the', 'parameters', 'clusters', 'memberships', 'silhouette', 'ARI', 'Omega', 'share error', *names,
  )  # fmt: skip
  against = f' {series(["ARI", "Omega", "the share error", *names])} are against “{truth}”.' if truth else ''
  data = {
    'scores': Table(header, rows, range(3, len(header))) if candidates else None,
    'against': against,
    'pictures': figures('candidates'),
  }
  return Section('Clusterings that were not trained', _TEMPLATE, 'candidates', data)


def composition(members: np.ndarray, truth: np.ndarray | None) -> str:
  """Returns how many of each planted group are among the members, most first: '5 of group 2, 1 of group 0'.

  Args:
    members: bool[clients] or int64[members], positions.
    truth: float[groups, clients], None where nothing was planted.
  """
  if truth is None:
    return '–'
  counts = (truth[:, members] > 0).sum(axis=1)
  order = [int(g) for g in np.argsort(-counts, kind='stable') if counts[g]]
  shown = ', '.join(f'{counts[g]} of group {g}' for g in order[:5])
  return shown + (f' and {len(order) - 5} more groups' if len(order) > 5 else '')


def _not_scored(run: FinishedRun) -> str:
  """Returns how many clients of which clusterings were not clustered; empty where all were."""
  counts = {c.label: len(c.excluded) for c in run.results.clusterings if c.excluded}
  return series([f'{plural(count, "client")} of {label}' for label, count in counts.items()])


def _overlapping_scores(
  found: Sequence[Recovery | None], names: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
  """Returns the headings and, for each recovery, the scores that are for overlapping clusterings.

  Args:
    found: Recovery scores, None where there are none.
    names: Keys of _OVERLAPPING, fields of Recovery.

  Returns:
    The headings, and as many words for each recovery, a dash where nothing overlaps; no headings where that is all.
  """
  values = [[getattr(s, name) if s is not None and s.ari is None else None for name in names] for s in found]
  if all(value is None for row in values for value in row):
    return [], [[] for _ in found]
  return [_OVERLAPPING[name] for name in names], [[score(value) for value in row] for row in values]


def _cluster_rows(run: FinishedRun, clustering: Clustering) -> list[tuple[Any, ...]]:
  matrix, scores = run.membership(clustering), clustering.cluster_scores.values()
  truth = next(iter(run.truths.values()), None)
  rows, found = [], clustering.clusters
  largest = sorted(range(len(found)), key=lambda i: -len(found[i]))[:_MOST_CLUSTERS]
  for i in sorted(largest):
    members = found[i]
    measured = [percent(each[i]) for each in (*(s.members for s in scores), *(s.global_test for s in scores))]
    rows.append((
        i, len(members), composition(matrix[i] > 0, truth), percent(clustering.best_validation[i]), *measured,
        Cell(', '.join(map(client, members)), look='members note'),
    ))  # fmt: skip
  return rows
