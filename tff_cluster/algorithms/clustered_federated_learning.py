"""Clustered Federated Learning (CFL): recursive bi-partitioning (Sattler et al. 2019, Algorithm 2).

A cluster, at first all clients, trains by FedAvg until it is stationary: the norm of the weighted mean update is below
eps_1 (Algorithm 1, line 8). If then the update of some client still has a norm of eps_2 or more (equation 5), the clients
disagree, and the cluster is split where the highest cosine similarity across is lowest (equation 6); each half goes on
from the stationary model by itself.

Departures and choices:
  The first split comes after Phase 1 at the earliest, and a half trains for `rounds_before_split` rounds before it may be
    split; in figure 3 both are 50. All clusters train on to the last round of Phase 2, so that a clustering by CFL
    stands beside others at equal rounds; Algorithm 2 ends where all clusters have stopped.
  Similarity and norms are those of the updates that made the last round (section 2, "latest transmitted updates"): they
    cost no message of their own. Line 8 takes the norm of their mean as it is applied, without updates that are not finite.
  A cluster that has stopped (equation 5) is not tested again. One whose split a guard forbids (min_cluster_size,
    min_similarity_gap, max_cross_similarity; all are off by default) is tested again after `rounds_before_split` rounds.
    Where the similarities of a cluster that has stopped are plainly of two kinds (clustering/bipartition.py:two_kinds), its test says
    so, with norms that would have split it; that decides nothing.
  A cluster of one client is not tested; in the last round nobody is.
  A client whose update is not finite (the paper has none) is left out of a test and goes with the larger half
    (clustering/excluded.py). A cluster that has fewer than two others is not tested then, but `rounds_before_split` rounds later.
"""

import collections
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tff_cluster import assignment as assignment_lib
from tff_cluster import config as config_lib
from tff_cluster import store as store_lib
from tff_cluster.algorithms import experiment as experiment_lib
from tff_cluster.run_folder import RunFolder

METHOD = 'bipartition'


@dataclasses.dataclass(frozen=True, eq=False)
class Segment:
  """A cluster, from the round in which it was made to its own split or to the last round.

  Attributes:
    members: int64[members], positions of the clients.
    start_round: The round whose model it starts from; 0 for all clients.
    end_round: The last round in which it trained.
    parent: Position of the cluster that it was split from; None for all clients.
  """

  members: np.ndarray
  start_round: int
  end_round: int
  parent: int | None


def is_missing(folder: RunFolder, clustering: config_lib.ClusteringConfig) -> bool:
  """Tells whether a clustering's recursion has not finished."""
  saved = (folder.splits(clustering.label), folder.similarities(clustering.label))
  return clustering.method == METHOD and not all(path.exists() for path in saved)


def run_recursion(experiment: experiment_lib.Experiment, clustering: config_lib.ClusteringConfig) -> None:
  """Trains and splits until the last round, and saves `clusterings/LABEL/splits.json` (its tests: SPLIT in tff_cluster/results.py)."""
  if not is_missing(experiment.folder, clustering):
    return
  with experiment.timed() as figures:
    segments, tests = _recursion(experiment, clustering)
    store_lib.save_json(
      experiment.folder.splits(clustering.label),
      {
        'tests': tests,
        'segments': [{**dataclasses.asdict(s), 'members': s.members.tolist()} for s in segments],
        'timing': figures(),
      },
    )


def _recursion(
  experiment: experiment_lib.Experiment, clustering: config_lib.ClusteringConfig
) -> tuple[list[Segment], list[dict[str, Any]]]:
  """Trains and splits; saves the similarities, and returns all clusters and all tests."""
  segments: list[Segment] = []
  tests: list[dict[str, Any]] = []
  matrices: list[np.ndarray] = []
  initial = experiment.trainer.computations.model.weights
  first = experiment.config.training.phase1_rounds
  waiting: collections.deque[tuple[np.ndarray, Any, int, int, int | None]] = collections.deque()
  waiting.append((experiment.everyone, initial, 0, first, None))
  while waiting:
    members, start, start_round, first_test, parent = waiting.popleft()
    halves, weights, found = _train(experiment, clustering, members, start, start_round, first_test, parent)
    end_round = found[-1][0]['round'] if halves else _last_round(experiment)
    segments.append(Segment(members, start_round, end_round, parent))
    experiment.asked += len(members) * (end_round - start_round)
    for test, matrix in found:
      tests.append(test)
      matrices.append(matrix)
    for half in halves:
      waiting.append(
        (half, weights, end_round, end_round + clustering.rounds_before_split, len(segments) - 1)
      )
  order = sorted(range(len(tests)), key=lambda i: (tests[i]['round'], tests[i]['positions']))
  store_lib.save_arrays(
    experiment.folder.similarities(clustering.label), {f'{k:03d}': matrices[i] for k, i in enumerate(order)}
  )
  return segments, [_named(experiment, tests[i]) for i in order]


