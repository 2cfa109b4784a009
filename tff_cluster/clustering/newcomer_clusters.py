"""What a rule for clients that come later hands back."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Joined:
  """Which clusters newcomers are assigned to.

  Attributes:
    membership: bool[clusters, newcomers], at least one cluster a newcomer.
    fallback: bool[newcomers], where no cluster took the newcomer by the method's own rule.
  """

  membership: np.ndarray
  fallback: np.ndarray
