"""Numbers as kept tables have them; None where there is none."""

import numpy as np


def percent(share: float | None) -> float | None:
  """Returns a share from 0 to 1 in percent."""
  return None if share is None else rounded(100.0 * share)


def rounded(value: float | None) -> float | None:
  """Returns a number with four decimals."""
  return None if value is None else float(np.round(value, 4))
