"""Answers clustering questions from the signatures of a finished Phase 1, and scores the answers. No training.

Planted truth changes no clustering. Where the thresholds of a family miss those that give planted groups exactly, one of these is
asked too, so that the best row is not worse than what the merges allow.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base import arrays
from tff_cluster.base import fields as fields_lib
from tff_cluster.base.errors import InputError, argument
from tff_cluster.clustering.methods import hierarchical
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.run_folder import RunFolder

# The other modules of clustering/ are imported late: they take longer to load than wrong flags may take to be told.
if TYPE_CHECKING:
  from tff_cluster.clustering import signatures as signatures_lib
  from tff_cluster.clustering.method import Rows
  from tff_cluster.clustering.replay import Answer, Grid, Replay
  from tff_cluster.clustering.sketch import Distortion
  from tff_cluster.studies.replay.replayed import Family, Replayed, Row, Truth

_SKETCHED_SAMPLE = 200


def read_questions(options: Any) -> 'Grid':
  """Reads the lists of cli.flags.ReplayOptions.

  Raises:
    InputError: naming the list with an unknown or repeated entry, or where no metric goes with any linkage.
  """
  metrics = _entries('metrics', options.metrics, config_lib.METRICS)
  linkages = _entries('linkages', options.linkages, config_lib.LINKAGES)
  families = tuple((m, link) for m in metrics for link in linkages if hierarchical.fits(m, link))
  if alone := [link for link in linkages if not any(hierarchical.fits(m, link) for m in metrics)]:
    raise InputError(
      f'{argument("linkages", options.linkages)}: {alone[0]} needs l2 among {argument("metrics", options.metrics)}'
    )
  counts = _entries('cluster_counts', options.cluster_counts, None)
  for text in counts:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) < 10**9:
      raise InputError(
        f'{argument("cluster_counts", options.cluster_counts)}: {text!r} is not a number of at least 1'
      )
  thresholds = _entries('distance_thresholds', options.distance_thresholds, None)
  for text in thresholds:
    try:
      config_lib.parse_threshold(text)
    except InputError:
      raise InputError(
        f'{argument("distance_thresholds", options.distance_thresholds)}: {text!r} is neither mean, nor a number >= 0, nor '
        'quantile:q with q from 0 to 1'
      ) from None
  from tff_cluster.clustering.replay import Grid

  return Grid(
    families, options.num_thresholds, counts=tuple(map(int, counts)), distance_thresholds=thresholds
  )


def run_truths(folder: RunFolder, client_ids: Sequence[str] | None = None) -> dict[str, np.ndarray]:
  """Returns the planted memberships of a run by name, float64[groups, clients] each; {} where there are none.

  Groups of all of which every client has rows are passed over: no clustering's members tell anything of them (recovery.summed_up).

  Args:
    folder: The run.
    client_ids: Of which clients, in the run's order; of all by default.
  """
  from tff_cluster.clustering import diverged_clients, recovery
  from tff_cluster.data import saved

  if not folder.population.exists():
    return {}
  population = saved.load_population(folder.population)
  here = diverged_clients.among(
    population.client_ids, population.client_ids if client_ids is None else client_ids
  )
  truths = {name: np.asarray(truth)[:, here] for name, truth in population.truths.items()}
  return {name: truth for name, truth in truths.items() if not recovery.all_in_all(truth)}


def run_rows(folder: RunFolder) -> 'Rows | None':
  """Returns the training rows of a run's clients, by id; None where they are not at hand."""
  from tff_cluster.data import saved

  return saved.load_population(folder.population).training_rows() if folder.population.exists() else None


def run_note(folder: RunFolder, kind: str, client_ids: Sequence[str]) -> str:
  """Returns a sentence on the clients of a run that are not among those that can be clustered, '' where all are."""
  from tff_cluster.clustering import diverged_clients
  from tff_cluster.phases import client_signatures

  known = set(client_ids)
  out = [i for i in client_signatures.client_ids(folder, kind) if i not in known]
  return diverged_clients.note(out).partition(';')[0] if out else ''


def sketched(
  signatures: 'signatures_lib.Signatures', dimension: int, seed: int
) -> tuple['signatures_lib.Signatures', 'Distortion | None']:
  """Returns count sketches in place of the signatures, and their distortion.

  Args:
    signatures: The clients' vectors.
    dimension: Numbers a sketch; 0 returns the signatures as they are, without a distortion.
    seed: Seed of the projection.

  Returns:
    The signatures; the distortion, over at most 200 clients.
  """
  if not dimension:
    return signatures, None
  from tff_cluster.clustering import sketch

  vectors = sketch.sketch(signatures.vectors, dimension, seed)
  chosen = arrays.evenly(len(vectors), _SKETCHED_SAMPLE)
  found = sketch.distortion(signatures.vectors[chosen], vectors[chosen])
  return dataclasses.replace(signatures, vectors=vectors), found