def assignment(
  folder: RunFolder, label: str, client_ids: tuple[str, ...]
) -> assignment_lib.ClusterAssignment:
  """Returns the clusters that were split no further."""
  segments = _segments(folder, label)
  parents = {segment.parent for segment in segments}
  leaves = [segment for i, segment in enumerate(segments) if i not in parents]
  return assignment_lib.ClusterAssignment.from_clusters(
    [[client_ids[k] for k in leaf.members] for leaf in leaves], client_ids
  )


def excluded(folder: RunFolder, label: str) -> tuple[str, ...]:
  """Returns the clients that were left out of some test, because their updates were not finite."""
  tests = store_lib.load_json(folder.splits(label))['tests']
  out = {client_id for test in tests for client_id in test.get('excluded', ())}
  # The first test is of all clients, in their order.
  return tuple(i for i in (tests[0]['cluster'] if tests else ()) if i in out)


def notes(folder: RunFolder, label: str) -> list[str]:
  """Returns what a reader must know of a recursion."""
  tests = store_lib.load_json(folder.splits(label))['tests']
  told = []
  if not tests:
    told.append('no cluster became stationary (stationary_norm), so none was tested')
  kept = [test for test in tests if test['verdict'] == 'kept']
  if kept:
    told.append(f'{len(kept)} of {len(tests)} tests found a split that a guard forbids: {kept[-1]["reason"]}')
  told += [test['two_kinds']['words'] for test in tests if 'two_kinds' in test]
  if out := excluded(folder, label):
    from tff_cluster.clustering import excluded as excluded_lib

    told.append(excluded_lib.note_of_splits(out))
  return told


def trajectories(
  experiment: experiment_lib.Experiment, label: str, log: bool = True
) -> list[tuple[Segment, Any]]:
  """Returns every cluster of a finished recursion with its federated.trajectory.Outcome, which the store has.

  The outcomes of clusters that were split hold the model before their last round too.

  Args:
    experiment: The experiment.
    label: Which clustering.
    log: See Experiment.train.
  """
  segments = _segments(experiment.folder, label)
  parents = {segment.parent for segment in segments}
  found: list[tuple[Segment, Any]] = []
  for number, segment in enumerate(segments):
    if segment.parent is None:
      start = experiment.trainer.computations.model.weights
    else:
      start = found[segment.parent][1].weights[segment.start_round]
    # The store has the model before the last round of those that were split: the updates of that round split them.
    keep = (segment.end_round - 1,) if number in parents else ()
    outcome = experiment.train(
      f'{label}/segment_{number:03d}',
      segment.members,
      start,
      segment.start_round,
      segment.end_round,
      keep,
      log,
    )
    found.append((segment, outcome))
  return found


