"""What came out, one line a contender: how accurate, how much better than without clusters, which groups, at what cost.

A run keeps the lines as `summary` in results.json, a comparison in comparison.json; programs print them.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tff_cluster.base import seeding
from tff_cluster.base.words import interval_points, percent, plural, score, size
from tff_cluster.experiment.result_parts import SummaryLine
from tff_cluster.experiment.results import Results
from tff_cluster.scorecard.contenders import ROUNDS, Contender, Measured, read_contenders
from tff_cluster.scorecard.intervals import Interval, paired_bootstrap
from tff_cluster.scorecard.paired_statistics import Statistics


def of_run(results: Results) -> list[SummaryLine]:
  """Returns a run's lines, FedAvg without clusters first; intervals are over clients, as in the report."""
  seed = results.config.training.seed
  rows = read_contenders([(seed, results)])
  reference = rows[0].runs[0].accuracy[ROUNDS]

  def difference(row: Contender) -> Interval | None:
    if row is rows[0]:
      return None
    return over_clients(row.runs[0].accuracy[ROUNDS] - reference, seed)

  return [_line(row, float(row.runs[0].accuracy[ROUNDS].mean()), difference(row)) for row in rows]


def over_clients(differences: np.ndarray, seed: int) -> Interval:
  """Returns the mean of float[clients], differences within a run, with its interval over clients; all of a run have the same draws,
  so that equal clusterings have equal intervals.
  """
  return paired_bootstrap(differences, seeding.generator(seed, 'report interval'))


def of_comparison(rows: Sequence[Contender], found: Statistics) -> list[SummaryLine]:
  """Returns a comparison's lines at equal rounds, means over seeds; intervals are over seeds and clients.

  Args:
    rows: The contenders, FedAvg without clusters first.
    found: Their numbers.
  """
  numbers = [found.summary(row.name, ROUNDS) for row in rows]
  return [
    _line(row, of_row.mean.mean, None if of_row.over_fedavg is None else of_row.over_fedavg.interval)
    for row, of_row in zip(rows, numbers, strict=True)
  ]


def words(lines: Iterable[SummaryLine], over: str) -> list[str]:
  """Returns the lines for a terminal.

  Args:
    lines: See `of_run`.
    over: What intervals are over: 'clients', or 'seeds and clients'.
  """
  return [f'{line.label}: {", ".join(_parts(line, over))}' for line in lines]


def _line(row: Contender, accuracy: float, difference: Interval | None) -> SummaryLine:
  counts = [run.num_clusters for run in row.runs if run.num_clusters is not None]
  interval = None
  if difference is not None and difference.low is not None and difference.high is not None:
    interval = [difference.low, difference.high]
  return SummaryLine(
    label=row.name,
    kind=row.kind,
    mean_client_accuracy=accuracy,
    difference=None if difference is None else difference.mean,
    interval=interval,
    num_clusters=_mean(counts),
    ari=_of_groups(row, lambda run: run.ari),
    omega=_of_groups(row, lambda run: run.omega),
    client_rounds=_mean([run.cost[ROUNDS].client_rounds for run in row.runs]),
    bytes=_mean([run.cost[ROUNDS].bytes for run in row.runs]),
    share_match=_of_groups(row, lambda run: run.share_match),
  )


def _of_groups(row: Contender, score_of: Callable[[Measured], float | None]) -> float | None:
  """Returns the mean over seeds of a score against the first planted groups; None where it is undefined for a seed."""
  values = [float(value) for run in row.runs if (value := score_of(run)) is not None]
  return float(np.mean(values)) if len(values) == len(row.runs) else None


def _mean(counts: Sequence[int]) -> int | float | None:
  if not counts:
    return None
  mean = float(np.mean(counts))
  return int(mean) if mean.is_integer() else mean


def _parts(line: SummaryLine, over: str) -> Iterable[str]:
  yield percent(line.mean_client_accuracy)
  if line.difference is not None:
    mean, span = interval_points(line.difference, *(line.interval or (None, None)))
    within = f' (95% interval over {over} {span.removesuffix(" points")})' if span else ''
    yield f'{mean} to FedAvg{within}'
  if line.num_clusters is not None:
    count = line.num_clusters
    yield plural(count, 'cluster') if isinstance(count, int) else f'{count:,.1f} clusters'
    if line.groups_found is not None:
      measure, value = line.groups_found
      yield f'{measure} {score(value)}'
  yield f'{line.client_rounds:,.0f} client-rounds' + (f' ({size(line.bytes)})' if line.bytes else '')
