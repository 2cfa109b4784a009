"""Clustered Federated Learning (Sattler et al. 2019): clusters are split in two while they train.

A cluster, at first all clients, trains by FedAvg until it is stationary: the norm of the weighted mean update is below
eps_1 (Algorithm 1, line 8). If then the update of some client still has a norm of eps_2 or more (equation 5), the clients
disagree, and the cluster is split where the highest cosine similarity across is lowest (equation 6, clustering/halves.py);
each half goes on from the stationary model by itself (Algorithm 2).

Departures and choices:
  The first split comes after Phase 1 at the earliest, and a half trains for `rounds_before_split` rounds before it may be
    split; in figure 3 both are 50. All clusters go on training to the last round of Phase 2, so that a clustering by CFL
    stands beside others at equal rounds; Algorithm 2 ends where all clusters have stopped.
  Similarity and norms are those of the updates that made the last round (section 2, "latest transmitted updates"): they
    cost no message of their own. Line 8 takes the norm of their mean as it is applied, without updates that are not finite.
  A cluster that has stopped (equation 5) is not tested again. One whose split a guard forbids is tested again after
    `rounds_before_split` rounds. Where the similarities of a cluster that has stopped are plainly of two kinds
    (`halves.two_kinds`), its test says so, with norms that would have split it; that decides nothing.
  A cluster of one client is not tested; in the last round nobody is.
  A client whose update is not finite (the paper has none) is left out of a test and goes with the larger half
    (clustering/diverged_clients.py). A cluster that has fewer than two others is not tested then, but `rounds_before_split` rounds later.

Vectors alone (`phases.clustering --signatures_file`) are split once, without asking whether they are to be split at all
(eq. 5), which is a question to the training. Newcomers go down the tree of splits, at each to the half with the client
whose update is most similar: an idea of the authors of CFL, in a longer paper than the one whose split this is.
"""

import collections
import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tff_cluster.base import words as words_lib
from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.fields import option
from tff_cluster.base.types import Weights
from tff_cluster.clustering import halves as halves_lib
from tff_cluster.clustering.assignment import ClusterAssignment
from tff_cluster.clustering.method import Evidence, Method, Newcomers
from tff_cluster.clustering.method_options import NoOptions
from tff_cluster.clustering.outcome import Joined, Outcome
from tff_cluster.clustering.recursion import Federation, Recursion, Segment, Test, Trained, TwoKinds


@dataclasses.dataclass(frozen=True)
class Options(NoOptions):
  """The options of CFL."""

  stationary_norm: float = option(
    0.4,
    "eps_1 of CFL: a cluster's training is stationary once the norm of the weighted mean update is below it.",
    above=0.0,
    of_runs=True,
  )
  stopping_norm: float = option(
    1.6,
    "eps_2 of CFL: a stationary cluster stays whole if the norm of every client's update is below it.",
    above=0.0,
    of_runs=True,
  )
  rounds_before_split: int = option(
    10,
    'Rounds that a cluster made by a split trains before it may be split itself; the first split may come after Phase 1.',
    at_least=1,
    of_runs=True,
  )
  min_cluster_size: int = option(
    1, 'Split only if both halves have so many clients; 1, as in the paper: always.', at_least=1
  )
  min_similarity_gap: float = option(
    0.0,
    'Split only if every client is by so much more similar to some client of its half than any two clients across are; '
    '0, as in the paper: always.',
    at_least=0.0,
    at_most=2.0,
  )
  max_cross_similarity: float = option(
    1.0,
    'Split only if no two clients across the halves have a higher cosine similarity; 1, as in the paper: always.',
    at_least=-1.0,
    at_most=1.0,
  )

  @property
  def guards(self) -> tuple[int, float, float]:
    """The guards, in the order of `halves.guarded`."""
    return self.min_cluster_size, self.min_similarity_gap, self.max_cross_similarity


