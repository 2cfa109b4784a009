"""The figures of a clustering by bi-partition, with captions that explain them."""

from collections.abc import Iterator, Sequence

import numpy as np

from tff_cluster.base import arrays
from tff_cluster.base.words import plural
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.report.figures import base, similarities, splits
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.splits_tree import Recursion, SplitTest, read_recursion

# What equation 5 says of a cluster that is stopped, and all that it says.
SHORT = 'no client’s update is longer than stopping_norm'
_MOST_MATRICES = 12
_MOST_STRIPS = 10
_FATES = {'alone': 'alone', 'stopped': 'stopped', 'kept': 'kept whole', 'open': 'training on'}


def split_figures(run: FinishedRun, clustering: Clustering, name: str) -> Iterator[base.Drawn]:
  """Yields (file name, section, title, caption, figure), none where a clustering was found in one step.

  Args:
    run: The run.
    clustering: One of the run's.
    name: The clustering's part of file names.
  """
  recursion = read_recursion(run, clustering)
  if recursion is None:
    return
  label = clustering.label
  section, heading = f'splits {label}', base.short(label, 40)
  numbers = np.zeros(recursion.num_clients, np.int64)
  for number, cluster in enumerate(recursion.clusters):
    numbers[cluster] = number
  truth_name, groups = run.main_groups
  matched = (
    f' A cluster has the colour of the planted group (“{truth_name}”) it matches best.'
    if groups is not None
    else ''
  )
  if recursion.accuracy is not None:
    history = run.results.baseline.history
    yield (
        f'split_accuracy_{name}', section, f'Accuracy of every client over rounds, {label}',
        'Figure 3 (left) of Sattler et al. 2019. A thin line is a client: accuracy on its own test rows of the model '
        'that it uses in that round, before the first split the common one. The bold line is the mean of a final '
        'cluster, the dashed one the mean of the unclustered model after as many rounds; dotted vertical lines are '
        f'splits.{matched} A split helps where lines rise right after it and leave the dashed one below.',
        splits.accuracy_per_client(
            recursion.accuracy, numbers, recursion.split_rounds,
            (np.asarray(history.rounds, np.int64), np.asarray(history.test_accuracy, np.float64)),
            f'{heading}: accuracy per client', groups,
        ),
    )  # fmt: skip
  if recursion.splits:
    stages, fates = recursion.stages(), [_FATES[recursion.fate(c)] for c in recursion.clusters]
    yield (
        f'split_flow_{name}', section, f'How the clusters came apart, {label}',
        'Clients flow from the left, where all train together, to the final clusters on the right; heights are numbers '
        'of clients, black blocks are clusters. '
        + (f'Bands are planted groups (“{truth_name}”): where each final cluster ends one colour, they were found.'
           if groups is not None else 'Bands have the colours of the final clusters.')
        + f' “Stopped”: {SHORT}; “kept whole”: a guard forbade a split; “training on”: not tested again '
        'before the last round.'
        + (f' {plural(len(stages) - 1, "round")} had splits, some are left out.' if len(stages) > 8 else ''),
        splits.split_flow(stages, numbers, f'{heading}: split after split', fates, groups),
    )  # fmt: skip
  yield from _similarity_figures(run, recursion, (name, section, label), groups)


def telling(tests: Sequence[SplitTest], most: int) -> list[SplitTest]:
  """Returns at most so many tests, in their order: splits before others, each spread evenly where they are too many.

  Of a cluster that was tested again and again the last test stands for all.
  """
  last = sorted({frozenset(test.members.tolist()): i for i, test in enumerate(tests)}.values())
  kinds = ([i for i in last if (tests[i].verdict == 'split') == is_split] for is_split in (True, False))
  chosen: list[int] = []
  for kind in kinds:
    room = most - len(chosen)
    chosen += [kind[i] for i in arrays.evenly(len(kind), room)] if kind and room > 0 else []
  return [tests[i] for i in sorted(chosen)]


def _similarity_figures(
  run: FinishedRun, recursion: Recursion, names: tuple[str, str, str], groups: np.ndarray | None
) -> Iterator[base.Drawn]:
  name, section, label = names
  heading = base.short(label, 24)

  def pick(most: int) -> tuple[list[SplitTest], str]:
    picked = telling([t for t in recursion.tests if t.similarity is not None and len(t.members) > 1], most)
    left_out = len(recursion.tests) - len(picked)
    return picked, (
      f' Left out: {plural(left_out, "test")} (of a single client, repeated later, or beyond the {most} for which there is room).'
      if left_out
      else ''
    )

  tests, rest = pick(_MOST_MATRICES)
  if tests:
    yield (
        f'similarities_{name}', section, f'Similarities of updates at each test, {label}',
        'Cosine similarity of the updates that the clients of a stationary cluster sent: blue is the same direction, red '
        'opposite ones. Clients are sorted by the halves of the best bi-partition, between which the black lines run; '
        'it was made for “split”, not made for “kept”, and not asked for where the cluster was “stopped”. A split is '
        'clear where the squares on the diagonal are bluer than what lies outside of them.'
        + (' The strip above is the planted group.' if base.has_strip(groups) else '') + rest,
        similarities.similarity_matrices(tests, run.client_ids, f'{heading}: similarities of updates', groups),
    )  # fmt: skip
  tests, rest = pick(_MOST_STRIPS)
  if tests:
    yield (
        f'similarity_pairs_{name}', section, f'Similarity of every pair of clients, {label}',
        'Figure 3 (right) of Sattler et al. 2019. A dot is a pair of clients that trained together. '
        + ('Blue pairs are of one planted group, orange ones of two; pairs in a cluster of one group alone are grey: '
           'nothing is left to part there.' if groups is not None else
           'Orange pairs are parted by the best bi-partition, blue ones are not; grey ones are of a cluster that was stopped.')
        + ' The black line is the highest similarity across the halves, which the bi-partition makes as low as '
        'possible; the red arrow is the gap by which every client is at least more similar to one of its own half.' + rest,
        similarities.similarity_dots(tests, f'{heading}: pairs of clients at each test', groups),
    )  # fmt: skip
