"""The answer in plain words: which clustering helped whom, by how much, and are its groups the planted ones.

Every sentence follows from numbers by a rule that is written here; where the interval of a difference
holds zero, the sentence says that nothing was shown.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tff_cluster.aggregation.rule import EVERYBODY
from tff_cluster.base.cost import UNITS
from tff_cluster.base.words import (
  client,
  decimals_for,
  percent,
  plural,
  points,
  points_apart,
  score,
  series,
  times,
)
from tff_cluster.clustering.recovery import summed_up
from tff_cluster.data import population
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.measured import Personalized
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.experiment.results import Results
from tff_cluster.scorecard import identical_clusterings
from tff_cluster.scorecard.contenders import client_accuracy
from tff_cluster.scorecard.intervals import SAME, Interval
from tff_cluster.scorecard.rows import global_accuracy
from tff_cluster.scorecard.summary import over_clients

GROUPS_WRONG_BELOW = 0.9  # Recovery scores from here to 1 are called nearly right, below it wrong.
_COST_WORTH_SAYING = 1.05
_OVER = ' over clients'


@dataclasses.dataclass(frozen=True, eq=False)
class Recovery:
  """How well clusters match one planted grouping.

  Attributes:
    truth: Its name.
    measure: 'ARI', 'Omega' or 'share match', see clustering.recovery.summed_up.
    value: 1 is exact, 0 is chance.
    planted: Number of planted groups.
  """

  truth: str
  measure: str
  value: float
  planted: int

  @property
  def is_structure(self) -> bool:
    """Whether it tells of what the data plant: several groups, and not who is malicious."""
    return self.planted > 1 and self.truth != population.MALICIOUS

  @property
  def exact(self) -> bool:
    return self.value >= 1.0 - 1e-9

  @property
  def shown(self) -> str:
    """'ARI 0.46', with digits enough that a wrong score does not look like one that is nearly right."""
    decimals = decimals_for([self.value], lambda value: value < GROUPS_WRONG_BELOW, 2)
    return f'{self.measure} {score(self.value, decimals)}'


@dataclasses.dataclass(frozen=True, eq=False)
class ClusteringAnswer:
  """What is to be said about one clustering.

  Attributes:
    label: Its name.
    side: Of the baseline on which it came out, 'above', 'below' or 'unclear' (the interval holds zero); one seed is no verdict.
    over_baseline, over_phase1: Mean differences over clients, from -1 to 1, with intervals.
    differences: float[clients], accuracy with its own model minus accuracy with the baseline model.
    helped, harmed, unchanged: Numbers of clients by the sign of that difference.
    recoveries: One for each planted grouping.
    sentences: The answer.
    alarms: What must not be overlooked.
  """

  label: str
  side: str
  over_baseline: Interval
  over_phase1: Interval
  differences: np.ndarray
  helped: int
  harmed: int
  unchanged: int
  recoveries: tuple[Recovery, ...]
  sentences: tuple[str, ...]
  alarms: tuple[str, ...]


def answer_run(results: Results) -> list[ClusteringAnswer]:
  """Returns the answer for each clustering of a run.

  Args:
    results: Of a run; its clusterings may be those of `identical_clusterings.merged`.
  """
  return [_answer(results, clustering) for clustering in results.clusterings]


def told_alarms(answers: Sequence[ClusteringAnswer]) -> list[str]:
  """Returns the alarms of all clusterings, each once, behind the names of those whom it is about."""
  about: dict[str, list[str]] = {}
  for answer in answers:
    for words in answer.alarms:
      about.setdefault(words, []).append(answer.label)
  return [f'{series(labels)}: {words}' for words, labels in about.items()]


def _answer(results: Results, clustering: Clustering) -> ClusteringAnswer:
  label = clustering.label
  seed = results.config.training.seed
  own, baseline, phase1 = (
    client_accuracy(each)
    for each in (results_lib.own(clustering), results.baseline.evaluation, results.phase1.evaluation)
  )
  differences = own - baseline
  over_baseline, over_phase1 = over_clients(differences, seed), over_clients(own - phase1, seed)
  recoveries = _recoveries(results, clustering)
  facts = ClusteringAnswer(
      label=label, side=over_baseline.side, over_baseline=over_baseline, over_phase1=over_phase1, differences=differences,
      helped=int((differences > SAME).sum()), harmed=int((differences < -SAME).sum()),
      unchanged=int((np.abs(differences) <= SAME).sum()), recoveries=recoveries, sentences=(), alarms=(),
  )  # fmt: skip
  sentences = (
    _who_sentence(facts, results.population.client_ids),
    _phase1_sentence(facts, float(phase1.mean()), float(baseline.mean())),
    _baselines_sentence(results, clustering),
    _global_sentence(results, clustering),
    _groups_sentence(facts, clustering),
    _twin_sentence(results, clustering),
    _cost_sentence(results, clustering),
  )
  alarms = _alarms(facts, clustering, len(own))
  return dataclasses.replace(facts, sentences=tuple(s for s in sentences if s), alarms=tuple(alarms))


def _recoveries(results: Results, clustering: Clustering) -> tuple[Recovery, ...]:
  found = []
  for name, scores in clustering.recovery.items():
    truth = np.array(results.population.truths[name])
    measure, (value,) = summed_up([scores], [truth], clustering.members_tell)
    found.append(Recovery(name, measure, value, len(truth)))
  return tuple(found)


def cost_ratio(results: Results, found: Clustering | Personalized) -> float:
  """Returns what a clustering, or a baseline, takes of the run's budget, relative to FedAvg without clusters in Phase 2."""
  return _ratio(results, found, results.config.evaluation.budget)


