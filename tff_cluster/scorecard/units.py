"""Units of printed numbers: how near ours must be to agree, and how a difference is told."""

import dataclasses

_SLACK = 1e-9  # Keeps what is exactly at a limit from failing by rounding of binary fractions.


@dataclasses.dataclass(frozen=True)
class Unit:
  """What a number is measured in.

  Attributes:
    name: For files.
    plural: What is measured, for sentences.
    limit: The largest difference that agrees, or the largest factor where is_factor.
    decimals: How a number is printed.
    suffix: What stands behind a number.
    noun: What stands behind a difference.
    reason: Why the limit is what it is, where readers would ask.
    is_factor: Whether ours is compared by the ratio, as rounds are: None stands for more rounds than were run.
  """

  name: str
  plural: str
  limit: float
  decimals: int = 1
  suffix: str = ''
  noun: str = ''
  reason: str = ''
  is_factor: bool = False

  @property
  def within(self) -> str:
    """Returns '1 point', '0.02' or 'a factor of 1.25'."""
    if self.is_factor:
      return f'a factor of {self.limit:g}'
    return (
      f'{self.limit:g}{f" {self.noun}" if self.noun else ""}{"s" if self.noun and self.limit != 1 else ""}'
    )

  def show(self, value: float | None, decimals: int | None = None) -> str:
    """Returns a number as it is printed; a dash for None."""
    return (
      '–' if value is None else f'{value:.{self.decimals if decimals is None else decimals}f}{self.suffix}'
    )

  def judge(self, published: float, ours: float | None, ran: int) -> tuple[bool | None, str]:
    """Compares our mean with a printed number.

    Args:
      published: The printed number.
      ours: Ours; None where a target was not reached in the rounds that were run.
      ran: Rounds that were run.

    Returns:
      Whether ours agrees (None: the rounds were too few to tell), and 'differs by 3.2 points (ours is lower)',
      'within 1 point' or the like.
    """
    if self.is_factor:
      return self._judge_factor(published, ours, ran)
    assert ours is not None
    difference = round(ours - published, 6)
    if abs(difference) <= self.limit + _SLACK:
      return True, f'within {self.within}'
    size, limit = (f'{value:.{self.decimals}f}' for value in (abs(difference), self.limit))
    # "differs by 1.0 points" would read like the tolerance that it exceeds.
    words = f'just over {self.within}' if size == limit else f'{size} {self.noun}s' if self.noun else size
    return False, f'differs by {words} (ours is {"higher" if difference > 0 else "lower"})'

  def _judge_factor(self, published: float, ours: float | None, ran: int) -> tuple[bool | None, str]:
    within = f'{ran:,} round{"" if ran == 1 else "s"}'
    if ours is None:
      beyond = published > ran
      return (None, f'undecided: neither in {within}') if beyond else (False, f'differs: not in {within}')
    ratio = ours / published
    if max(ratio, 1 / ratio) <= self.limit:
      return True, f'within {self.within}'
    side = f'ours takes {"more" if ratio > 1 else "fewer"}'
    return False, f'differs by a factor of {max(ratio, 1 / ratio):.2f} ({side})'


PERCENT = Unit('percent', 'accuracies', 1.0, 1, '%', 'point')
# With 100 clients one client is a point, and the share at a hard target moves by points from seed to seed, while the
# papers give one seed: at a point's tolerance luck alone would decide.
SHARE = Unit(
  'percent of clients', 'shares of clients', 5.0, 1, '%', 'point',
  'with 100 clients one client is 1 point, and the share at a hard target moves by points between seeds; '
  'the paper gives one seed',
)  # fmt: skip
# A point of accuracy moves a cross-entropy of softmaxed probabilities by 0.01, and losses are printed to 0.01.
LOSS = Unit('loss', 'losses', 0.02, 2)
# Our choice: papers print one number for each setting, and no spread over seeds.
ROUNDS = Unit(
  'rounds', 'rounds', 1.25, 1, is_factor=True,
  reason='where both are beyond the rounds that we ran, it is undecided',
)  # fmt: skip
# An exact match is 1; nothing else is.
SCORE = Unit('score', 'scores', 0.0, 2)
POINTS = Unit('points', 'points', 1.0, 2)
