"""The pictures of a page on a published table or figure; all are saved in its folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tff_cluster.base.words import capital
from tff_cluster.report import pictures
from tff_cluster.report.answer import answer_run
from tff_cluster.report.files import file_names
from tff_cluster.report.finished_run import FinishedRun, read_run
from tff_cluster.report.pictures import Picture
from tff_cluster.report.splits.pictures import split_figures
from tff_cluster.scorecard import cluster_contents
from tff_cluster.scorecard.curves import TARGETS
from tff_cluster.scorecard.rows import Ours
from tff_cluster.studies.reproduction import figures
from tff_cluster.studies.reproduction.label_frequencies_figure import label_frequencies
from tff_cluster.studies.reproduction.replication_figure import curves_by_setting

Rows = Mapping[str, Ours]
_SOURCES = ('MNIST', 'CIFAR-10')


def curves(method: str, rows: Rows, folder: Path, remark: str) -> list[Picture]:
  """Draws accuracy and share of clients at the target over rounds, a panel a row with clusters."""
  accuracies = [
    figures.Panel(n, r.accuracy_curve, r.baseline_curve, r.rounds_after - 1)
    for n, r in rows.items()
    if len(r.accuracy_curve) > 1
  ]
  shares = [
    figures.Panel(n, r.share_curve, r.baseline_share_curve, r.rounds_after - 1)
    for n, r in rows.items()
    if len(r.share_curve) > 1 and any([*r.share_curve.values(), *r.baseline_share_curve.values()])
  ]
  drawn = []
  for name, quantity, panels in (
    ('accuracy_over_rounds', 'mean client test accuracy', accuracies),
    ('share_over_rounds', 'clients at the target accuracy', shares),
  ):
    if not panels:
      continue
    title = f'{capital(quantity)} over rounds'
    caption = f'Means over seeds. The upright line is where clients may be clustered first ({method}); up to there both are one training.'
    caption += f' {capital(remark)}.' if remark else ''
    figure = figures.curves_by_row(panels, f'{quantity}, %', remark, method)
    drawn.append(pictures.save_drawn((name, 'rounds', title, caption, figure), folder))
  return drawn


def labels(rows: Rows, folder: Path, remark: str) -> list[Picture]:
  """Draws the labels in each cluster of every row, of the first seed."""
  drawn = []
  for row, ours in rows.items():
    first = ours.runs[0]
    run = FinishedRun(folder, first.results, {})
    assert first.clustering is not None
    matrix, noise = run.membership(first.clustering), run.truths.get('source')
    counts = cluster_contents.rows_by_label(matrix, run.label_counts, noise)
    sizes = cluster_contents.shared_clients(
      matrix, np.ones((1, len(run.client_ids))) if noise is None else noise
    )
    caption = (
      'A panel is a cluster, a bar the training rows of its clients with one label, all to one scale. '
    )
    if noise is not None:
      caption += 'Labels 0 to 9 are digits of MNIST and, in the other colour, classes of CIFAR-10. '
    caption += f'The numbers of clusters mean nothing. Seed {first.seed}.'
    figure = label_frequencies(counts, sizes, _SOURCES if noise is not None else (), remark)
    name, title = f'labels_{row.replace(" ", "_")}', f'Labels in each of {row}'
    drawn.append(pictures.save_drawn((name, 'clusters', title, caption, figure), folder))
  return drawn


def settings(title: str, rows: Rows, folder: Path, remark: str) -> list[Picture]:
  """Draws FedAvg alone by batch size and epochs, a panel a kind of clients; the rows' settings say which they have."""
  if not rows:
    return []
  panels: dict[str, dict[tuple[str, str], Mapping[int, float]]] = {}
  told: dict[str, dict[int, str]] = {'batch_size': {}, 'local_epochs': {}}
  for name, ours in rows.items():
    batch, epochs = (ours.row.settings[field] for field in told)
    told['batch_size'][batch] = f'B = {batch or "∞"}'
    told['local_epochs'][epochs] = f'E = {epochs}'
    key = (told['batch_size'][batch], told['local_epochs'][epochs])
    panels.setdefault(name.partition(',')[0], {})[key] = ours.baseline_curve
  batches = [told['batch_size'][batch] for batch in sorted(told['batch_size'], key=lambda b: b or np.inf)]
  epochs = [words for _, words in sorted(told['local_epochs'].items())]
  figure = curves_by_setting(panels, batches, epochs, TARGETS, remark)
  caption = (
    'Test accuracy after each round, means over seeds. The upright axis begins where the last half of every curve fits. '
    f'The grey lines are at {", ".join(f"{target:g}%" for target in TARGETS)}.'
  )
  return [pictures.save_drawn(('fedavg', 'rounds', title, caption, figure), folder)]


def splits(run_folder: Path | None, folder: Path) -> list[Picture]:
  """Draws the splits of a run's recursions."""
  if run_folder is None:
    return []
  run = read_run(run_folder)
  return [
    pictures.save_drawn(drawn, folder)
    for clustering, name in zip(run.results.clusterings, _file_names(run), strict=True)
    for drawn in split_figures(run, clustering, name)
  ]


def clients(run_folder: Path | None, folder: Path) -> Sequence[Picture]:
  """Draws every client's accuracy before and after, of each clustering of a run."""
  if run_folder is None:
    return []
  run = read_run(run_folder)
  drawn = pictures.client_figures(run, answer_run(run.results), _file_names(run), is_of_paper=True)
  return [pictures.save_drawn(each, folder) for each in drawn]


def _file_names(run: FinishedRun) -> list[str]:
  return file_names([clustering.label for clustering in run.results.clusterings])
