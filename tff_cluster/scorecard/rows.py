"""A row of a published table, and our side of it: the runs behind the row, and what can be read from them."""

import dataclasses
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tff_cluster.aggregation import rules
from tff_cluster.base import digests
from tff_cluster.base.errors import InputError
from tff_cluster.experiment.measured import Choice, Evaluation, Experts, History
from tff_cluster.experiment.result_parts import Clustering, Split
from tff_cluster.experiment.results import Results, own
from tff_cluster.scorecard import cluster_contents

# By column of a table in the most frequent form: right after the clustering (the first round of Phase 2), and in the last round.
COLUMNS = ('accuracy_after', 'accuracy_end', 'share_after', 'share_end')
# FedAvg on skewed clients goes up and down by points from round to round. What it has in the end is therefore judged on the mean
# of so many rounds up to the printed one, or of fewer (studies/reproduction/runs.py: window_rounds). Right after the clustering it
# still rises, so that a mean over rounds would be another number.
WINDOW = 10
# What of a run a number is about: FedAvg up to the clustering, FedAvg without clusters to the end, or the clusters; clients alone, and
# those that fine-tune FedAvg, are called as in PERSONALIZED (experiment/sections.py).
PHASE1, BASELINE, CLUSTERS = 'phase1', 'baseline', 'clusters'
ALONE, FINE_TUNED = 'local', 'fine_tuning'
BEST_EXPERT = 'best expert alone'
Curve = Mapping[int, float]


@dataclasses.dataclass(frozen=True)
class Row:
  """A row of a table, or the curve of a figure, as an experiment.

  Attributes:
    name: How the row is called, for instance 'cf 0.2, n 10' or 'cosine, average'.
    settings: The fields of the base experiment that this row changes, by name.
    clustering: The fields of its clustering, by name; empty for FedAvg alone, which no other row of the table has with
      the same settings.
    prescribed: Parameters of the clustering that the paper gives; where a run has another value, lines say so.
    is_strict: Whether another value makes it another experiment, whose numbers do not stand beside the printed ones.
    preset: The base experiment in place of the table's; empty: the table's.
  """

  name: str
  settings: Mapping[str, Any]
  clustering: Mapping[str, Any]
  prescribed: Mapping[str, str] = dataclasses.field(default_factory=dict)
  is_strict: bool = False
  preset: str = ''

  def departures(self, clustering: Clustering) -> list[str]:
    """Returns in what a clustering differs from what the paper prescribes, one phrase each."""
    told = {'signature': clustering.signature, **clustering.parameters}
    return [
      f'{name} {told[name]}, the paper has {value}'
      for name, value in self.prescribed.items()
      # What a run leaves at None is the method's own default, which is the paper's.
      if told.get(name) not in (None, value)
    ]


@dataclasses.dataclass(frozen=True)
class Run:
  """A run of a row: its seed, its results, and the clustering among them (None: FedAvg alone)."""

  seed: int
  results: Results
  clustering: Clustering | None


