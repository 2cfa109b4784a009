"""All figures of a run: drawn from its results, saved as SVG and PNG, each with a caption that explains it."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import PICTURE
from tff_cluster.base.words import capital, plural, series
from tff_cluster.clustering.recovery import summed_up
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.measured import History
from tff_cluster.experiment.result_parts import Candidate, Clustering
from tff_cluster.papers.rohith2020 import tables
from tff_cluster.report.alternation.pictures import way_figures
from tff_cluster.report.answer import ClusteringAnswer
from tff_cluster.report.figures import (
  accuracy,
  base,
  curves,
  dendrogram,
  embedding,
  heatmaps,
  membership,
  ordering,
)
from tff_cluster.report.files import file_names
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.splits.pictures import split_figures
from tff_cluster.scorecard import identical_clusterings
from tff_cluster.storage.files import write_file


@dataclasses.dataclass(frozen=True, eq=False)
class Picture:
  """A saved figure.

  Attributes:
    name: File name without ending, in RUN/figures.
    section: Where it belongs: 'clients', 'rounds', 'candidates', 'data', 'splits LABEL', 'rounds LABEL' or 'clustering LABEL'.
    title: What it shows, for readers who cannot see it.
    caption: How to read it.
    svg: The file's bytes.
  """

  name: str
  section: str
  title: str
  caption: str
  svg: bytes


def save_drawn(drawn: base.Drawn, folder: Path) -> Picture:
  """Saves a figure, with its name, section, title and caption, as FOLDER/figures/NAME.svg and .png.

  Raises:
    EnvironmentFault: where a file cannot be written.
  """
  name, section, title, caption, figure = drawn
  svg, png = base.render(figure)
  write_file(folder / 'figures' / f'{name}.svg', svg)
  write_file(folder / 'figures' / f'{name}.png', png)
  return Picture(name, section, title, caption, svg)


def of_run(run: FinishedRun, answers: Sequence[ClusteringAnswer], is_of_paper: bool) -> Iterator[base.Drawn]:
  """Draws all figures that the run's results allow, one after the other, in the order of the report.

  Args:
    run: The run, its clusterings as identical_clusterings.merged gives them.
    answers: One for each clustering, see answer.answer_run.
    is_of_paper: Whether captions may say which figure of the paper they are, see papers.rohith2020.setting.
  """
  merged = run.results.clusterings
  # Files are called after the first of the clusterings that share them, but for those that only one of them has.
  labels = [part.label for clustering in merged for part in identical_clusterings.parts(clustering)]
  names = dict(zip(labels, file_names(labels), strict=True))
  firsts = [names[identical_clusterings.parts(clustering)[0].label] for clustering in merged]
  yield from client_figures(run, answers, firsts, is_of_paper)
  yield _rounds_figure(run)
  for clustering, first in zip(merged, firsts, strict=True):
    parts = identical_clusterings.parts(clustering)
    for part in parts:
      yield from split_figures(run, part, names[part.label])
      yield from way_figures(run, part, names[part.label])
    yield from _clustering_figures(run, clustering, first)
    for part in parts:
      yield from _dendrogram(run, part, names[part.label], f'clustering {clustering.label}')
  yield from _candidates_figures(run)
  truth = next(iter(run.truths.values()), None)
  yield (
      # No label gives a name with a full stop.
      'label_histogram.clients', 'data', 'Label histogram of each client',
      'One column a client, one row a label; the darker, the larger the share of that label among the client’s '
      'training rows, white for none.' + (' Clients of a planted group stand side by side.' if truth is not None else '')
      + _pixels(len(run.client_ids), 'clients', 'the mean of their shares'),
      heatmaps.label_histogram(
          run.label_counts, run.client_ids, 'Labels of each client', 'client',
          order=None if truth is None else ordering.client_order(truth),
      ),
  )  # fmt: skip


def client_figures(
  run: FinishedRun, answers: Sequence[ClusteringAnswer], names: Sequence[str], is_of_paper: bool
) -> Iterator[base.Drawn]:
  """Draws every client's accuracy before and after each clustering; `names` are those of the clusterings in files."""
  if not answers:
    return
  phase1 = np.asarray(run.results.phase1.evaluation.client_accuracy)
  for clustering, name in zip(run.results.clusterings, names, strict=True):
    label, methods = clustering.label, [part.method for part in identical_clusterings.parts(clustering)]
    drawn_there = [tables.FIGURES[method] for method in methods if is_of_paper and method in tables.FIGURES]
    beside = rules.with_role(PICTURE)
    shown = min(len(phase1), accuracy.MOST_CLIENTS)
    yield (
        f'client_accuracies_{name}', 'clients', f'Test accuracies of {plural(shown, "client")} before and after, {label}',
        ''.join(f'{figure}. ' for figure in dict.fromkeys(drawn_there))
        + f'Each row is a client{"" if shown == len(phase1) else f" ({shown} spread evenly over all {len(phase1)})"}: '
        'the ring is the Phase 1 model, the diamond the client’s own model after Phase 2, the bar that of Phase 3 '
        f'({beside.words}). Marks to the right of the ring are gains.',
        accuracy.client_accuracies(
            run.client_ids,
            {
                'Phase 1': phase1, 'own model (Phase 2)': np.asarray(results_lib.own(clustering).client_accuracy),
                f'{beside.name} (Phase 3)': np.asarray(results_lib.with_role(clustering, PICTURE).client_accuracy),
            },
            f'{base.short(label, 40)}: before and after',
        ),
    )  # fmt: skip
  yield (
      'client_differences', 'clients', 'Gain or loss of every client against the unclustered model',
      'Every bar is a client: accuracy with its own model after Phase 2 minus accuracy with the unclustered model '
      'after as many rounds, best gain first. The dashed line is the mean, the grey band its 95% interval over '
      'clients: where the band touches zero, nothing was shown.',
      accuracy.client_differences([(a.label, a.differences, a.over_baseline) for a in answers]),
  )  # fmt: skip


