"""What a report says of cluster models as experts on the global test set (FedEx, Miles et al. 2024)."""

from collections.abc import Mapping
from typing import Any

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import CEILING, SUBJECT, PredictionRule
from tff_cluster.base.words import percent, plural, points
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.markup import Markup, table, tag


def experts_section(run: FinishedRun, clustering: Mapping[str, Any]) -> list[Markup]:
  """Returns how one clustering's models fare as experts; nothing where that was not asked for.

  Args:
    run: The run.
    clustering: One entry of results['clusterings'].
  """
  found = clustering.get('experts')
  if found is None:
    return []
  accuracy, order = found['accuracy'], found['order_sensitivity']
  alone = run.results['baseline']['evaluation']['global']['accuracy']
  rows = [
    (
      rule.words,
      percent(accuracy[rule.name]),
      points(accuracy[rule.name] - alone),
      percent(found['agreement'][rules.with_role(SUBJECT).name][rule.name]),
    )
    for rule in rules.prediction_rules()
    if rule.name in accuracy
  ]
  rows += [
    (rule['words'], percent(right), points(right - alone), '–')
    for rule, right in _added(run.results, clustering)
  ]
  rows.append(('unclustered model, equal rounds', percent(alone), '–', '–'))
  single = [
    (number, percent(one), f'{loss:.2f}')
    for number, (one, loss) in enumerate(zip(found['expert_accuracy'], found['expert_loss'], strict=True))
  ]
  changes = [100 * value for value in order['accuracy']]
  return [
    tag('h3', 'Its models as experts'),
    tag('p', tag('strong', _story(found, alone))),
    table(
      ('rule', 'right on the global test set', 'against unclustered', 'predicted like FedEx'),
      rows,
      numeric=(1, 2, 3),
    ),
    tag(
      'p',
      f'FedEx learns while it predicts, so the order of the samples counts: over {plural(order["num_shuffles"], "other order")} '
      f'it is right on {min(changes):.1f}% to {max(changes):.1f}%, and predicts {percent(order["changed"])} of the samples '
      'differently in some order. The oracle knows the labels and the gate has seen those of validation rows; the other '
      'rules see none.',
      class_='note',
    ),
    table(('expert (cluster)', 'right on the global test set', 'loss'), single, numeric=(0, 1, 2)),
  ]


def _added(
  results: Mapping[str, Any], clustering: Mapping[str, Any]
) -> list[tuple[Mapping[str, Any], float]]:
  """Returns the rules of predictions that a run has beside the built-in ones, with their accuracy on the global test set."""
  found = [rule for rule in results.get('rules', ()) if rule['kind'] == PredictionRule.kind]
  everybodys = [clustering['evaluations'][rule['name']]['global'] for rule in found]
  return [(rule, e['accuracy']) for rule, e in zip(found, everybodys, strict=True) if e is not None]


def _story(found: Mapping[str, Any], alone: float) -> str:
  """Says where FedEx stands, and whether experts or their combination lose."""
  accuracy = found['accuracy']
  fedex, oracle = (accuracy[rules.with_role(role).name] for role in (SUBJECT, CEILING))
  best = max(found['expert_accuracy'])
  side = 'better' if fedex > alone else 'worse' if fedex < alone else 'as good'
  text = (
    f'FedEx is right on {percent(fedex)} of the global test set, {side}{"" if side == "as good" else " than"}'
  )
  text += ' as' if side == 'as good' else ''
  text += f' the unclustered model ({percent(alone)}); the best expert alone is right on {percent(best)}.'
  if fedex >= alone:
    return text
  if oracle < alone:
    return (
      f'{text} No choice of experts could make up for that: one of them is right on {percent(oracle)} only.'
    )
  return f'{text} On {percent(oracle)} some expert is right: what is lost lies in the combination, not in the experts.'