@dataclasses.dataclass(frozen=True, eq=False)
class Ours:
  """Our side of a row; all that is read has one value a seed, in their order, unless it is called a mean.

  Accuracies and shares are in percent, rounds are counted from 1. FedAvg alone has no clusters: what is about them is
  empty, and rounds_after is the last round.

  Attributes:
    row: The row.
    runs: Its runs, one a seed.
    window_rounds: Of how many rounds the window is, at most.
  """

  row: Row
  runs: tuple[Run, ...]
  window_rounds: int = WINDOW

  @cached_property
  def seeds(self) -> tuple[int, ...]:
    return tuple(run.seed for run in self.runs)

  @cached_property
  def clusterings(self) -> tuple[Clustering, ...]:
    return tuple(run.clustering for run in self.runs if run.clustering is not None)

  @cached_property
  def departures(self) -> list[str]:
    """In what the clusterings differ from what the paper prescribes, one phrase each."""
    return list(dict.fromkeys(phrase for c in self.clusterings for phrase in self.row.departures(c)))

  @cached_property
  def accuracy_by_seed(self) -> tuple[Curve, ...]:
    """Mean test accuracy over clients by round, from rounds_after on."""
    return tuple(_accuracies(c.history) for c in self.clusterings)

  @cached_property
  def share_by_seed(self) -> tuple[Curve, ...]:
    """Clients at the target accuracy by round, from rounds_after on."""
    return tuple(_shares(c.history) for c in self.clusterings)

  @cached_property
  def baseline_by_seed(self) -> tuple[Curve, ...]:
    """Mean test accuracy of FedAvg without clusters by round, from round 1 on."""
    return tuple(_accuracies(run.results.baseline.history) for run in self.runs)

  @cached_property
  def baseline_share_by_seed(self) -> tuple[Curve, ...]:
    return tuple(_shares(run.results.baseline.history) for run in self.runs)

  @cached_property
  def accuracy_curve(self) -> Curve:
    """The mean of accuracy_by_seed; the other curves likewise."""
    return _mean(self.accuracy_by_seed)

  @cached_property
  def share_curve(self) -> Curve:
    return _mean(self.share_by_seed)

  @cached_property
  def baseline_curve(self) -> Curve:
    return _mean(self.baseline_by_seed)

  @cached_property
  def baseline_share_curve(self) -> Curve:
    return _mean(self.baseline_share_by_seed)

  @cached_property
  def rounds_after(self) -> int:
    """The round right after the clustering, n + 1."""
    return min(self.accuracy_curve, default=self.rounds_end)

  @cached_property
  def rounds_end(self) -> int:
    """The last round."""
    return max(self.accuracy_curve or self.baseline_curve)

  @cached_property
  def columns(self) -> Mapping[str, Sequence[float]]:
    """Our numbers by column of COLUMNS; empty for FedAvg alone."""
    return self._columns(self.accuracy_by_seed, self.share_by_seed) if self.clusterings else {}

  @cached_property
  def baseline_columns(self) -> Mapping[str, Sequence[float]]:
    """Those of FedAvg without clusters at the same rounds."""
    return self._columns(self.baseline_by_seed, self.baseline_share_by_seed)

  @cached_property
  def window(self) -> range:
    """The last window_rounds; of fewer rounds of the clusters all, so that FedAvg is read where the clusters are."""
    first = min(self.accuracy_curve or self.baseline_curve)
    return range(max(first, self.rounds_end - self.window_rounds + 1), self.rounds_end + 1)

  @cached_property
  def windows(self) -> Mapping[str, Sequence[float]]:
    """`columns`, but in the end the means over the window."""
    ends = {'accuracy_end': self.accuracy_by_seed, 'share_end': self.share_by_seed}
    return {**self.columns, **{c: self._over(curves) for c, curves in ends.items() if self.clusterings}}

  @cached_property
  def baseline_windows(self) -> Mapping[str, Sequence[float]]:
    """`windows` of FedAvg without clusters."""
    ends = {'accuracy_end': self.baseline_by_seed, 'share_end': self.baseline_share_by_seed}
    return {**self.baseline_columns, **{c: self._over(curves) for c, curves in ends.items()}}

  @property
  def window_words(self) -> str:
    """Which rounds the window has: 'the mean of rounds 41 to 50', or 'round 50'."""
    first, last = self.window[0], self.window[-1]
    return f'the mean of rounds {first} to {last}' if first < last else f'round {last}'

  def trained(self, stage: str, seed: int | None = None) -> str | None:
    """Returns a name of what was trained for it, equal where that is one training; None without runs.

    Args:
      stage: PHASE1, BASELINE, CLUSTERS, or a baseline of a model a client by its name (experiment/sections.py: PERSONALIZED); what is
        about the clusters of FedAvg alone is about FedAvg.
      seed: The seed; None: over all of them.
    """
    names = []
    for run in self.runs:
      if seed not in (None, run.seed):
        continue
      artifacts = run.results.artifacts
      told = {PHASE1: [artifacts.phase1], BASELINE: [artifacts.baseline], **artifacts.personalized}.get(stage)
      if told is None:
        label = None if run.clustering is None else run.clustering.label
        told = [artifacts.baseline] if label is None else artifacts.clusterings.get(label, [])
      names.append([run.seed, sorted([each.artifact, each.position, *each.rounds[-1:]] for each in told)])
    return digests.of_json(names)[:12] if all(parts for _, parts in names) and names else None

  @cached_property
  def baseline_global(self) -> tuple[float, ...]:
    """Accuracy of FedAvg without clusters on the global test set after the last round."""
    return self.stage('baseline', global_accuracy)

  @cached_property
  def num_clusters(self) -> tuple[int, ...]:
    return tuple(c.num_clusters for c in self.clusterings)

  @cached_property
  def threshold(self) -> tuple[float | None, ...]:
    """Distance thresholds used; None where the method has none."""
    return tuple(c.threshold for c in self.clusterings)

  @cached_property
  def choice(self) -> tuple[Choice | None, ...]:
    """How the threshold was chosen; None where it was given."""
    return tuple(c.choice for c in self.clusterings)

  @cached_property
  def splits(self) -> tuple[Sequence[Split] | None, ...]:
    """The tests of a recursion; None for other methods."""
    return tuple(c.splits for c in self.clusterings)

  @cached_property
  def experts(self) -> tuple[Experts | None, ...]:
    """The cluster models as experts; None where they were not asked for."""
    return tuple(c.experts for c in self.clusterings)

  @cached_property
  def expert_accuracies(self) -> Mapping[str, tuple[float, ...]]:
    """Of the best expert alone, and of all experts together by every rule, on the global test set in percent.

    One a seed that has experts, by what a rule is called.
    """
    found: dict[str, tuple[float, ...]] = {}
    for experts in self.experts:
      if experts is not None:
        assert experts.accuracy is not None and experts.expert_accuracy is not None  # A run knows its labels.
        by_rule = {rule.words: experts.accuracy[rule.name] for rule in rules.prediction_rules()}
        for name, share in ({BEST_EXPERT: max(experts.expert_accuracy)} | by_rule).items():
          found[name] = (*found.get(name, ()), 100.0 * share)
    return found

  @cached_property
  def alone(self) -> tuple[bool, ...]:
    """Whether every client has a cluster of its own, at the end."""
    return tuple(
      len(c.clusters) > 1 and all(len(members) == 1 for members in c.clusters) for c in self.clusterings
    )

  @property
  def has_no_clusters(self) -> bool:
    """Whether no run has one of several clients beside others: all end with one cluster, or each with every client alone."""
    one = bool(self.num_clusters) and all(count == 1 for count in self.num_clusters)
    return one or (bool(self.alone) and all(self.alone))

  @cached_property
  def recovery(self) -> Mapping[str, tuple[float | None, ...]]:
    """Adjusted Rand index by name of the planted groups; None where it is not defined."""
    names = dict.fromkeys(name for c in self.clusterings for name in c.recovery)
    return {name: tuple(c.recovery[name].ari for c in self.clusterings) for name in names}

  @cached_property
  def share_error(self) -> Mapping[str, tuple[float, ...]]:
    """How far the clients' shares in clusters are from the planted ones, by name of the planted groups."""
    return {name: tuple(c.recovery[name].share_error for c in self.clusterings) for name in self.recovery}

  @cached_property
  def pure_error(self) -> Mapping[str, tuple[float, ...]]:
    """That of clusters that are known to be the clients' largest groups, likewise: what is left without shares."""
    return {
      name: tuple(
        float(np.mean(1.0 - np.asarray(results.population.truths[name]).max(axis=0)))
        for results, _ in self._clustered
      )
      for name in self.recovery
    }

  @cached_property
  def cluster_accuracy(self) -> tuple[tuple[float, ...], ...]:
    """Of each cluster's model on the global test set, in percent."""
    models = [c.cluster_scores['unblended'].global_test for c in self.clusterings]
    return tuple(tuple(100.0 * accuracy for accuracy in found) for found in models)

  @cached_property
  def empty_models(self) -> tuple[int | None, ...]:
    """Models that ended without clients; None for methods that do not alternate between clustering and training."""
    return tuple(None if c.collapse is None else c.collapse.empty_models for c in self.clusterings)

  @cached_property
  def rounds_of_changes(self) -> tuple[tuple[int, ...], ...]:
    """The rounds in which a client came to other models, ascending; none for methods that do not alternate."""
    return tuple(() if c.alternation is None else c.alternation.rounds_of_changes for c in self.clusterings)

  @cached_property
  def shared(self) -> Mapping[str, tuple[Sequence[Sequence[int]], ...]]:
    """Clients that a planted group and a cluster have in common, int[groups][clusters] by name of the planted groups."""
    return {
      name: tuple(
        cluster_contents.shared_clients(
          cluster_contents.membership(results, clustering), np.asarray(results.population.truths[name])
        )
        for results, clustering in self._clustered
      )
      for name in self.recovery
    }

  @cached_property
  def together(self) -> tuple[tuple[float | None, float | None], ...]:
    """How often two clients are in one cluster, with a common label and without (cluster_contents.together)."""
    return tuple(
      cluster_contents.together(
        cluster_contents.membership(results, clustering), np.asarray(results.population.label_counts)
      )
      for results, clustering in self._clustered
    )

  def stage(self, name: str, share: Callable[[Evaluation], float]) -> tuple[float, ...]:
    """Returns 100 times a share of the evaluation of FedAvg without clusters: of 'phase1' or 'baseline'."""
    stages = [{'phase1': run.results.phase1, 'baseline': run.results.baseline}[name] for run in self.runs]
    return tuple(100.0 * share(stage.evaluation) for stage in stages)

  def evaluation(self, name: str, share: Callable[[Evaluation], float]) -> tuple[float, ...]:
    """Returns 100 times a share of the evaluation of the clustering by a rule of Phase 3."""
    return tuple(100.0 * share(c.evaluations[name]) for c in self.clusterings)

  @cached_property
  def over_rows(self) -> tuple[float, ...]:
    """Accuracy over the test rows of all clients together, each under its own model, after the last round."""
    return tuple(100.0 * own(c).clients.accuracy for c in self.clusterings)

  @cached_property
  def baseline_over_rows(self) -> tuple[float, ...]:
    """That of FedAvg without clusters."""
    return self.stage('baseline', lambda evaluation: evaluation.clients.accuracy)

  @cached_property
  def alone_over_rows(self) -> tuple[float, ...]:
    """That of every client alone; empty where it was not asked for."""
    return self._personalized('local')

  @cached_property
  def fine_tuned_over_rows(self) -> tuple[float, ...]:
    """That of fine-tuned FedAvg; empty where it was not asked for."""
    return self._personalized('fine_tuning')

  @cached_property
  def added_over_rows(self) -> dict[str, tuple[float, ...]]:
    """That of each rule of Phase 3 that the runs have beside those of every run, by its name."""
    names = dict.fromkeys(rule.name for run in self.runs for rule in run.results.rules)
    return {
      name: tuple(
        100.0 * c.evaluations[name].clients.accuracy for c in self.clusterings if name in c.evaluations
      )
      for name in names
    }

  def _personalized(self, name: str) -> tuple[float, ...]:
    return tuple(
      100.0 * each.evaluation.clients.accuracy
      for run in self.runs
      for each in run.results.personalized
      if each.name == name
    )

  @property
  def _clustered(self) -> list[tuple[Results, Clustering]]:
    return [(run.results, run.clustering) for run in self.runs if run.clustering is not None]

  def _over(self, curves: Sequence[Curve]) -> tuple[float, ...]:
    """Returns the mean of each curve over the window."""
    return tuple(float(np.mean([curve[n] for n in curve if n in self.window])) for curve in curves)

  def _columns(self, accuracy: Sequence[Curve], share: Sequence[Curve]) -> dict[str, tuple[float, ...]]:
    at = [(accuracy, self.rounds_after), (accuracy, self.rounds_end)]
    at += [(share, self.rounds_after), (share, self.rounds_end)]
    return {
      column: tuple(curve[number] for curve in curves)
      for column, (curves, number) in zip(COLUMNS, at, strict=True)
    }


