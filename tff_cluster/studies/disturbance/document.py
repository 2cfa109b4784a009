"""disturbance.json: what is left of a run's clusterings when clients make their signatures private or small.

Scores are Omega indices against the planted groups, which for disjoint clusters are ARIs; where a method gave up, 0.
"""

import dataclasses

from tff_cluster.base import records
from tff_cluster.base.types import Json

# By what a row is disturbed: noise, or rounding to the nearest level or at random to one of the two around.
NOISE, NEAREST, RANDOM = 'noise', 'nearest', 'random'


@dataclasses.dataclass(frozen=True)
class Norms(records.Record):
  """Of the clients' updates."""

  min: float
  median: float
  max: float


@dataclasses.dataclass(frozen=True)
class Sent(records.Record):
  """Signatures of one kind as clients send them without quantization.

  Attributes:
    signature: 'weights' or 'updates'.
    features: Numbers of a client.
    bytes: Of a client.
    clip_norm: What noisy updates are clipped to.
    norms: Before clipping.
    clipped: Clients whose norm is above clip_norm.
    clip_norm_given: Whether it was asked for; else it is the median norm.
  """

  signature: str
  features: int
  bytes: int
  clip_norm: float
  norms: Norms
  clipped: int
  clip_norm_given: bool


@dataclasses.dataclass(frozen=True)
class Packed(records.Record):
  """Bytes that a client sends where a number of its signature has so many bits."""

  signature: str
  bits: int
  bytes: int


@dataclasses.dataclass(frozen=True)
class Row(records.Record):
  """One clustering under one disturbance.

  Attributes:
    label, method, title: What the clustering is called in its run, its method, and the method's name in words.
    signature: What is clustered.
    parameters: Of the clustering.
    disturbance: NOISE, NEAREST or RANDOM.
    value: Noise multiplier or bits.
    undisturbed: The score without any disturbance.
    mean, low, high: Of `scores`.
    scores: One a repeat.
    clusters: Their number, one a repeat; None where the method gave up.
  """

  label: str
  method: str
  title: str
  signature: str
  parameters: dict[str, Json]
  disturbance: str
  value: int | float
  undisturbed: float
  mean: float
  low: float
  high: float
  scores: list[float]
  clusters: list[int | None]


@dataclasses.dataclass(frozen=True)
class HalfLost(records.Record):
  """Where a clustering loses half of its undisturbed score under one disturbance.

  Attributes:
    lost: The first value, from the weakest on, at which half of the score or more is gone.
    kept: The value before it. Both are None where there is none.
  """

  label: str
  disturbance: str
  undisturbed: float
  kept: int | float | None
  lost: int | float | None


@dataclasses.dataclass(frozen=True)
class Measured(records.Record):
  """The clusterings of disturbed signatures.

  Attributes:
    clients: How many.
    seed: Of the run.
    repeats: Draws of noise and of random rounding.
    signatures: One a kind.
    compression: One a kind and number of bits.
    rows: One a clustering, disturbance and value.
    half_lost: One a clustering and disturbance.
  """

  clients: int
  seed: int
  repeats: int
  signatures: list[Sent]
  compression: list[Packed]
  rows: list[Row]
  half_lost: list[HalfLost]

  def num_bytes(self, signature: str, bits: float | None = None) -> int:
    """Returns the bytes that a client sends, quantized to so many bits a number where they are given."""
    if bits is None:
      return next(sent.bytes for sent in self.signatures if sent.signature == signature)
    return next(p.bytes for p in self.compression if (p.signature, p.bits) == (signature, bits))


@dataclasses.dataclass(frozen=True)
class Truth(records.Record):
  """The planted groups that are scored against: their name and number."""

  name: str
  groups: int


@dataclasses.dataclass(frozen=True)
class LeftOut(records.Record):
  """A clustering of the run that signatures alone do not decide, and why."""

  label: str
  reason: str


@dataclasses.dataclass(frozen=True)
class Release(records.Record):
  """Local privacy of sending one update with noise; epsilon is None where nothing is private."""

  noise_multiplier: float
  epsilon: float | None
  delta: float


@dataclasses.dataclass(frozen=True)
class Document(Measured):
  """disturbance.json.

  Attributes:
    sketch_dimension: Numbers of the sketches that clients send; None where they send whole signatures.
    left_out: Clusterings that were not asked.
    privacy: One a noise multiplier.
    command: What asked.
  """

  truth: Truth
  sketch_dimension: int | None
  left_out: list[LeftOut]
  privacy: list[Release]
  command: str

  @property
  def epsilons(self) -> dict[float, float | None]:
    """Epsilon by noise multiplier."""
    return {release.noise_multiplier: release.epsilon for release in self.privacy}
