"""Units of printed numbers, and the one place of margins: how near ours must be to agree, and what is practically the same."""

import dataclasses
import math

from tff_cluster.base.words import error, score

# Between accuracies in points: what is nearer is practically the same, wherever a paper says "above", "same" or "little" and
# prints nothing finer.
EQUIVALENT = 0.5
# Between ratios to FedAvg: they are printed to a tenth.
RATIO = 0.05


@dataclasses.dataclass(frozen=True)
class Unit:
  """What a number is measured in.

  Attributes:
    name: For files.
    plural: What is measured, for sentences.
    margin: The largest difference that agrees, or the largest factor where is_factor.
    decimals: How a number is printed.
    suffix: What stands behind a number.
    noun: What stands behind a difference.
    reason: Why the margin is what it is, where readers would ask.
    is_factor: Whether ours is compared by the ratio, as rounds are.
    is_score: Whether 1 is an exact match, so that nothing below is printed as 1.
    is_error: Whether 0 is an exact match, so that nothing above is printed as 0.
  """

  name: str
  plural: str
  margin: float
  decimals: int = 1
  suffix: str = ''
  noun: str = ''
  reason: str = ''
  is_factor: bool = False
  is_score: bool = False
  is_error: bool = False

  @property
  def within(self) -> str:
    """Returns '1 point', '0.02' or 'a factor of 1.25'."""
    if self.is_factor:
      return f'a factor of {self.margin:g}'
    return (
      f'{self.margin:g}{f" {self.noun}" if self.noun else ""}{"s" if self.noun and self.margin != 1 else ""}'
    )

  def show(self, value: float | None, decimals: int | None = None) -> str:
    """Returns a number as it is printed; a dash for None."""
    if value is None:
      return '–'
    if self.is_error:
      return error(value)
    places = self.decimals if decimals is None else decimals
    return f'{score(value, places) if self.is_score else f"{value:.{places}f}"}{self.suffix}'

  def zone(self, published: float) -> tuple[float, float]:
    """Returns from where to where a number agrees with a printed one."""
    if self.is_factor:
      return published / self.margin, published * self.margin
    return published - self.margin, published + self.margin

  def scaled(self, value: float) -> float:
    """Returns what is averaged over seeds: the logarithm where numbers are compared by their ratio."""
    return math.log(value) if self.is_factor and value > 0.0 else value

  def unscaled(self, value: float) -> float:
    """Returns the number of which `scaled` makes this one."""
    return math.exp(value) if self.is_factor else value


PERCENT = Unit('percent', 'accuracies', 1.0, 1, '%', 'point')
# With 100 clients one client is a point.
SHARE = Unit(
  'percent of clients', 'shares of clients', 5.0, 1, '%', 'point',
  'with 100 clients one client is 1 point, and the share at a hard target moves by points between seeds; '
  'the papers give one seed',
)  # fmt: skip
# A point of accuracy moves a cross-entropy of softmaxed probabilities by 0.01, and losses are printed to 0.01.
LOSS = Unit('loss', 'losses', 0.02, 2)
# Our choice: papers print one number for each setting, and no spread over seeds.
ROUNDS = Unit(
  'rounds', 'rounds', 1.25, 1, is_factor=True,
  reason='where that lies beyond the rounds that we ran, it is undecided',
)  # fmt: skip
# An exact match is 1; nothing else is.
SCORE = Unit('score', 'scores', 0.0, 2, is_score=True)
ERROR = Unit('error', 'errors', 0.0, 2, is_error=True)
# What pages show with a sign is a difference in `points`; this is an amount.
POINTS = Unit('points of accuracy', 'points', 1.0, 2)