# Rows in the order of a run's clusterings (one row where it has none), seed and results, one a run.
Runs = Sequence[tuple[Sequence[Row], int, Results]]


# What cells and claims read where a paper's accuracy is over all clients' test rows together.
clusters_over_rows: Callable[[Ours], tuple[float, ...]] = operator.attrgetter('over_rows')
fedavg_over_rows: Callable[[Ours], tuple[float, ...]] = operator.attrgetter('baseline_over_rows')
alone_over_rows: Callable[[Ours], tuple[float, ...]] = operator.attrgetter('alone_over_rows')
fine_tuned_over_rows: Callable[[Ours], tuple[float, ...]] = operator.attrgetter('fine_tuned_over_rows')


def gather(runs: Runs, window_rounds: int = WINDOW) -> dict[str, Ours]:
  """Returns our side of every row that was run, by the row's name; with the window of the table, all are read at the same rounds.

  A row and seed that several runs have count once.

  Raises:
    InputError: if two runs of a row and seed were trained to other numbers.
  """
  found: dict[str, tuple[Row, dict[int, Run]]] = {}
  for rows, seed, results in runs:
    clusterings: Sequence[Clustering | None] = results.clusterings
    for row, clustering in zip(rows, clusterings or (None,), strict=True):
      run = Run(seed, results, clustering)
      first = found.setdefault(row.name, (row, {}))[1].setdefault(seed, run)
      if _trained(first) != _trained(run):
        raise InputError(
          f'row {row.name!r}, seed {seed}: results {first.results.digest[:12]} and {results.digest[:12]} differ in it; keep one of them'
        )
  return {
    name: Ours(row, tuple(by_seed[seed] for seed in sorted(by_seed)), window_rounds)
    for name, (row, by_seed) in found.items()
  }


