"""What a report says of cluster models as experts on the global test set (FedEx, Miles et al. 2024)."""

from typing import Any

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import CEILING, SUBJECT, PredictionRule
from tff_cluster.base.words import percent, points
from tff_cluster.experiment.result_parts import AddedRule, Clustering
from tff_cluster.experiment.results import Results
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.pages import Table


def as_experts(run: FinishedRun, clustering: Clustering) -> dict[str, Any] | None:
  """Returns how one clustering's models fare as experts, for the macro of this name; None where that was not asked for.

  Args:
    run: The run.
    clustering: One of the run's.
  """
  found, fedavg = clustering.experts, run.results.baseline.evaluation.global_test
  if found is None:
    return None
  order = found.order_sensitivity
  # The global test set has labels, and one model is measured on it.
  assert found.accuracy is not None and found.expert_accuracy is not None
  assert order.accuracy is not None and fedavg is not None
  accuracy, alone = found.accuracy, fedavg.accuracy
  rows = [
    (
      rule.words,
      percent(accuracy[rule.name]),
      points(accuracy[rule.name] - alone),
      percent(found.agreement[rules.with_role(SUBJECT).name][rule.name]),
    )
    for rule in rules.prediction_rules()
    if rule.name in accuracy
  ]
  rows += [
    (rule.words, percent(right), points(right - alone), '–')
    for rule, right in _added(run.results, clustering)
    if rule.name not in accuracy
  ]
  rows.append(('unclustered model, equal rounds', percent(alone), '–', '–'))
  single = [
    (number, percent(one), f'{loss:.2f}')
    for number, (one, loss) in enumerate(zip(found.expert_accuracy, found.expert_loss, strict=True))
  ]
  changes = [100 * value for value in order.accuracy]
  header = ('rule', 'right on the global test set', 'against unclustered', 'predicted like FedEx')
  return {
    'story': _story(accuracy, max(found.expert_accuracy), alone),
    'rules': Table(header, rows, (1, 2, 3)),
    'orders': order.num_shuffles,
    'least': min(changes),
    'most': max(changes),
    'changed': order.changed,
    'single': Table(('expert (cluster)', 'right on the global test set', 'loss'), single, (0, 1, 2)),
  }


def _added(results: Results, clustering: Clustering) -> list[tuple[AddedRule, float]]:
  """Returns the rules of predictions that a run has beside the built-in ones, with their accuracy on the global test set."""
  found = [rule for rule in results.rules if rule.kind == PredictionRule.kind]
  everybodys = [clustering.evaluations[rule.name].global_test for rule in found]
  return [(rule, e.accuracy) for rule, e in zip(found, everybodys, strict=True) if e is not None]


def _story(accuracy: dict[str, float], best: float, alone: float) -> str:
  """Says where FedEx stands, and whether experts or their combination lose."""
  fedex, oracle = (accuracy[rules.with_role(role).name] for role in (SUBJECT, CEILING))
  side = 'better than' if fedex > alone else 'worse than' if fedex < alone else 'as good as'
  text = (
    f'FedEx is right on {percent(fedex)} of the global test set, {side} the unclustered model ({percent(alone)}); the best expert alone '
    f'is right on {percent(best)}.'
  )
  if fedex >= alone:
    return text
  if oracle < alone:
    return (
      f'{text} No choice of experts could make up for that: one of them is right on {percent(oracle)} only.'
    )
  return f'{text} On {percent(oracle)} some expert is right: what is lost lies in the combination, not in the experts.'