def _rounds_figure(run: FinishedRun) -> base.Drawn:
  first = run.results.config.training.phase1_rounds

  def curve(history: History) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(history.rounds, np.int64), np.asarray(history.test_accuracy, np.float64)

  random = [c for c in run.results.clusterings if c.alternation and c.alternation.first_round < first]
  rounds, accuracies = curve(run.results.baseline.history)
  later = rounds > first  # Up to there it is Phase 1 itself.
  figure = curves.accuracy_over_rounds(
    curve(run.results.phase1.history),
    (rounds[later], accuracies[later]),
    {c.label: curve(c.history) for c in run.results.clusterings},
    first,
    {each.title: curve(each.history) for each in run.results.personalized},
    [c.label for c in random],
  )
  caption = (
    'Mean over clients of the accuracy on their own test rows, a client in several clusters '
    'counting with the mean over their models. '
    'The dotted vertical line is the round after which clients were clustered; the right panel enlarges what follows. '
    'A clustering helps where its line stays above the unclustered one.'
  )
  if random:
    caption += f' Models of {", ".join(c.label for c in random)} began at random, not with what Phase 1 made.'
  if run.results.personalized:
    caption += ' Grey lines are of clients that have models of their own without clusters.'
  parts = [part for c in run.results.clusterings for part in identical_clusterings.parts(c)]
  if recursive := [part.label for part in parts if part.splits is not None]:
    caption += f' {series(recursive)} may split clients first after that round, and again later.'
  return 'accuracy_over_rounds', 'rounds', 'Accuracy over rounds', caption, figure