def _trained(run: Run) -> tuple[Any, ...]:
  """Returns what training came to, round by round, in whatever company the row was run: rules of Phase 3 can have been added since."""
  clustering, baseline = run.clustering, run.results.baseline.history
  return (baseline, clustering.history, clustering.clusters) if clustering is not None else (baseline,)


def of_method(row: Row, results: Results) -> list[Ours]:
  """Returns the clusterings of one run that are of a row's method, the nearest to what the paper prescribes first."""
  found = [c for c in results.clusterings if c.method == row.clustering['method']]
  found.sort(key=lambda clustering: len(row.departures(clustering)))
  return [Ours(row, (Run(results.config.training.seed, results, clustering),)) for clustering in found]


def global_accuracy(evaluation: Evaluation) -> float:
  """Returns the accuracy of the one model on the global test set, from 0 to 1."""
  assert evaluation.global_test is not None  # Asked of one model for all only.
  return evaluation.global_test.accuracy


def _accuracies(history: History) -> Curve:
  return _percent(history.rounds, history.test_accuracy)


def _shares(history: History) -> Curve:
  return _percent(history.rounds, history.share_at_target)


def _percent(rounds: Sequence[int], values: Sequence[float]) -> Curve:
  return {number: 100.0 * value for number, value in zip(rounds, values, strict=True)}


def _mean(curves: Iterable[Curve]) -> dict[int, float]:
  found = list(curves)
  return {n: float(np.mean([curve[n] for curve in found])) for n in found[0]} if found else {}
