"""The claims that Sattler et al. 2019 (CFL) make in words, each as a check that can fail.

Departures and choices: "stagnates at around", "close to" and "immediate" need limits, which the claims name; "25% increase" is
read as points, and what is said of all clients is checked on their mean. Claims that hold at the
paper's scale only may fail at a smaller one; the page says at which scale they were checked.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tff_cluster.base.words import decimals_for, plural, score, series, signed
from tff_cluster.experiment.result_parts import Split
from tff_cluster.papers.sattler2019 import tables
from tff_cluster.scorecard.claims import Claim, Finding, Needs, judged
from tff_cluster.scorecard.rows import Ours, Row

Rows = Mapping[str, Ours]
_PAPER = 'Sattler et al. 2019'
_STAGNANT = (15.0, 30.0)
_NEAR = 5.0
_FINAL = 60.0
_RISE = 20.0
_ROUNDS_OF_RISE = 5
_ZERO = 0.2


def _over_seeds(
  rows: Rows,
  of: Callable[[Ours, int], float | None],
  good: Callable[[float], bool],
  show: Callable[[float, int], str],
  fewest: int = 1,
) -> Finding:
  """Checks a number in every row and seed; one that is not defined counts against the claim."""
  values = [of(found, i) for found in rows.values() for i in range(len(found.seeds))]
  right = sum(value is not None and good(value) for value in values)
  known = [value for value in values if value is not None]
  decimals = decimals_for(known, lambda *v: [good(value) for value in v], fewest)
  told = ['–' if value is None else show(value, decimals) for value in values]
  note = f'in {right} of {plural(len(values), "run")}' if len(values) > 1 else ''
  return judged(right == len(values), series(told) if len(told) <= 6 else f'{right} of {len(told)}', note)


def _percents(values: Sequence[float], verdict: Callable[..., bool]) -> str:
  decimals = decimals_for(values, verdict)
  return ' → '.join(f'{value:.{decimals}f}%' for value in values)


def _stagnates(rows: Rows) -> Finding:
  low, high = _STAGNANT
  (found,) = rows.values()
  value = found.baseline_curve[found.rounds_after - 1]
  return judged(low <= value <= high, _percents([value], lambda v: low <= v <= high))


def _ends_near(rows: Rows) -> Finding:
  (found,) = rows.values()
  value = found.percent['accuracy_end']
  return judged(abs(value - _FINAL) <= _NEAR, _percents([value], lambda v: abs(v - _FINAL) <= _NEAR))


def _doubles(rows: Rows) -> Finding:
  (found,) = rows.values()
  before, after = found.baseline_curve[found.rounds_after - 1], found.percent['accuracy_end']
  return judged(after >= 2.0 * before, _percents([before, after], lambda a, b: b >= 2.0 * a))


def _first_rise(found: Ours, seed: int) -> float | None:
  """Returns the largest rise, in points, of a half's accuracy within a few rounds of the first split."""
  parted = _parted(found, seed)
  if not parted:
    return None
  halves = parted[0].half_accuracy
  assert halves is not None  # A split has two.
  return max(100.0 * (max(half[1 : _ROUNDS_OF_RISE + 1], default=half[0]) - half[0]) for half in halves)


def _parted(found: Ours, seed: int) -> list[Split]:
  return [test for test in found.splits[seed] or () if test.verdict == 'split']


def _split_rounds(rows: Rows) -> Finding:
  """Checks that splits come one after the other, three in all, each as early as it may."""
  (found,) = rows.values()
  every = (found.rounds_after - 1) if found.rounds_after else 0
  told = [[test.round for test in _parted(found, i)] for i in range(len(found.seeds))]
  right = [rounds == [every * k for k in (1, 2, 3)] for rounds in told]
  return judged(
    all(right), '; '.join(series([str(r) for r in rounds]) if rounds else 'none' for rounds in told)
  )


def _similarity_left(found: Ours, seed: int) -> float | None:
  """Returns the largest mean similarity, in absolute value, in clusters that were tested and not split again."""
  left = [test.mean_similarity for test in found.splits[seed] or () if test.verdict == 'stopped']
  return max(left, key=abs) if left else None