def replay(
  signatures: 'signatures_lib.Signatures',
  questions: 'Grid',
  seed: int,
  truths: Mapping[str, np.ndarray],
  kind: str = 'weights',
  rows: 'Rows | None' = None,
  silhouettes: bool = True,
) -> 'Replayed':
  """Answers the questions.

  Args:
    signatures: The clients' vectors.
    questions: What is asked.
    seed: The run's seed.
    truths: Planted memberships by name, float[groups, clients] each.
    kind: What the signatures are: 'weights' or 'updates'.
    rows: The clients' training rows; None where they are not at hand, and methods that read them are not asked.
    silhouettes: Whether answers have one.
  """
  from tff_cluster.clustering.replay import Replay
  from tff_cluster.studies.replay.replayed import Replayed

  asked = Replay(signatures, seed, silhouettes, rows)
  known = [_truth(name, shares, asked, questions.families) for name, shares in truths.items()]
  answers = asked.answers(dataclasses.replace(questions, more=_missed(asked, questions, known)))
  return Replayed(signatures.num_clients, known, [_row(answer, truths, kind) for answer in answers])


def _missed(asked: 'Replay', questions: 'Grid', truths: Sequence['Truth']) -> dict['Family', list[float]]:
  """Returns, by family, the middle of the thresholds that give planted groups exactly, where none of them is asked."""
  more: dict[Family, list[float]] = {}
  for truth in truths:
    for family, found in truth.exact.items():
      low, high = found or (0.0, None)
      if high is None:  # No threshold gives the groups, or every large one does, and the largest is asked.
        continue
      if not any(low <= t < high for t in asked.thresholds(*family, questions.thresholds)):
        middle = (low + high) / 2
        more.setdefault(family, []).append(middle if middle < high else low)
  return more


def _truth(name: str, shares: np.ndarray, asked: 'Replay', families: Sequence['Family']) -> 'Truth':
  from tff_cluster.studies.replay.replayed import Truth

  present = np.asarray(shares) > 0.0
  overlapping = bool((present.sum(axis=0) > 1).any())
  groups = present.argmax(axis=0)
  exact = {} if overlapping else {f: exact_thresholds(asked.merges(*f), groups) for f in families}
  return Truth(name, int(present.any(axis=1).sum()), overlapping, exact)


def exact_thresholds(merges: np.ndarray, groups: np.ndarray) -> tuple[float, float | None] | None:
  """Returns the thresholds at which a family gives exactly these groups: all T with low <= T < high.

  They follow from the merges alone: k groups are there after all but k - 1 of them.

  Args:
    merges: float64[clients - 1, 4], SciPy's Z.
    groups: int64[clients], each client's group.

  Returns:
    low and high; None where no threshold gives the groups, high None where every large one does.
  """
  from tff_cluster.clustering.outcome import by_first_member

  heights = hierarchical.cut_heights(merges)
  done = len(groups) - len(np.unique(groups))
  low = float(heights[done - 1]) if done else 0.0
  high = float(heights[done]) if done < len(heights) else None
  found = hierarchical.cut(merges, low)
  exact = np.array_equal(found, by_first_member(groups))
  return (low, high) if exact else None


def _row(answer: 'Answer', truths: Mapping[str, np.ndarray], kind: str) -> 'Row':
  from tff_cluster.clustering import recovery
  from tff_cluster.studies.replay.replayed import Row

  config, fields = answer.config, answer.config.parameters
  assignment = answer.assignment if truths else None  # Labels become a matrix where it is needed only.
  return Row(
    config.method,
    config.rule.title,
    fields.get('metric'),
    fields.get('linkage'),
    answer.found.threshold,
    fields.get('num_clusters'),
    answer.num_clusters,
    answer.largest_cluster,
    answer.memberships,
    answer.silhouette,
    {
      name: None if assignment is None else recovery.recovery(assignment, truth)
      for name, truth in truths.items()
    },
    as_flag(config.changed(signature=kind) if 'signature' in config.rule.fields() else config),
    answer.found.notes,
  )


def as_flag(config: config_lib.ClusteringConfig) -> str:
  """Returns what a command line gives as clustering to train this one."""
  return ','.join([config.method, *(f'{name}={fields_lib.as_text(value)}' for name, value in config.given)])


def _entries(name: str, text: str, allowed: tuple[str, ...] | None) -> tuple[str, ...]:
  if allowed is None and text == 'none':
    return ()
  entries = tuple(entry.strip() for entry in text.split(','))
  for i, entry in enumerate(entries):
    if allowed is not None and entry not in allowed:
      raise InputError(f'{argument(name, text)}: {entry!r} is not among {", ".join(allowed)}')
    if entry in entries[:i]:
      raise InputError(f'{argument(name, text)}: {entry} is given twice')
  return entries
