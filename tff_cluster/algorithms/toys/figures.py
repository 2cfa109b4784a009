"""The figures of toy problems by name: figures 1 and 2 of Sattler et al. 2019."""

from collections.abc import Callable, Mapping, Sequence

from tff_cluster.algorithms.toys import clients, risks
from tff_cluster.toy_results import ClientsToy, RisksToy

# Each takes a seed; the risks of figure 2 are formulas, so that nothing is drawn for them.
RUN: Mapping[str, Callable[[int], Sequence[ClientsToy] | Sequence[RisksToy]]] = {
  'cfl/figure1': clients.run_figure1,
  'cfl/figure2': lambda seed: risks.run_figure2(),
}