def _train(
  experiment: experiment_lib.Experiment,
  clustering: config_lib.ClusteringConfig,
  members: np.ndarray,
  start: Any,
  start_round: int,
  first_test: int,
  parent: int | None,
) -> tuple[list[np.ndarray], Any, list[tuple[dict[str, Any], np.ndarray]]]:
  """Trains a cluster until it is split or the rounds are over.

  Returns:
    The halves (none, or two arrays of positions), the model that they start from, and each test with the
    similarities float32[members, members], NaN for clients that were left out.
  """
  from tff_cluster.clustering import bipartition
  from tff_cluster.clustering import excluded as excluded_lib

  last = _last_round(experiment)
  tests: list[tuple[dict[str, Any], np.ndarray]] = []
  while True:
    begin = first_test if len(members) > 1 else last
    outcome = _until_stationary(experiment, clustering, members, start, start_round, begin)
    number = int(outcome.history.rounds[-1])
    if number == last:
      return [], None, tests
    everybodys, norms = _similarity(experiment, outcome.weights[number - 1], members, number)
    finite = np.isfinite(norms)
    if parent is None:
      excluded_lib.check(finite, experiment.population.client_ids)
    if np.sum(finite) < 2:
      first_test = number + clustering.rounds_before_split
      continue
    similarity, norms = everybodys[np.ix_(finite, finite)], norms[finite]
    test: dict[str, Any] = {
      'round': number, 'positions': members.tolist(), 'verdict': 'stopped', 'halves': None, 'cross_similarity': None,
      'similarity_gap': None, 'mean_update_norm': float(outcome.history.update_norm[-1]),
      'max_update_norm': float(norms.max()), 'mean_similarity': _mean_similarity(similarity), 'reason': '',
    }  # fmt: skip
    if not finite.all():
      test['excluded'] = members[~finite].tolist()
    tests.append((test, everybodys.astype(np.float32)))
    if norms.max() < clustering.stopping_norm:
      test.update(_stopped(similarity, members[finite], test, clustering))
      first_test = last
      continue
    split = bipartition.guarded(similarity, *bipartition.guards(clustering))
    sides = split.labels if finite.all() else excluded_lib.with_larger_half(split.labels, finite)
    halves = [members[sides == side] for side in (0, 1)]
    test.update(
      halves=[half.tolist() for half in halves], cross_similarity=split.cross_similarity, similarity_gap=split.gap
    )  # fmt: skip
    if not split.reason:
      test['verdict'] = 'split'
      return halves, outcome.weights[number], tests
    test.update(verdict='kept', reason=split.reason)
    first_test = number + clustering.rounds_before_split


def _stopped(
  similarity: np.ndarray, members: np.ndarray, test: dict[str, Any], clustering: config_lib.ClusteringConfig
) -> dict[str, Any]:
  """Returns why a cluster stopped, and what its similarities say against that (`two_kinds` of SPLIT), where they do."""
  from tff_cluster.clustering import bipartition

  reason = (
    f'no client’s update is longer than stopping_norm={clustering.stopping_norm:g}; '
    f'the longest is {test["max_update_norm"]:.3g}'
  )
  found = bipartition.two_kinds(similarity)
  if found is None:
    return {'reason': reason}
  halves = [members[found.labels == side].tolist() for side in (0, 1)]
  stationary, stopping = _splitting_norms(
    test['mean_update_norm'], test['max_update_norm'], clustering.stationary_norm
  )
  words = (
    f'{len(members)} clients were kept together after round {test["round"]} because of their norms, but the similarities of '
    f'their updates are plainly of two kinds: {len(halves[0])} and {len(halves[1])} clients have at most '
    f'{found.cross_similarity:.2g} across, and each of them a partner in its own half that is at least {found.gap:.2g} more similar. '
    f'With stationary_norm={stationary:g} and stopping_norm={stopping:g} they are split'
  )
  return {
    'reason': reason,
    'two_kinds': {
      'halves': halves,
      'cross_similarity': found.cross_similarity,
      'similarity_gap': found.gap,
      'stationary_norm': stationary,
      'stopping_norm': stopping,
      'words': words,
    },
  }


def _splitting_norms(mean_norm: float, longest: float, stationary_norm: float) -> tuple[float, float]:
  """Returns values of stationary_norm and stopping_norm that split where a test saw these norms.

  stopping_norm is a tenth below the longest update, as far as the mean update leaves room for stationary_norm, which is lowered to
  stopping_norm where it is above it: a cluster is stationary where its mean is short beside its updates.
  """
  stopping = max(0.9 * longest, math.sqrt(mean_norm * longest))
  return _told(min(stationary_norm, stopping)), _told(stopping)


def _told(norm: float) -> float:
  """Returns a norm to as many digits as a reader is told."""
  return float(f'{norm:.3g}')


