"""A finished run as pandas DataFrames, for scripts and notebooks: `tff_cluster.load(run_folder)`.

Nothing is trained or written, and TensorFlow is not imported. Each table is in long form, a line for each thing that was measured, so
that tables of several runs can be put below each other (`pandas.concat`). `COLUMNS` says what the columns are.
"""

import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_cluster.base.errors import InputError
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.config import FEDAVG, ExperimentConfig
from tff_cluster.experiment.measured import Evaluation, History
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.report import finished_run
from tff_cluster.storage import files

if TYPE_CHECKING:
  import pandas as pd


_CONTENDER = {
  'contender': 'What is compared: "FedAvg without clusters", a baseline, or the label of a clustering.',
  'kind': 'fedavg, local, fine_tuning, ditto, oracle, disjoint or overlapping.',
}
_OF_ROWS = {
  'accuracy': 'Share of all rows that are predicted right, 0 to 1.',
  'precision': 'Mean over classes, 0 to 1.',
  'recall': 'Mean over classes, 0 to 1.',
  'loss': 'Mean cross-entropy in nats; missing where it is not finite, or the rule predicts classes only.',
}
# The columns of each table in their order, with their units.
COLUMNS: dict[str, dict[str, str]] = {
  'summary': _CONTENDER
  | {
    'mean_client_accuracy': 'Mean over clients of the test accuracy with the model that each uses at the end, 0 to 1.',
    'difference': 'To FedAvg without clusters, client by client, -1 to 1.',
    'low': 'Lower end of its 95% interval over clients.',
    'high': 'Upper end of it.',
    'num_clusters': 'Number of clusters.',
    'ari': 'Adjusted Rand index against the first planted groups.',
    'omega': 'Omega index against them, for overlapping clusters.',
    'share_match': '1 minus the share error against them, where every client has rows of every group and neither of the others tells anything.',
    'client_rounds': 'Local trainings, each of one client and one model: of finding the clusters and of Phase 2; of a method that starts from '
    'random models, or of clients with models of their own, all less FedAvg’s in Phase 1.',
    'bytes': 'Sent and received in the same rounds.',
  },
  'history': _CONTENDER
  | {
    'phase': '1 or 2.',
    'round': 'Number of the round, from 1 over both phases; of a clustering those of Phase 2 only.',
    'validation_accuracy': 'Mean over clients on their validation rows, 0 to 1.',
    'test_accuracy': 'Mean over clients on their test rows, 0 to 1; a client in several one-shot clusters has the mean of what their models '
    'reach there, while the summary has the model that it uses.',
    'share_at_target': 'Share of the clients whose test accuracy is at least the target of the configuration, 0 to 1.',
  },
  'clients': _CONTENDER
  | {
    'client': 'Id of the client.',
    'group': 'Number of its planted group, from 0; missing where none is planted, or clients belong to several.',
    'malicious': 'Whether it attacks.',
    'train_rows': 'Number of its training rows.',
    'num_labels': 'Number of different labels among them.',
    'clusters': 'Tuple of the numbers of its clusters; empty without clusters.',
    'accuracy': 'On its own test rows at the end, with the model that it uses, 0 to 1.',
    'gain': 'That minus its accuracy under FedAvg without clusters, -1 to 1.',
  },
  'clusters': {
    'contender': 'Label of the clustering.',
    'cluster': 'Number of the cluster, from 0.',
    'size': 'Number of members.',
    'members': 'Tuple of their ids.',
    'group': 'Planted group that most members are of; missing where none is planted, or clients belong to several.',
    'group_share': 'Share of the members that are of it, 0 to 1.',
    'best_validation': 'Highest accuracy that its model attained on validation rows of members, 0 to 1; of a method that alternates '
    'that of the last round.',
    'accuracy': 'Of its model on test rows of members, 0 to 1.',
    'global_accuracy': 'Of its model on the global test set, 0 to 1.',
  },
  'evaluations': _CONTENDER
  | {
    'rule': 'Name of the rule of Phase 3; empty without clusters.',
    'words': 'What reports call it.',
    'mean_client_accuracy': 'Mean over clients on their own test rows, 0 to 1.',
    'highest_client_accuracy': 'Highest accuracy of a client, 0 to 1.',
    'share_at_highest': 'Share of the clients that have it, 0 to 1.',
  }
  | _OF_ROWS
  | {
    f'global_{name}': f'On the global test set, where all clients have one model: {text[0].lower()}{text[1:]}'
    for name, text in _OF_ROWS.items()
  },
}
_WHOLE = ('num_clusters', 'group')


