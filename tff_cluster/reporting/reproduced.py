"""From the results of the runs behind a published table to its page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tff_cluster.papers import tables
from tff_cluster.reporting import pictures, reproduction, table_scorecard
from tff_cluster.reporting.cfl import claims as cfl_claims
from tff_cluster.reporting.fedex import claims as fedex_claims
from tff_cluster.reporting.fedex import page as fedex_page
from tff_cluster.reporting.fedex import replication_claims, replication_page
from tff_cluster.reporting.finished_run import FinishedRun, read_run
from tff_cluster.reporting.fl_hc import claims as fl_hc_claims
from tff_cluster.reporting.paper_page import PaperPage, Runs
from tff_cluster.reporting.table_claims import Reproduced
from tff_cluster.scorecard import cluster_contents

_CLAIMS = {**fl_hc_claims.CLAIMS, **cfl_claims.CLAIMS, **fedex_claims.CLAIMS, **replication_claims.CLAIMS}
# Tables and figures, or papers by the first part of those names, that have a scorecard of their own.
_PAGES: Mapping[str, PaperPage] = {'fedex': fedex_page.PAGE, 'fedex/figure1': replication_page.PAGE}


def write(
  published: tables.Published,
  runs: Runs,
  scale: str,
  scale_words: str,
  facts: Mapping[str, Any],
  folder: Path,
  run_folder: Path | None = None,
) -> Path:
  """Writes the page of a table or figure (reporting.reproduction) and returns its path.

  Args:
    published: What is reproduced.
    runs: See `gather`.
    scale, scale_words: At which size it was run.
    facts: What the page is to say of how it was run, beside seeds and machine.
    folder: Where to.
    run_folder: A run whose pictures of splits are shown, where it has any (figure 3 of CFL is such a picture).
  """
  rows = gather(runs)
  findings = [(claim, claim.check(rows)) for claim in _CLAIMS.get(published.name, ())]
  environment = runs[0][2]['environment']
  told = {
    **facts,
    'seeds': ', '.join(str(seed) for seed in sorted({seed for _, seed, _ in runs})),
    'machine': f'{environment["machine"]}, {environment["cores"]} cores',
    'begun': environment['started'],
    'runs': ', '.join(f'{results["digest"][:12]}' for *_, results in runs),
  }
  drawn = [] if run_folder is None else pictures.draw_splits(read_run(run_folder), folder)
  own = _PAGES.get(published.name) or _PAGES.get(published.name.partition('/')[0])
  if own is not None:
    drawn += own.draw(published, runs, table_scorecard.scale_remark(scale, scale_words), folder)
  return reproduction.write_reproduction(
    published, rows, findings, scale, scale_words, told, folder, by_seed(runs), drawn, own
  )


def by_seed(runs: Runs) -> dict[str, dict[str, list[float]]]:
  """Returns the percentages behind each row's means, one a seed, by the row's name and column; runs as in `gather`.

  Rows of FedAvg alone have no columns.
  """
  found: dict[str, dict[str, list[float]]] = {}
  for rows, _, results in runs:
    for row, clustering in _pairs(rows, results):
      if clustering is None:
        continue
      accuracy, share = _curves(clustering['history'])
      for column, value in _cells(accuracy, share, min(accuracy), max(accuracy)).items():
        found.setdefault(row.name, {}).setdefault(column, []).append(value)
  return found


def gather(runs: Runs) -> dict[str, Reproduced]:
  """Returns our numbers for every row that was run, by the row's name.

  Args:
    runs: One a run: its rows in the order of its clusterings (one row where it has none), its seed, and its results.json.
  """
  found: dict[str, list[tuple[tables.Row, int, Mapping[str, Any], Any]]] = {}
  for rows, seed, results in runs:
    for row, clustering in _pairs(rows, results):
      found.setdefault(row.name, []).append((row, seed, results, clustering))
  return {
    name: _fedavg_alone(entries) if entries[0][3] is None else _reproduced(entries)
    for name, entries in found.items()
  }


def _pairs(
  rows: Sequence[tables.Row], results: Mapping[str, Any]
) -> list[tuple[tables.Row, Mapping[str, Any] | None]]:
  return list(zip(rows, results['clusterings'] or [None], strict=True))


def _fedavg_alone(
  entries: Sequence[tuple[tables.Row, int, Mapping[str, Any], Any]],
) -> Reproduced:
  curves = [_curves(results['baseline']['history']) for _, _, results, _ in entries]
  accuracy, share = (_mean([pair[i] for pair in curves]) for i in (0, 1))
  end = max(accuracy)
  return Reproduced(
      row=entries[0][0], percent={}, baseline={'accuracy_end': accuracy[end], 'share_end': share[end]},
      seeds=tuple(seed for _, seed, _, _ in entries), num_clusters=(), threshold=(), rounds_after=end, rounds_end=end,
      accuracy_curve={}, baseline_curve=accuracy, share_curve={}, baseline_share_curve=share, recovery={},
      baseline_global=_baseline_global(entries), baseline_by_seed=tuple(pair[0] for pair in curves),
  )  # fmt: skip


def _baseline_global(
  entries: Sequence[tuple[tables.Row, int, Mapping[str, Any], Any]],
) -> tuple[float, ...]:
  return tuple(
    100.0 * results['baseline']['evaluation']['global']['accuracy'] for _, _, results, _ in entries
  )


def _reproduced(
  entries: Sequence[tuple[tables.Row, int, Mapping[str, Any], Mapping[str, Any]]],
) -> Reproduced:
  row = entries[0][0]
  clustered = [_curves(clustering['history']) for _, _, _, clustering in entries]
  baseline = [_curves(results['baseline']['history']) for _, _, results, _ in entries]
  accuracy, share = (_mean([curves[i] for curves in clustered]) for i in (0, 1))
  base_accuracy, base_share = (_mean([curves[i] for curves in baseline]) for i in (0, 1))
  after, end = min(accuracy), max(accuracy)
  truths = sorted({name for *_, clustering in entries for name in clustering['recovery']})
  finished = [FinishedRun(Path(), results, {}) for _, _, results, _ in entries]
  found = [run.membership(entry[3]) for run, entry in zip(finished, entries, strict=True)]
  return Reproduced(
    row=row,
    percent=_cells(accuracy, share, after, end),
    baseline=_cells(base_accuracy, base_share, after, end),
    seeds=tuple(seed for _, seed, _, _ in entries),
    choice=tuple(clustering['choice'] for *_, clustering in entries),
    splits=tuple(clustering['splits'] for *_, clustering in entries),
    num_clusters=tuple(clustering['num_clusters'] for *_, clustering in entries),
    threshold=tuple(clustering['threshold'] for *_, clustering in entries),
    rounds_after=after,
    rounds_end=end,
    accuracy_curve=accuracy,
    baseline_curve=base_accuracy,
    share_curve=share,
    baseline_share_curve=base_share,
    recovery={
      name: tuple(clustering['recovery'][name]['ari'] for *_, clustering in entries) for name in truths
    },
    experts=tuple(clustering.get('experts') for *_, clustering in entries),
    baseline_global=_baseline_global(entries),
    baseline_by_seed=tuple(curve for curve, _ in baseline),
    shared={
      name: tuple(
        cluster_contents.shared_clients(matrix, run.truths[name])
        for run, matrix in zip(finished, found, strict=True)
      )
      for name in truths
    },
    together=tuple(
      cluster_contents.together(matrix, run.label_counts) for run, matrix in zip(finished, found, strict=True)
    ),
  )


def _cells(
  accuracy: Mapping[int, float], share: Mapping[int, float], after: int, end: int
) -> dict[str, float]:
  values = (accuracy[after], accuracy[end], share[after], share[end])
  return dict(zip(tables.COLUMNS, values, strict=True))


def _curves(history: Mapping[str, Any]) -> tuple[dict[int, float], dict[int, float]]:
  """Returns mean test accuracy and share of clients at the target by round, in percent."""
  accuracy = {r: 100.0 * a for r, a in zip(history['rounds'], history['test_accuracy'], strict=True)}
  share = {r: 100.0 * s for r, s in zip(history['rounds'], history['share_at_target'], strict=True)}
  return accuracy, share


def _mean(curves: Sequence[Mapping[int, float]]) -> dict[int, float]:
  return {number: float(np.mean([curve[number] for curve in curves])) for number in curves[0]}