def _clustering_figures(run: FinishedRun, clustering: Clustering, name: str) -> Iterator[base.Drawn]:
  label, matrix, count = clustering.label, run.membership(clustering), len(run.client_ids)
  shares = run.shares(clustering)
  found, order = base.labels_of(matrix), ordering.client_order(shares == shares.max(axis=0))
  truth_name, truth = next(iter(run.truths.items()), ('', None))
  heading, section = base.short(label, 40), f'clustering {label}'
  yield (
      f'membership_{name}', section, f'Membership matrix, {label}',
      'A blue cell says that the client (column) is in the cluster (row)'
      + ('.' if clustering.shares is None else ', the paler the smaller its share.')
      + (' The green cells above are the planted groups on the same columns: where both show the same blocks, the '
         'clustering found them.' if truth is not None else '')
      + _pixels(len(matrix), 'clusters', 'blue where any client of them is in any cluster of them')
      + _pixels(count, 'clients', 'blue where any of them is in the cluster'),
      membership.membership_matrix(shares, run.client_ids, f'{heading}: clusters', truth, truth_name, order),
  )  # fmt: skip
  # A recursion clusters other updates in every split, and these distances are those of one round.
  at_once = [part for part in identical_clusterings.parts(clustering) if part.splits is None]
  for i, kind in enumerate(dict.fromkeys(part.signature for part in at_once)):
    yield from _geometry_figures(run, clustering, kind, f'{name}.{kind}' if i else name, order)
  yield (
      f'label_histogram_{name}', section, f'Label histogram of each cluster, {label}',
      'One column a cluster, one row a label; the darker, the larger the share of that label among the training rows '
      'of the cluster’s members' + ('' if found is not None else ' (a client’s rows count in each of its clusters)') + '.'
      + _pixels(len(matrix), 'clusters', 'the mean of their shares'),
      heatmaps.label_histogram(
          (matrix @ run.label_counts).astype(np.int64), [str(row) for row in range(len(matrix))],
          f'{heading}: labels of each cluster', 'cluster', ordering.cluster_order(matrix, order),
      ),
  )  # fmt: skip


def _geometry_figures(
  run: FinishedRun, clustering: Clustering, kind: str, name: str, order: np.ndarray
) -> Iterator[base.Drawn]:
  """Yields the distances and the plane of one kind of signature, with the clusters; clients in this order."""
  label, matrix, count = clustering.label, run.membership(clustering), len(run.client_ids)
  found, heading, section = base.labels_of(matrix), base.short(label, 40), f'clustering {label}'
  truth_name, truth = next(iter(run.truths.items()), ('', None))
  strip, groups = run.main_groups
  shown, distances, positions = run.geometry(kind)
  ids = [client_id for client_id, drawn in zip(run.client_ids, shown, strict=True) if drawn]
  left_out = _left_out(count - len(ids))
  if distances is not None:
    yield (
        f'distances_{name}', section, f'Distance matrix ordered by cluster, {label}',
        f'Euclidean distances between the clients’ {kind}, members of a cluster side by side'
        + (_parted(len(matrix)) if found is not None else ' (with overlap: clients with similar memberships)')
        + '. Dark blocks on the diagonal are clients that lie close together; a clustering fits where its blocks are '
        'the dark ones.' + (f' The strip at the top is the planted group (“{strip}”).' if base.has_strip(_those(groups, shown)) else '')
        + _pixels(len(ids), 'clients', 'the mean over their pairs') + left_out,
        heatmaps.distance_matrix(
            distances, order if shown.all() else ordering.client_order(matrix[:, shown]), ids, f'{heading}: distances between {kind}',
            _those(found, shown), _those(groups, shown),
        ),
    )  # fmt: skip
  if positions is not None:
    yield (
        f'embedding_{name}', section, f'Clients in the plane, {label}',
        f'Classical scaling of the distances between {kind}: clients that lie close together have similar {kind}, as '
        'far as two dimensions can show it; directions mean nothing. '
        + ('Colour and shape are the cluster' if found is not None else 'Colour is the number of clusters a client is in')
        + (
            '; on the right the planted groups, a client of two groups in both colours.'
            + (' A cluster has the colour of the group it matches best.' if found is not None else '')
            if truth is not None else '.'
        ) + left_out,
        embedding.embedding(positions, matrix[:, shown], None if truth is None else truth[:, shown], truth_name, label),
    )  # fmt: skip


