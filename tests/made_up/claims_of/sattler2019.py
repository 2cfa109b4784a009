"""CFL as the paper draws it: figure 3, and our table of splits, with a fault for each claim."""

import dataclasses
from collections.abc import Iterator

from tests.made_up import in_json
from tests.made_up.scorecard_rows import changed, make_ours
from tff_cluster.experiment.result_parts import Split
from tff_cluster.papers.sattler2019 import tables
from tff_cluster.scorecard.rows import Ours, Run

NAMES = (tables.FIGURE3.name, tables.SPLITS.name)
CLUSTERS = (['a', 'b'], ['c', 'd'])


def test(
  number: int,
  verdict: str = 'split',
  rise: float | None = 0.25,
  similarity: float = 0.02,
  gap: float = 0.3,
  mean_norm: float = 0.3,
  longest: float = 1.0,
  cluster=('a', 'b', 'c', 'd'),
) -> Split:
  """Returns a test of a cluster."""
  told = {
    'round': number, 'verdict': verdict, 'half_rise': None if rise is None or verdict != 'split' else [rise, rise / 25], 'mean_similarity': similarity,
    'similarity_gap': gap, 'cluster': list(cluster), 'mean_update_norm': mean_norm, 'max_update_norm': longest,
  }  # fmt: skip
  return in_json.record(Split, told)


def runs(before=(0.20, 0.25), after=(0.59, 0.60)) -> tuple[Run, ...]:
  """Returns a run of two clients with these accuracies at the end of Phase 1, and in the last round."""
  made = in_json.typed({
    'config': {}, 'phase1': {'evaluation': {'client_accuracy': list(before)}},
    'clusterings': [
      {'label': 'cfl', 'clusters': CLUSTERS, 'evaluations': {'own': {'client_accuracy': list(after)}}},
    ],
  })  # fmt: skip
  return (Run(0, made, made.clusterings[0]),)


def splits_of(*tests: Split) -> tuple[list[Split]]:
  return (list(tests),)


LAST = tuple(test(200, 'stopped', cluster=cluster) for cluster in CLUSTERS)
_TOLD = {
  'windows': {'accuracy_end': (59.0,)}, 'baseline_windows': {'accuracy_end': (21.0,)}, 'seeds': (0,), 'num_clusters': (4,),
  'threshold': (None,), 'rounds_after': 51, 'rounds_end': 201, 'accuracy_by_seed': ({51: 25.0, 201: 59.0},),
  'baseline_by_seed': ({n: 20.0 for n in range(1, 202)},), 'recovery': {'group': (1.0,)},
  'splits': splits_of(test(50), test(100), test(150), *LAST),
}  # fmt: skip


def drawn(row=tables.FIGURE3.rows[0], of=None, **changes) -> Ours:
  """Returns figure 3 as the paper draws it, of one seed, with some things changed."""
  made = Ours(row, of or runs())
  made.__dict__.update({**_TOLD, **changes})
  made.__dict__['clusterings'] = tuple(
    dataclasses.replace(run.clustering, splits=tests)
    for run, tests in zip(made.runs, made.splits, strict=True)
  )
  return made


def split_rows(**changes) -> dict[str, Ours]:
  """Returns rows of cfl/splits as the paper says it: one cluster where clients agree, the planted groups elsewhere."""
  rows = {}
  for row in tables.SPLITS.rows:
    planted = any(word in row.name for word in tables.PLANTED)
    told = {key: _TOLD[key] for key in ('windows', 'baseline_windows', 'seeds')}
    found = make_ours(row, **told, num_clusters=(4 if planted else 1,), recovery={'group': (1.0,)})
    rows[row.name] = changed(found, **changes.get(row.name, {}))
  return rows


def good(name: str) -> dict[str, Ours]:
  """Returns rows for which every claim holds."""
  return {drawn().row.name: drawn()} if name == tables.FIGURE3.name else split_rows()


def bad(name: str) -> Iterator[tuple[str, dict[str, Ours]]]:
  """Yields how the words of a claim start, and rows on which it fails."""
  if name == tables.FIGURE3.name:
    rising = ({n: 15.0 + 0.1 * n for n in range(1, 202)},)
    for start, found in (
      ('Before the first split', drawn(baseline_by_seed=({n: 35.0 for n in range(1, 202)},))),
      ('They stagnate', drawn(baseline_by_seed=rising)),
      ('A distinct gap', drawn(splits=splits_of(test(50, gap=0.05), test(100), test(150), *LAST))),
      ('Three splits', drawn(splits=splits_of(test(50), test(100), test(100), *LAST))),
      ('The first split', drawn(splits=splits_of(test(50, rise=0.19), test(100), test(150), *LAST))),
      ('Every split', drawn(splits=splits_of(test(50), test(100), test(150, rise=0.0), *LAST))),
      (
        'Training has converged',
        drawn(splits=splits_of(test(50, mean_norm=0.7), test(100), test(150), *LAST)),
      ),
      ('All clusters', drawn(recovery={'group': (0.9,)})),
      (
        'Similarity within',
        drawn(splits=splits_of(test(50), LAST[0], test(200, 'stopped', similarity=0.3, cluster=CLUSTERS[1]))),
      ),
      ('The accuracy of all clients more', drawn(of=runs(after=(0.70, 0.45)))),
      ('Clients are never', drawn(windows={'accuracy_end': (20.0,)})),
      ('The accuracy of all clients ends', drawn(of=runs(after=(0.59, 0.70)))),
    ):
      yield start, {found.row.name: found}
    return
  for variant, guarded in (('As printed', tables.AS_PRINTED), ('Guarded', tables.GUARDED)):
    yield (
      f'{variant}: clients that agree',
      split_rows(**{f'labels skewed; {guarded}': {'num_clusters': (2,)}}),
    )
    for start, groups in (('groups that swap', 'labels swapped'), ('groups of turned', 'rotated')):
      yield (
        f'{variant}: {start}',
        split_rows(**{f'{groups}, 2 groups; {guarded}': {'recovery': {'group': (0.5,)}}}),
      )
    worse = {'windows': {'accuracy_end': (20.0,)}}
    yield f'{variant}: clients are never', split_rows(**{f'IID; {guarded}': worse})
    for start, groups in (('clients of groups that', 'labels swapped'), ('clients of groups of', 'rotated')):
      yield f'{variant}: {start}', split_rows(**{f'{groups}, 4 groups; {guarded}': worse})
