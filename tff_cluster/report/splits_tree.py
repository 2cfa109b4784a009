"""The recursion of CFL as results.json tells it: which clusters were tested when, and what became of them; beside `splits`, since figures read it, too."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tff_cluster.experiment.result_parts import Clustering, Split
from tff_cluster.report.finished_run import FinishedRun


@dataclasses.dataclass(frozen=True, eq=False)
class SplitTest:
  """One test of a cluster whose training was stationary; clients are positions in the population.

  Attributes:
    round: The test came after this round of training.
    members: int64[members], the clients that trained together.
    verdict: 'split', 'stopped' or 'kept'.
    halves: Two int64[half], the best bi-partition; empty where it was not asked for.
    cross_similarity: Highest cosine similarity of two updates across the halves, or None.
    similarity_gap: By how much every client is at least more similar to one of its own half, or None.
    mean_update_norm: Norm of the weighted mean update (compared with eps_1).
    max_update_norm: Highest norm of a client's update (compared with eps_2).
    reason: Why it was not split, '' for a split.
    similarity: float64[compared, compared], cosine similarities of the updates, or None where not saved.
    excluded: int64[excluded], members whose updates were not finite, so that they were not compared.
    warning: What the similarities say against a cluster that was stopped by norms, '' for nothing.
  """

  round: int
  members: np.ndarray
  verdict: str
  halves: tuple[np.ndarray, ...]
  cross_similarity: float | None
  similarity_gap: float | None
  mean_update_norm: float
  max_update_norm: float
  reason: str
  similarity: np.ndarray | None
  excluded: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
  warning: str = ''

  @property
  def compared(self) -> np.ndarray:
    """int64[compared], the members whose updates were compared."""
    return self.members[~np.isin(self.members, self.excluded)]


@dataclasses.dataclass(frozen=True, eq=False)
class Recursion:
  """All tests of a clustering by bi-partition (Sattler et al. 2019, Algorithm 2).

  Attributes:
    tests: In order of rounds.
    clusters: int64[members] for each final cluster, in the order of the results.
    num_clients: Clients of the run.
    accuracy: float64[rounds, clients], test accuracy after each round from round 1 on under the model that the
      client then used, or None where not saved.
  """

  tests: tuple[SplitTest, ...]
  clusters: tuple[np.ndarray, ...]
  num_clients: int
  accuracy: np.ndarray | None

  @property
  def splits(self) -> tuple[SplitTest, ...]:
    return tuple(test for test in self.tests if test.verdict == 'split')

  @property
  def split_rounds(self) -> list[int]:
    """The rounds after which something was split, ascending, each once."""
    return sorted({test.round for test in self.splits})

  def stages(self) -> list[tuple[int, np.ndarray]]:
    """Returns (0, one cluster), then (round, clusters after its splits), for each round of a split.

    Clusters are int64[clients], numbered so that the two halves of a split follow each other at every
    later stage: a picture that shows them in this order has no crossing lines.
    """
    paths = [''] * self.num_clients
    found = [(0, np.zeros(self.num_clients, np.int64))]
    for at in self.split_rounds:
      for test in self.splits:
        if test.round == at:
          for side, half in enumerate(test.halves):
            for client in half:
              paths[client] += str(side)
      found.append((at, np.unique(paths, return_inverse=True)[1].astype(np.int64)))
    return found

  def fate(self, cluster: np.ndarray) -> str:
    """Returns what became of a final cluster: 'alone' (one client), 'stopped', 'kept', or 'open'.

    'open' clusters were not found stationary before training ended.
    """
    if len(cluster) == 1:
      return 'alone'
    last = [t.verdict for t in self.tests if t.verdict != 'split' and _same(t.members, cluster)]
    return last[-1] if last else 'open'


def read_recursion(run: FinishedRun, clustering: Clustering) -> Recursion | None:
  """Returns the recursion of a clustering, or None where it was found in one step."""
  if clustering.splits is None:
    return None
  position = {client_id: k for k, client_id in enumerate(run.client_ids)}

  def places(client_ids: Sequence[str]) -> np.ndarray:
    return np.array([position[client_id] for client_id in client_ids], np.int64)

  label, tests = clustering.label, []
  for i, entry in enumerate(clustering.splits):
    similarity = _similarity(run, f'similarity_{label}_{i:03d}', entry)
    tests.append(
        SplitTest(
            entry.round, places(entry.cluster), entry.verdict, tuple(places(h) for h in entry.halves or ()),
            entry.cross_similarity, entry.similarity_gap, entry.mean_update_norm, entry.max_update_norm,
            entry.reason, similarity, places(entry.excluded), '' if entry.two_kinds is None else entry.two_kinds.words,
        )
    )  # fmt: skip
  saved = run.arrays.get(f'client_accuracy_{label}')
  rounds = 0 if saved is None or saved.ndim != 2 else len(saved)
  accuracy = run.array(f'client_accuracy_{label}', rounds, len(position)) if rounds else None
  return Recursion(
    tuple(tests),
    tuple(places(members) for members in clustering.clusters),
    len(position),
    None if accuracy is None else accuracy.astype(np.float64),
  )


def _similarity(run: FinishedRun, name: str, entry: Split) -> np.ndarray | None:
  """Returns float64[compared, compared] of a test, or None where it is not there or does not fit."""
  compared = np.array([client_id not in entry.excluded for client_id in entry.cluster], bool)
  found = run.arrays.get(name)
  if found is None or found.shape != (len(compared), len(compared)):
    return None
  similarity = found[np.ix_(compared, compared)].astype(np.float64)
  return similarity if np.isfinite(similarity).all() else None


def _same(one: np.ndarray, other: np.ndarray) -> bool:
  return len(one) == len(other) and set(one.tolist()) == set(other.tolist())