def _until_stationary(
  experiment: experiment_lib.Experiment,
  clustering: config_lib.ClusteringConfig,
  members: np.ndarray,
  start: Any,
  start_round: int,
  first_test: int,
) -> Any:
  from tff_cluster.federated import trajectory

  last = _last_round(experiment)
  with experiment.progress.stage(f'{clustering.label}: {len(members)} clients', last - start_round):
    outcome = trajectory.run(
      experiment.trainer,
      experiment.store,
      experiment.settings,
      members,
      start,
      start_round,
      last,
      on_round=lambda number, figures: experiment.progress.update(
        accuracy=figures['validation_accuracy'], update_norm=figures['update_norm']
      ),
      stop=lambda number, norm: number >= first_test and norm < clustering.stationary_norm,
    )
  experiment.trained += outcome.client_rounds_trained
  return outcome


def _similarity(
  experiment: experiment_lib.Experiment, weights: Any, members: np.ndarray, number: int
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the cosine similarities float64[members, members] and the norms float64[members] of a round's updates.

  Those of an update that is not finite are NaN.
  """
  from tff_cluster.clustering import bipartition, signatures
  from tff_cluster.clustering import excluded as excluded_lib

  clients = [experiment.population.client_digests[k] for k in members]
  folder = experiment.store.artifact(
    'similarity',
    {
      'base': experiment.digest_of(weights),
      'round': number,
      'clients': clients,
      'settings': experiment.settings,
    },
  )
  path = folder / 'similarity.npz'
  experiment.asked += len(members)
  with experiment.store.working_on(folder):
    if path.exists():
      try:
        saved = store_lib.load_arrays(path)
        return saved['similarity'], saved['norms']
      except store_lib.DamagedFile as damage:
        store_lib.set_aside(path, damage)
    updates = np.empty((len(members), experiment.trainer.computations.model.num_parameters), np.float32)
    experiment.trainer.local_updates(
      weights, members, number, lambda position, update: np.copyto(updates[position], update)
    )
    experiment.trained += len(members)
    ids = tuple(experiment.population.client_ids[k] for k in members)
    norms = np.sqrt(np.square(updates, dtype=np.float64).sum(axis=1))
    finite = excluded_lib.finite_rows(updates)
    if finite.all():
      similarity = bipartition.similarities(signatures.Signatures(updates, ids))
    else:
      norms[~finite] = np.nan
      similarity = np.full((len(members), len(members)), np.nan)
      if finite.any():
        compared = signatures.Signatures.numbered(updates[finite])
        similarity[np.ix_(finite, finite)] = bipartition.similarities(compared)
    store_lib.save_arrays(path, {'similarity': similarity, 'norms': norms})
  return similarity, norms


def _mean_similarity(similarity: np.ndarray) -> float:
  """Returns the mean over pairs of different clients."""
  clients = len(similarity)
  return float((similarity.sum() - np.trace(similarity)) / (clients * (clients - 1)))


def _named(experiment: experiment_lib.Experiment, test: dict[str, Any]) -> dict[str, Any]:
  """Returns a test with ids in place of positions."""
  ids = experiment.population.client_ids

  def named(groups: Sequence[Sequence[int]]) -> list[list[str]]:
    return [[ids[k] for k in group] for group in groups]

  told = {key: value for key, value in test.items() if key != 'positions'}
  told |= {'cluster': [ids[k] for k in test['positions']]}
  told |= {'halves': named(test['halves']) if test['halves'] else None}
  if 'excluded' in test:
    told['excluded'] = [ids[k] for k in test['excluded']]
  if 'two_kinds' in test:
    told['two_kinds'] = test['two_kinds'] | {'halves': named(test['two_kinds']['halves'])}
  return told


def _segments(folder: RunFolder, label: str) -> list[Segment]:
  saved = folder.load_finished(folder.splits(label), 'clustering')['segments']
  return [
    Segment(np.array(s['members'], np.int64), s['start_round'], s['end_round'], s['parent']) for s in saved
  ]


def _last_round(experiment: experiment_lib.Experiment) -> int:
  training = experiment.config.training
  return training.phase1_rounds + training.phase2_rounds