@dataclasses.dataclass(frozen=True)
class _Contender:
  """FedAvg without clusters, a baseline of own models, or a clustering; `own` are the models that its clients use."""

  label: str
  kind: str
  history: History
  own: Evaluation
  clustering: Clustering | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class LoadedRun:
  """A finished run.

  Attributes:
    finished: Its folder, its results.json as records, and its arrays.npz.
  """

  finished: finished_run.FinishedRun

  def __repr__(self) -> str:
    labels = ', '.join(each.label for each in self._contenders())
    return f'<run {self.folder}: {self.results.population.name}, {len(self.finished.client_ids)} clients; {labels}>'

  @property
  def folder(self) -> pathlib.Path:
    return self.finished.path

  @property
  def config(self) -> ExperimentConfig:
    """The experiment, as `run_experiment` takes it."""
    return self.results.config

  @property
  def results(self) -> results_lib.Results:
    """Everything in results.json (tff_cluster/experiment/results.py)."""
    return self.finished.results

  def summary(self) -> 'pd.DataFrame':
    """Returns a line for each contender, the same that the run printed at its end; identical clusterings share one."""
    lines = []
    for line in self.results.summary:
      low, high = line.interval or (None, None)
      lines.append({'contender': line.label, 'low': low, 'high': high} | vars(line))
    return _table('summary', lines)

  def history(self) -> 'pd.DataFrame':
    """Returns a line for each contender and round, means over clients.

    A clustering has the rounds of Phase 2 only: Phase 1 is that of FedAvg.
    """
    lines = []
    for contender in self._contenders():
      measured = contender.history
      values = zip(
        measured.rounds,
        measured.validation_accuracy,
        measured.test_accuracy,
        measured.share_at_target,
        strict=True,
      )
      for number, *figures in values:
        phase = 1 if number <= self.results.phase1.rounds else 2
        lines.append((contender.label, contender.kind, phase, number, *figures))
    return _table('history', lines)

  def clients(self) -> 'pd.DataFrame':
    """Returns a line for each contender and client, in the order of the population, with the model that the client uses."""
    counts, (_, groups) = self.finished.label_counts, self.finished.main_groups
    malicious = set(self.results.malicious.client_ids) if self.results.malicious else set()
    baseline = self.results.baseline.evaluation.client_accuracy
    lines = []
    for contender in self._contenders():
      member_of = self._clusters_of_clients(contender.clustering)
      for k, client in enumerate(self.finished.client_ids):
        group = None if groups is None else int(groups[k])
        rows, labels = int(counts[k].sum()), int((counts[k] > 0).sum())
        accuracy = contender.own.client_accuracy[k]
        about = (client, group, client in malicious, rows, labels, member_of[k])
        lines.append((contender.label, contender.kind, *about, accuracy, accuracy - baseline[k]))
    return _table('clients', lines)

  def clusters(self) -> 'pd.DataFrame':
    """Returns a line for each cluster of each clustering."""
    _, groups = self.finished.main_groups
    lines = []
    for clustering in self.results.clusterings:
      scores, inside = clustering.cluster_scores['unblended'], self.finished.membership(clustering) > 0
      for number, members in enumerate(clustering.clusters):
        group, share = (None, None) if groups is None else _most_common(groups[inside[number]])
        accuracies = (clustering.best_validation[number], scores.members[number], scores.global_test[number])
        lines.append((clustering.label, number, len(members), tuple(members), group, share, *accuracies))
    return _table('clusters', lines)

  def evaluations(self) -> 'pd.DataFrame':
    """Returns a line for each contender and rule of Phase 3, at the end of the run; contenders without clusters have no rule."""
    words = results_lib.rule_words(self.results)
    lines = []
    for contender in self._contenders():
      clustering = contender.clustering
      by_rule = {'': contender.own} if clustering is None else clustering.evaluations
      for rule, found in by_rule.items():
        of_global = dict.fromkeys(_OF_ROWS) if found.global_test is None else vars(found.global_test)
        shown = {
          'contender': contender.label,
          'kind': contender.kind,
          'rule': rule,
          'words': words.get(rule, ''),
        }
        lines.append(
          shown | vars(found.clients) | {f'global_{name}': value for name, value in of_global.items()}
        )
    return _table('evaluations', lines)

  def _contenders(self) -> Iterator[_Contender]:
    found = self.results
    yield _Contender(FEDAVG, 'fedavg', found.baseline.history, found.baseline.evaluation)
    for own in found.personalized:
      yield _Contender(own.title, own.name, own.history, own.evaluation)
    for each in found.clusterings:
      yield _Contender(each.label, each.kind, each.history, results_lib.own(each), each)

  def _clusters_of_clients(self, clustering: Clustering | None) -> list[tuple[int, ...]]:
    """Returns the numbers of each client's clusters; of none without a clustering."""
    if clustering is None:
      return [()] * len(self.finished.client_ids)
    inside = self.finished.membership(clustering) > 0
    return [tuple(np.flatnonzero(column).tolist()) for column in inside.T]


def load(run_folder: str | pathlib.Path) -> LoadedRun:
  """Reads a finished run; see LoadedRun.

  Args:
    run_folder: The `output_dir` of the run.

  Raises:
    InputError: if the folder holds no finished run, or one of another schema, or it is damaged or cannot be read.
  """
  try:
    return LoadedRun(finished_run.read_run(pathlib.Path(run_folder)))
  except files.DamagedFile as error:
    raise InputError(error.marked) from error


def load_all(folder: str | pathlib.Path) -> dict[str, LoadedRun]:
  """Reads the finished runs that lie in a folder, such as the seeds of a comparison; returns them by the names of their folders.

  Raises:
    InputError: as `load` does; also if there are none.
  """
  found = sorted(pathlib.Path(folder).glob('*/results.json'))
  if not found:
    raise InputError(
      f'{folder}: no folder in it holds a finished run; give the folder around the output_dir of runs'
    )
  return {path.parent.name: load(path.parent) for path in found}


def _table(name: str, lines: Sequence[Any]) -> 'pd.DataFrame':
  """Returns lines as a DataFrame with the columns of COLUMNS[name]."""
  import pandas as pd

  found = pd.DataFrame(lines, columns=list(COLUMNS[name]))
  missing = [column for column in found if len(found) and found[column].isna().all()]
  return found.astype(
    dict.fromkeys(missing, float) | {column: 'Int64' for column in _WHOLE if column in found}
  )


def _most_common(groups: np.ndarray) -> tuple[int, float]:
  """Returns the group that most of int[members] are of, the first of several, and their share."""
  counts = np.bincount(groups)
  return int(counts.argmax()), float(counts.max() / counts.sum())