class Bipartition(Method[Options]):
  """The recursion of CFL; of vectors alone, its first split."""

  name = 'bipartition'
  title = 'bipartition'
  options_type = Options
  approach = 'Recursive bi-partition'
  one_cluster = 'no split was made, so this is FedAvg gone on, not a clustering'

  def check_experiment(
    self, options: Options, num_clients: int, cohort_fraction: float, words: str = ''
  ) -> None:
    """Raises InputError unless all clients train in every round."""
    if cohort_fraction < 1.0:
      raise InputError(
        f'{argument("cohort_fraction", cohort_fraction)}: bipartition compares the updates of all clients of a round; it needs 1.0'
      )

  def cluster(self, options: Options, evidence: Evidence) -> Outcome:
    """Returns the two halves of eq. 6, or one cluster where a guard forbids them; splits once, without training."""
    signatures = evidence.signatures
    everybody = ClusterAssignment.from_labels(
      np.zeros(signatures.num_clients, np.int64), signatures.client_ids
    )
    if signatures.num_clients == 1:
      figures = {'cross_similarity': None, 'similarity_gap': None}
      return Outcome(everybody, notes=('not split: there is one client',), figures=figures)
    split = halves_lib.guarded(halves_lib.similarities(signatures), *options.guards)
    sizes = np.bincount(split.labels)
    notes = [
      f'halves of {sizes[0]} and {words_lib.plural(sizes[1], "client")}: the cross similarity (the highest of two clients across) is '
      f'{split.cross_similarity:.4g}, the similarity gap {split.gap:.4g}'
    ]
    if split.reason:
      notes.append(f'not split: {split.reason}')
    return Outcome(
      everybody if split.reason else ClusterAssignment.from_labels(split.labels, signatures.client_ids),
      notes=tuple(notes),
      figures={'cross_similarity': split.cross_similarity, 'similarity_gap': split.gap},
    )

  def rounds(self, options: Options, federation: Federation) -> Recursion:
    """Trains and splits until the last round."""
    segments: list[Segment] = []
    tests: list[tuple[Test, np.ndarray]] = []
    waiting: collections.deque[tuple[np.ndarray, Weights, int, int, int | None]] = collections.deque()
    everyone = np.arange(len(federation.client_ids))
    waiting.append((everyone, federation.initial, 0, federation.first_round, None))
    while waiting:
      members, start, start_round, first_test, parent = waiting.popleft()
      halves, trained, found = _train(options, federation, members, start, start_round, first_test)
      segments.append(Segment(members.tolist(), start_round, trained.round, parent))
      tests += found
      first_test = trained.round + options.rounds_before_split
      for half in halves:
        waiting.append((half, trained.after, trained.round, first_test, len(segments) - 1))
    position = {client_id: k for k, client_id in enumerate(federation.client_ids)}
    return Recursion(segments, sorted(tests, key=lambda test: (test[0].round, position[test[0].cluster[0]])))

  def join(self, options: Options, newcomers: Newcomers) -> Joined:
    """Returns the ends of the newcomers' ways down the tree of splits.

    One whose update is not finite is on the larger side of a split, and that is told as a fallback.
    """
    from tff_cluster.clustering import diverged_clients
    from tff_cluster.clustering.cross_distances import cross_distances

    tree, assignment = newcomers.tree, newcomers.assignment
    assert tree is not None
    fallback = np.zeros(tree.num_newcomers, bool)

    def similarity(node: int, reached: np.ndarray) -> list[np.ndarray]:
      arriving = tree.arriving(node, reached)
      finite = diverged_clients.finite_rows(arriving)
      arriving[~finite] = 0.0
      fallback[reached[~finite]] = True
      halves = []
      sides = [np.array(segment.members) for segment in tree.segments if segment.parent == node]
      for half in sides:
        updates = tree.sent(node, half)
        if not (known := diverged_clients.finite_rows(updates)).all():
          updates = updates[known]
        halves.append(1.0 - cross_distances(updates, arriving, 'cosine'))
      # Higher than any cosine: who has no direction is on the larger side.
      halves[int(np.argmax([len(half) for half in sides]))][:, ~finite] = 2.0
      return halves

    ends = descend([segment.parent for segment in tree.segments], tree.num_newcomers, similarity)
    members = {tuple(assignment.members(row)): row for row in range(assignment.num_clusters)}
    rows = np.array([members[tuple(tree.segments[end].members)] for end in ends])
    return Joined(np.arange(assignment.num_clusters)[:, None] == rows, fallback)

  def basis(self, options: Options) -> str:
    """Says that updates are clustered, and how."""
    return 'updates, by recursive bi-partition'


METHOD = Bipartition()


