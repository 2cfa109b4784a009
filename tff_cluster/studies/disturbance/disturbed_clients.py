"""Clusters what a server gets when clients make their signatures private or small before they send them.

Every client's update goes through one of TFF's own aggregators alone: clipping and Gaussian noise (federated.privacy), or
quantization (federated.compression). The run's clusterings are made again from what arrives, and scored against the
planted groups, which are looked at after clustering only. Weights are never sent as such: a client sends its update of
the last round, and the server adds the global model of the round before.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.errors import InputError
from tff_cluster.experiment import config as config_lib
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.studies.disturbance import document
from tff_cluster.studies.disturbance.questions import Questions, askable

# The modules of clustering/ are imported late: they take longer to load than wrong flags may take to be told.
if TYPE_CHECKING:
  from tff_cluster.clustering import signatures as signatures_lib

DELTA = 1e-5


class Channels(Protocol):
  """What a vector goes through, as federated.single_client.Aggregators does."""

  def noisy(
    self, vector: np.ndarray, seed: np.ndarray, clip_norm: float, noise_multiplier: float
  ) -> np.ndarray: ...

  def quantized(self, vector: np.ndarray, seed: np.ndarray, bits: int, rounding: str) -> np.ndarray: ...

  def num_bytes(self, features: int, bits: int) -> int: ...


def run(experiment: live_experiment_lib.Experiment, questions: Questions, command: str) -> document.Document:
  """Disturbs the signatures of a run whose Phase 1 is done.

  Args:
    experiment: The run, with an installed TFF context.
    questions: What is asked.
    command: What asks.

  Raises:
    InputError: as `askable`; also if Phase 1 has not finished.
  """
  from tff_cluster.federated import privacy_accounting, single_client
  from tff_cluster.phases import client_signatures
  from tff_cluster.studies.replay import study

  asked, left_out = askable(experiment.folder, experiment.config)
  name, truth = next(iter(study.run_truths(experiment.folder).items()))
  kinds = sorted({clustering.signature for clustering in asked})
  sent = {
    kind: (client_signatures.load(experiment.folder, kind), client_signatures.origin(experiment, kind))
    for kind in kinds
  }
  channels = single_client.Aggregators()
  everyone = experiment.population.client_ids
  measured = disturb(
    sent, asked, truth, questions, experiment.config.training.seed, channels, experiment.progress, everyone
  )
  return document.Document(
    **vars(measured),
    truth=document.Truth(name, int((np.asarray(truth) > 0.0).any(axis=1).sum())),
    sketch_dimension=experiment.config.training.sketch_dimension,
    left_out=left_out,
    privacy=[
      document.Release(z, privacy_accounting.epsilon_of_release(z, DELTA), DELTA)
      for z in questions.noise_multipliers
    ],
    command=command,
  )


def disturb(
  sent: 'Mapping[str, tuple[signatures_lib.Signatures, np.ndarray]]',
  clusterings: Sequence[config_lib.ClusteringConfig],
  truth: np.ndarray,
  questions: Questions,
  seed: int,
  channels: Channels,
  progress: live_experiment_lib.Progress,
  client_ids: Sequence[str] | None = None,
) -> document.Measured:
  """Makes the clusterings from disturbed signatures.

  Args:
    sent: By kind ('weights', 'updates'), the signatures and their origin float32[features]; clients send the difference.
    clusterings: What is made.
    truth: Planted memberships, float[groups, clients].
    questions: What is asked.
    seed: The run's seed; noise and rounding have seeds of their own that follow from it, the repeat and the client.
    channels: What vectors go through.
    progress: Where progress is shown.
    client_ids: The clients of the truth, where some of them have no signature that can be clustered; scores are over
      the others.
  """
  signatures, compression, rows = [], [], []
  for kind, (undisturbed, origin) in sent.items():
    mine = [clustering for clustering in clusterings if clustering.signature == kind]
    position = {client_id: k for k, client_id in enumerate(client_ids or undisturbed.client_ids)}
    groups = np.asarray(truth)[:, [position[client_id] for client_id in undisturbed.client_ids]]
    norms = np.array([np.linalg.norm((row - origin).astype(np.float64)) for row in undisturbed.vectors])
    clip = questions.clip_norm or float(np.median(norms)) or 1.0
    signatures.append(
      document.Sent(
        signature=kind,
        features=len(origin),
        bytes=4 * len(origin),
        clip_norm=clip,
        norms=document.Norms(float(norms.min()), float(np.median(norms)), float(norms.max())),
        clipped=int((norms > clip).sum()),
        clip_norm_given=bool(questions.clip_norm),
      )
    )
    compression += [
      document.Packed(kind, bits, channels.num_bytes(len(origin), bits)) for bits in questions.bits
    ]
    plan = list(_plan(questions, clip, channels))
    with progress.stage(f'disturbed {kind}', sum(repeats for *_, repeats, _ in plan)):
      before = _scores(mine, undisturbed, groups, seed)
      for disturbance, value, repeats, through in plan:
        found = []
        for repeat in range(repeats):
          received = _received(undisturbed, origin, through, seed, kind, repeat)
          found.append(_scores(mine, received, groups, seed))
          progress.update()
        for i, clustering in enumerate(mine):
          scores = [each[i] for each in found]
          rows.append(_row(clustering, disturbance, value, before[i][0], scores))
  return document.Measured(
    clients=int(np.asarray(truth).shape[1]),
    seed=seed,
    repeats=questions.repeats,
    signatures=signatures,
    compression=compression,
    rows=rows,
    half_lost=half_lost(rows),
  )


def half_lost(rows: Sequence[document.Row]) -> list[document.HalfLost]:
  """Returns where each clustering has lost half of its score under each disturbance.

  A clustering that had found nothing (a score of 0 or less) has nothing to lose; both values are None.
  """
  found = []
  for label, disturbance in dict.fromkeys((row.label, row.disturbance) for row in rows):
    mine = [row for row in rows if (row.label, row.disturbance) == (label, disturbance)]
    mine.sort(key=lambda row: row.value, reverse=disturbance != document.NOISE)
    full, kept, lost = mine[0].undisturbed, None, None
    for row in mine if full > 0.0 else ():
      if row.mean <= full / 2.0:
        lost = row.value
        break
      kept = row.value
    found.append(document.HalfLost(label, disturbance, full, kept, lost))
  return found


def _plan(
  questions: Questions, clip: float, channels: Channels
) -> Iterator[tuple[str, float, int, Callable[[np.ndarray, np.ndarray], np.ndarray]]]:
  """Yields each disturbance with its value, its repeats (1 where nothing is drawn), and what (vector, seed) goes through."""
  for z in questions.noise_multipliers:
    repeats = questions.repeats if z else 1
    yield document.NOISE, z, repeats, partial(channels.noisy, clip_norm=clip, noise_multiplier=z)
  for rounding in (document.NEAREST, document.RANDOM):
    for bits in questions.bits:
      repeats = questions.repeats if rounding == document.RANDOM else 1
      yield rounding, bits, repeats, partial(channels.quantized, bits=bits, rounding=rounding)


def _received(
  undisturbed: 'signatures_lib.Signatures',
  origin: np.ndarray,
  through: Callable[[np.ndarray, np.ndarray], np.ndarray],
  seed: int,
  kind: str,
  repeat: int,
) -> 'signatures_lib.Signatures':
  vectors = np.empty(undisturbed.vectors.shape, np.float32)
  for k, client_id in enumerate(undisturbed.client_ids):
    # The same draws for every multiplier and every number of bits: what differs along a line is their size alone.
    draws = seeding.generator(seed, 'disturbance', kind, repeat, client_id)
    of_client = draws.integers(2**31, size=2, dtype=np.int32)
    vectors[k] = origin + through(undisturbed.vectors[k] - origin, of_client)
  return dataclasses.replace(undisturbed, vectors=vectors)


def _scores(
  clusterings: Sequence[config_lib.ClusteringConfig],
  signatures: 'signatures_lib.Signatures',
  truth: np.ndarray,
  seed: int,
) -> list[tuple[float, int | None]]:
  """Returns score and number of clusters of each clustering; 0 and None where the method gives up."""
  from tff_cluster.clustering import methods, recovery

  found: list[tuple[float, int | None]] = []
  for clustering in clusterings:
    try:
      assignment = methods.cluster(clustering, signatures, seed).assignment
    except (
      InputError
    ):  # More than max_clusters clusters: what was given is fine, for the run made this clustering.
      found.append((0.0, None))
      continue
    score = recovery.omega_index(assignment.membership, np.asarray(truth) > 0.0)
    found.append((score, assignment.num_clusters))
  return found


def _row(
  clustering: config_lib.ClusteringConfig,
  disturbance: str,
  value: float,
  undisturbed: float,
  found: Sequence[tuple[float, int | None]],
) -> document.Row:
  scores = [score for score, _ in found]
  return document.Row(
    label=clustering.label,
    method=clustering.method,
    title=clustering.rule.title_of(clustering.options),
    signature=clustering.signature,
    parameters={n: v for n, v in clustering.parameters.items() if n != 'signature' and v is not None},
    disturbance=disturbance,
    value=value,
    undisturbed=undisturbed,
    mean=math.fsum(scores) / len(scores),
    low=min(scores),
    high=max(scores),
    scores=scores,
    clusters=[count for _, count in found],
  )
