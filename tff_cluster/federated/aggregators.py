"""How the updates of a round are put together: the mean, or TFF's own robust means.

All are means weighted by rows. zeroing replaces updates whose largest entry is far above what was seen so far with zeros,
clipping scales updates down to an adaptive Euclidean norm, robust does both (tff.learning.robust_aggregator, which says
how the bounds move from round to round). Zeroed clients keep their weight, so the mean of such a round is shorter. The
bounds are part of the state of the learning process: they are saved and resumed with it, and every trajectory, that is
every cluster, starts with TFF's first bounds. An update that is dropped, because it is not finite, comes as zeros of weight 0,
which the bounds count as any other: with half of the clients dropped the norm of clipping no longer follows the honest ones.
"""

import tensorflow_federated as tff

from tff_cluster.base.errors import InputError, argument

# By name: whether updates are zeroed, and whether they are clipped.
_ROBUST = {'zeroing': (True, False), 'clipping': (False, True), 'robust': (True, True)}


def build(name: str) -> tff.aggregators.WeightedAggregationFactory | None:
  """Returns the aggregator of a name in config.AGGREGATORS; None for the mean, which is the default of build_fed_avg.

  Raises:
    InputError: if there is no such aggregator.
  """
  if name == 'mean':
    return None
  if name not in _ROBUST:
    raise InputError(f'{argument("aggregator", name)}: allowed are mean, {", ".join(_ROBUST)}')
  zeroing, clipping = _ROBUST[name]
  return tff.learning.robust_aggregator(zeroing=zeroing, clipping=clipping, weighted=True)