def _ratio(results: Results, found: Clustering | Personalized, unit: str) -> float:
  fedavg = (results.baseline.cost - results.phase1.cost).of(unit)
  return found.cost.of(unit) / fedavg if fedavg else 0.0


def _trained(results: Results, clusters: Sequence[Sequence[str]]) -> int:
  """Returns the client-rounds that these clusters train in Phase 2."""
  training = results.config.training
  cohorts = [population.cohort_size(training.cohort_fraction, len(members)) for members in clusters]
  return training.phase2_rounds * sum(cohorts)


def _who_sentence(facts: ClusteringAnswer, client_ids: list[str]) -> str:
  total = len(facts.differences)
  words = (
    f'Of {plural(total, "client")}, {facts.helped} did better than with the unclustered model, '
    f'{facts.harmed} worse and {facts.unchanged} the same.'
  )
  if facts.helped:
    best = int(np.argmax(facts.differences))
    words += f' Most helped: {client(client_ids[best])} ({points_apart(facts.differences[best])}).'
  if facts.harmed:
    worst = int(np.argmin(facts.differences))
    words += f' Most harmed: {client(client_ids[worst])} ({points_apart(facts.differences[worst])}).'
  return words


def _phase1_sentence(facts: ClusteringAnswer, phase1: float, baseline: float) -> str:
  return (
    f'Against the end of Phase 1 ({percent(phase1)}) the own models differ by {facts.over_phase1.words(_OVER)}; '
    f'the extra rounds alone, without clusters, gave {points(baseline - phase1)}.'
  )


def _global_sentence(results: Results, clustering: Clustering) -> str:
  average, phase1, baseline = (
    global_accuracy(evaluation)
    for evaluation in (
      results_lib.with_role(clustering, EVERYBODY),
      results.phase1.evaluation,
      results.baseline.evaluation,
    )
  )
  return (
    f'On the global test set the average of its cluster models scores {percent(average)}; Phase 1 had '
    f'{percent(phase1)}, the unclustered model at equal rounds {percent(baseline)}.'
  )


def _groups_sentence(facts: ClusteringAnswer, clustering: Clustering) -> str:
  found = plural(clustering.num_clusters, 'cluster')
  if clustering.overlapping:
    found += f', overlapping, {clustering.memberships:.1f} memberships a client'
  alone = sum(len(members) == 1 for members in clustering.clusters)
  if alone:
    found += f' ({alone} of them with a single client)'
  if not facts.recoveries:
    return f'It found {found}. This data has no planted groups, so nothing can be said about right or wrong.'
  parts = []
  for recovery in facts.recoveries:
    named = f'“{recovery.truth}” ({recovery.planted} planted, {recovery.shown})'
    if recovery.planted == 1:
      parts.append(f'nothing was planted that tells clients apart under {named}')
    elif recovery.exact:
      parts.append(f'they are exactly the planted groups {named}')
    elif recovery.value >= GROUPS_WRONG_BELOW:
      parts.append(f'they are nearly, but not exactly, the planted groups {named}')
    else:
      parts.append(f'they are not the planted groups {named}')
  unscored = ' Clients that were not clustered are not scored.' if clustering.excluded else ''
  return f'It found {found}: {series(parts)}.{unscored}'


def _twin_sentence(results: Results, clustering: Clustering) -> str:
  same = identical_clusterings.memberships(clustering)
  twins = [
    c.label
    for c in results.clusterings
    if c.label != clustering.label
    and identical_clusterings.memberships(c) == same
    # Of soft memberships the members tell little.
    and c.shares == clustering.shares
  ]
  return f'These are the very clusters that {series(twins)} found, with other models.' if twins else ''


