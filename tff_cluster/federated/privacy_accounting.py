"""What a noise multiplier is worth: (epsilon, delta) of one release, by dp-accounting."""

import math

from dp_accounting.pld import privacy_loss_mechanism
from scipy import optimize

from tff_cluster.base.errors import InputError

# Two vectors of norm at most C are at most 2 C apart.
_APART = 2.0


def epsilon_of_release(noise_multiplier: float, delta: float) -> float | None:
  """Returns the least epsilon for which one release of one client's vector is (epsilon, delta)-private.

  Local privacy: whatever vector of norm at most C a client has, what it sends is about as likely as with any other.
  (Accounting for a sum over clients compares with a client that is absent, C away instead of 2 C, and would name half
  the noise multiplier for the same epsilon.) The Gaussian mechanism is accounted for exactly, not by a bound.

  Args:
    noise_multiplier: z: the noise of every number has standard deviation z * C.
    delta: Above 0 and below 1.

  Returns:
    Epsilon; None without noise, where there is none.

  Raises:
    InputError: if an argument is out of range.
  """
  if not noise_multiplier >= 0.0:
    raise InputError(f'noise multiplier {noise_multiplier}: must be at least 0')
  if not 0.0 < delta < 1.0:
    raise InputError(f'delta {delta}: must be above 0 and below 1')
  if noise_multiplier == 0.0:
    return None
  mechanism = privacy_loss_mechanism.GaussianPrivacyLoss(noise_multiplier, sensitivity=_APART)

  def excess(epsilon: float) -> float:
    # In logarithms, so that the root is found to as many digits for small deltas.
    return math.log(max(float(mechanism.get_delta_for_epsilon(epsilon)), 1e-300) / delta)

  if excess(0.0) <= 0.0:
    return 0.0
  shift = _APART / noise_multiplier
  # The bound by concentrated privacy (Bun and Steinke 2016, proposition 1.3) is above it.
  bound = shift**2 / 2.0 + shift * math.sqrt(2.0 * math.log(1.0 / delta))
  return float(optimize.brentq(excess, 0.0, bound))