def descend(
  parents: Sequence[int | None],
  num_newcomers: int,
  similarity: Callable[[int, np.ndarray], Sequence[np.ndarray]],
) -> np.ndarray:
  """Takes newcomers down a tree of splits: at each, to the half with the client that is most similar.

  Args:
    parents: For each cluster of the tree the position of the one that it was split from, before it; None for the first.
    num_newcomers: Number of newcomers.
    similarity: Called with a cluster that was split and int64[some], the newcomers that reach it; returns for each of
      its halves, in their order in the tree, float[clients of the half, some], the similarity of the newcomers' updates
      to the clients'. It is called once for each split that a newcomer reaches.

  Returns:
    int64[newcomers], the cluster of the tree that each ends in; it was not split.
  """
  place = np.zeros(num_newcomers, np.int64)
  # A cluster stands behind the one that it was split from, so one pass is enough.
  for node in range(len(parents)):
    halves = [child for child, parent in enumerate(parents) if parent == node]
    here = np.flatnonzero(place == node)
    if halves and len(here):
      highest = np.stack([np.max(half, axis=0) for half in similarity(node, here)])
      place[here] = np.array(halves)[np.argmax(highest, axis=0)]
  return place


def _train(
  options: Options,
  federation: Federation,
  members: np.ndarray,
  start: Weights,
  start_round: int,
  first_test: int,
) -> tuple[list[np.ndarray], Trained, list[tuple[Test, np.ndarray]]]:
  """Trains a cluster until it is split or the rounds are over.

  Returns:
    The halves (none, or two arrays of positions), the cluster after its last round, and its tests as in `Recursion`.
  """
  from tff_cluster.clustering import diverged_clients

  tests: list[tuple[Test, np.ndarray]] = []

  def named(clients: np.ndarray) -> list[str]:
    return [federation.client_ids[k] for k in clients]

  while True:
    begin = first_test if len(members) > 1 else federation.last_round
    trained = federation.train(
      members, start, start_round, partial(_is_stationary, first_test=begin, limit=options.stationary_norm)
    )
    number = trained.round
    if number == federation.last_round:
      return [], trained, tests
    assert trained.before is not None
    everybodys, norms = federation.compare(members, trained.before, number)
    finite = np.isfinite(norms)
    if start_round == 0:
      diverged_clients.check(finite, federation.client_ids)
    if np.sum(finite) < 2:
      first_test = number + options.rounds_before_split
      continue
    similarity, norms = everybodys[np.ix_(finite, finite)], norms[finite]
    test = Test(
      number, named(members), 'stopped', None, None, None, trained.mean_update_norm, float(norms.max()),
      _mean_similarity(similarity), '', tuple(named(members[~finite])),
    )  # fmt: skip
    compared = everybodys.astype(np.float32)
    if norms.max() < options.stopping_norm:
      tests.append((_stopped(similarity, named(members[finite]), test, options), compared))
      first_test = federation.last_round
      continue
    split = halves_lib.guarded(similarity, *options.guards)
    sides = split.labels if finite.all() else diverged_clients.with_larger_half(split.labels, finite)
    halves = [members[sides == side] for side in (0, 1)]
    test = dataclasses.replace(
      test, verdict='kept' if split.reason else 'split', reason=split.reason,
      halves=[named(half) for half in halves], cross_similarity=split.cross_similarity, similarity_gap=split.gap,
    )  # fmt: skip
    tests.append((test, compared))
    if not split.reason:
      return halves, trained, tests
    first_test = number + options.rounds_before_split


def _stopped(similarity: np.ndarray, members: list[str], test: Test, options: Options) -> Test:
  """Returns the test with why the cluster stopped, and with what its similarities say against that, where they do."""
  reason = (
    f'no client’s update is longer than stopping_norm={options.stopping_norm:g}; '
    f'the longest is {test.max_update_norm:.3g}'
  )
  found = halves_lib.two_kinds(similarity)
  if found is None:
    return dataclasses.replace(test, reason=reason)
  halves = [[members[k] for k in np.flatnonzero(found.labels == side)] for side in (0, 1)]
  stationary, stopping = _splitting_norms(
    test.mean_update_norm, test.max_update_norm, options.stationary_norm
  )
  words = (
    f'{len(members)} clients were kept together after round {test.round} because of their norms, but the similarities of '
    f'their updates are plainly of two kinds: {len(halves[0])} and {len(halves[1])} clients have at most '
    f'{found.cross_similarity:.2g} across, and each of them a partner in its own half that is at least {found.gap:.2g} more similar. '
    f'With stationary_norm={stationary:g} and stopping_norm={stopping:g} they are split'
  )
  told = TwoKinds(halves, found.cross_similarity, found.gap, stationary, stopping, words)
  return dataclasses.replace(test, reason=reason, two_kinds=told)


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


def _is_stationary(number: int, norm: float, first_test: int, limit: float) -> bool:
  return number >= first_test and norm < limit


def _mean_similarity(similarity: np.ndarray) -> float:
  """Returns the mean over pairs of different clients."""
  clients = len(similarity)
  return float((similarity.sum() - np.trace(similarity)) / (clients * (clients - 1)))