def _cost_sentence(results: Results, clustering: Clustering) -> str:
  dear: dict[str, list[str]] = {}
  for part in identical_clusterings.parts(clustering):
    if found := _dear(results, part):
      words = f'{found} of a disjoint clustering ({series(_reasons(results, part))})'
      dear.setdefault(words, []).append(part.label)
  everyone = len(identical_clusterings.parts(clustering))
  told = [
    words if len(labels) == everyone else f'{words} for {series(labels)}' for words, labels in dear.items()
  ]
  if not told:
    return ''
  return f'Phase 2 and the clustering took {series(told)}, so equal rounds are not equal cost here.'


def _dear(results: Results, clustering: Clustering) -> str:
  """Returns '3.4 times the client-rounds, bytes and passes', of what is more than in Phase 2 of a disjoint clustering."""
  found: dict[str, list[str]] = {}
  for unit, words in UNITS.items():
    ratio = _ratio(results, clustering, unit)
    if ratio > _COST_WORTH_SAYING:
      found.setdefault(times(ratio), []).append(words)
  return series([f'{ratio} the {series(words)}' for ratio, words in found.items()])


def _reasons(results: Results, clustering: Clustering) -> list[str]:
  """Returns why a clustering costs more than Phase 2 of a disjoint one, from what its client-rounds were spent on."""
  if clustering.splits is not None:
    return ['its recursion trains and tests clusters that it splits later']
  if clustering.cost.rows_forward and clustering.choice is None:
    return ['clients work with several models in a round']
  spent, found = clustering.cost.client_rounds, []
  everybody = [results.population.client_ids]
  # Rounds that alternate draw one cohort of all clients, each of which trains one model.
  in_clusters = _trained(results, clustering.clusters if clustering.alternation is None else everybody)
  if clustering.overlapping and clustering.alternation is None:
    found.append('a client trains in each of its clusters')
  elif in_clusters > _trained(results, everybody):
    found.append('every cluster trains at least one client a round')
  tried = 0 if clustering.choice is None else clustering.choice.cost.client_rounds
  if tried:
    found.append(f'{plural(tried, "client-round")} tried thresholds that were not taken')
  if (rest := spent - in_clusters - tried) > 0:
    found.append(f'{plural(rest, "client-round")} gave what is clustered, or what clusters start from')
  return found or ['see the table of costs']


def _alarms(facts: ClusteringAnswer, clustering: Clustering, num_clients: int) -> list[str]:
  alarms = []
  if clustering.client_models == 1 and num_clients > 1:
    alarms.append(f'All clients have one model: {clustering.one_cluster}.')
  elif num_clients > 1 and all(len(members) == 1 for members in clustering.clusters):
    alarms.append('Every client is alone in its cluster: this is local training without collaboration.')
  alarms += [f'{test.two_kinds.words}.' for test in clustering.splits or () if test.two_kinds is not None]
  real = [r for r in facts.recoveries if r.is_structure]
  if real:
    # One truth that is met is enough: the others describe the same clients at another grain.
    best = max(real, key=lambda r: r.value)
    told = f'({best.shown} for “{best.truth}” at best)'
    if best.value < GROUPS_WRONG_BELOW and facts.side != 'below':
      alarms.append(
        f'Accuracy {"is higher, but" if facts.side == "above" else "shows no clear difference, and"} the groups are '
        f'wrong {told}: '
        'do not read these clusters as the structure of the data.'
      )
    if best.exact and facts.side == 'below':
      alarms.append(
        'The groups are exactly the planted ones and accuracy still fell: the training is to blame.'
      )
  if any(r.planted == 1 for r in facts.recoveries) and clustering.num_clusters > 1:
    alarms.append('Clusters were found although nothing was planted: they reflect noise.')
  if facts.harmed and facts.side == 'above' and facts.harmed >= num_clients / 4:
    alarms.append(
      f'The mean rose, but {facts.harmed} of {num_clients} clients do worse than without clusters.'
    )
  return alarms


def _baselines_sentence(results: Results, clustering: Clustering) -> str:
  """Returns how own models differ from baselines in which every client has a model of its own; empty where there are none."""
  own, seed = client_accuracy(results_lib.own(clustering)), results.config.training.seed

  def against(found: Personalized) -> str:
    difference = over_clients(own - client_accuracy(found.evaluation), seed)
    return f'{difference.words(_OVER)} against {found.title}'

  told = series([against(found) for found in results.personalized])
  return f'Beside baselines in which every client has its own model: {told}.' if told else ''