def _dendrogram(run: FinishedRun, clustering: Clustering, name: str, section: str) -> Iterator[base.Drawn]:
  """Yields the merges of a hierarchical clustering; nothing for others."""
  label, matrix, count = clustering.label, run.membership(clustering), len(run.client_ids)
  found, heading = base.labels_of(matrix), base.short(label, 40)
  strip, groups = run.main_groups
  clustered = run.clustered(clustering)
  tree = run.array(f'linkage_{label}', int(clustered.sum()) - 1, 4)
  if tree is not None and found is not None and len(tree):
    yield (
        f'dendrogram_{name}', section, f'Dendrogram, {label}',
        'Each leaf is a client; branches join at the distance at which their clusters merge. The dashed line is the cut: '
        'what hangs together below it is a cluster and has one colour, grey branches lie above'
        + (' or are of small clusters.' if len(matrix) > base.MOST_COLOURS else '.')
        + (f' The strip shows the planted groups (“{strip}”).' if groups is not None and clustered.sum() <= dendrogram.MOST_LEAVES else '')
        + _left_out(count - int(clustered.sum())),
        dendrogram.dendrogram(
            tree, clustering.threshold, found[clustered], [run.client_ids[k] for k in np.flatnonzero(clustered)],
            f'{heading}: dendrogram', _those(groups, clustered),
        ),
    )  # fmt: skip


def _those(labels: np.ndarray | None, shown: np.ndarray) -> np.ndarray | None:
  return None if labels is None else labels[shown]


def _parted(clusters: int) -> str:
  return ', white lines between clusters' if clusters <= base.MOST_PARTED else ''


def _left_out(count: int) -> str:
  return f' Not shown: {plural(count, "client")} whose updates were not finite.' if count else ''


def _pixels(count: int, what: str, words: str) -> str:
  """Returns what a pixel of a matrix means that stands for several clients or clusters; '' where each has its own."""
  size = base.block(count)
  return '' if size == 1 else f' A pixel stands for {size} of the {count:,} {what}: {words}.'


def _candidates_figures(run: FinishedRun) -> Iterator[base.Drawn]:
  sweeps: dict[tuple[str, str], dict[int, Candidate]] = {}
  for candidate in run.results.candidates:
    if candidate.told is not None:
      sweeps.setdefault((candidate.method, candidate.signature), {})[candidate.told] = candidate
  methods = {method for method, _ in sweeps}
  for method, signature in sorted(sweeps):
    words = ['candidates', *([method] if len(methods) > 1 else []), *([signature] if len(sweeps) > 1 else [])]
    counts = sorted(sweeps[method, signature])
    if len(counts) < 2:
      continue
    swept = [sweeps[method, signature][count] for count in counts]
    recovery = {}
    for truth, groups in run.truths.items():
      scores = [c.recovery[truth] for c in swept if c.recovery and truth in c.recovery]
      if len(scores) == len(swept):
        measure, values = summed_up(scores, [groups])
        recovery[f'{measure} with “{truth}”'] = np.array(values)
    title = swept[0].title
    silhouettes = np.array([np.nan if c.silhouette is None else c.silhouette for c in swept])
    used = [
        c.told for merged in run.results.clusterings for c in identical_clusterings.parts(merged)
        if c.method == method and c.signature == signature and c.told is not None
    ]  # fmt: skip
    yield (
        '_'.join(words), 'candidates', f'{capital(title)} candidates, {signature}',
        f'Clusterings of the clients’ {signature} that cost no training. The silhouette compares how close a client is to '
        'its own cluster and to the next one, 1 at best.'
        + (' Agreement with the planted groups is 1 for exactly those and 0 for chance; it is known here only because the '
           'groups were planted.' if recovery else ''),
        curves.candidate_sweep(np.array(counts, np.int64), silhouettes, recovery, used),
    )  # fmt: skip