def _recovered(found: Ours, seed: int) -> float | None:
  return found.recovery['group'][seed]


def _clusters(found: Ours, seed: int) -> float:
  return float(found.num_clusters[seed])


def _gained(rows: Rows) -> Finding:
  gains = {
    name: found.percent['accuracy_end'] - found.baseline['accuracy_end'] for name, found in rows.items()
  }
  decimals = decimals_for(list(gains.values()), lambda *v: [gain > 0 for gain in v])
  told = '; '.join(
    f'{name.partition(";")[0]}: {signed(gain, decimals)} points' for name, gain in gains.items()
  )
  return judged(all(gain > 0 for gain in gains.values()), told)


def _figure3() -> tuple[Claim, ...]:
  rows = tables.FIGURE3.rows
  needs = Needs(((rows[0].name,),), 1)

  def claim(words: str, published: str, rule: Callable[[Rows], Finding]) -> Claim:
    return Claim(words, f'{_PAPER}, section 4 and figure 3', published, needs, rule)

  return (
    claim(f'Before the first split client accuracies stagnate at about 20% ({_STAGNANT[0]:g}% to {_STAGNANT[1]:g}%)', 'around 20%', _stagnates),
    claim('Splits in three rounds, one after the other, separate all clusters', 'rounds 50, 100 and 150', _split_rounds),
    claim(
      f'The first split is followed by an immediate rise for the clients separated out (at least {_RISE:g} points within '
      f'{_ROUNDS_OF_RISE} rounds)', '25%',
      lambda found: _over_seeds(found, _first_rise, lambda v: v >= _RISE, lambda v, decimals: f'{signed(v, decimals)} points'),
    ),
    claim('All clusters are the planted groups', 'said in words', lambda found: _over_seeds(found, _recovered, lambda v: v == 1.0, lambda v, _: f'ARI {score(v)}')),
    claim(
      f'Similarity within the final clusters drops to close to zero (mean within ±{_ZERO:g})', 'close to zero',
      lambda found: _over_seeds(found, _similarity_left, lambda v: abs(v) <= _ZERO, signed, 2),
    ),
    claim('Accuracy more than doubles, on average over clients', 'around 20% → close to 60%', _doubles),
    claim(f'Accuracy ends close to {_FINAL:g}% (within {_NEAR:g} points)', 'close to 60%', _ends_near),
  )  # fmt: skip


def _splits() -> tuple[Claim, ...]:
  rows = tables.SPLITS.rows

  def needs(where: Callable[[Row], bool]) -> Needs:
    names = tuple((row.name,) for row in rows if where(row))
    return Needs(names, len(names))

  def planted(row: Row) -> bool:
    return any(word in row.name for word in tables.PLANTED)

  claims = []
  for variant in (tables.AS_PRINTED, tables.GUARDED):
    of: Sequence[tuple[str, str, Needs, Callable[[Rows], Finding]]] = (
      (
        'clients that agree (IID, skewed labels) stay in one cluster, in every run', 'section 2',
        needs(lambda row, v=variant: v in row.name and not planted(row)),  # type: ignore[misc]
        lambda found: _over_seeds(found, _clusters, lambda v: v == 1, lambda v, _: f'{v:.0f}'),
      ),
      (
        'planted groups are found exactly, in every run', 'section 2',
        needs(lambda row, v=variant: v in row.name and planted(row)),  # type: ignore[misc]
        lambda found: _over_seeds(found, _recovered, lambda v: v == 1.0, lambda v, _: f'ARI {score(v)}'),
      ),
      (
        'clients of planted groups do better than with FedAvg', 'section 5',
        needs(lambda row, v=variant: v in row.name and planted(row)), _gained,  # type: ignore[misc]
      ),
    )  # fmt: skip
    claims += [
      Claim(f'{variant[0].upper()}{variant[1:]}: {w}', f'{_PAPER}, {s}', 'said in words', n, r)
      for w, s, n, r in of
    ]
  return tuple(claims)


CLAIMS: Mapping[str, tuple[Claim, ...]] = MappingProxyType(
  {tables.FIGURE3.name: _figure3(), tables.SPLITS.name: _splits()}
)
