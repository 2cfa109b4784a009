"""What a report says of cluster models as experts on the global test set (FedEx, Miles et al. 2024)."""

from collections.abc import Mapping
from typing import Any

from tff_cluster.base.words import percent, points
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.pages import Table

RULES = {
  'fedex': 'FedEx’s online layer (Algorithm 2)',
  'mean': 'mean of the outputs',
  'vote': 'majority vote',
  'confidence': 'the most confident expert',
  'gate': 'gate trained on validation labels',
  'oracle': 'oracle: any expert is right',
}


def as_experts(run: FinishedRun, clustering: Mapping[str, Any]) -> dict[str, Any] | None:
  """Returns how one clustering's models fare as experts, for the macro of this name; None where that was not asked for.

  Args:
    run: The run.
    clustering: One entry of results['clusterings'].
  """
  found = clustering.get('experts')
  if found is None:
    return None
  accuracy, order = found['accuracy'], found['order_sensitivity']
  alone = run.results['baseline']['evaluation']['global']['accuracy']
  rows = [
    (
      words,
      percent(accuracy[rule]),
      points(accuracy[rule] - alone),
      percent(found['agreement']['fedex'][rule]),
    )
    for rule, words in RULES.items()
    if rule in accuracy
  ]
  rows.append(('unclustered model, equal rounds', percent(alone), '–', '–'))
  single = [
    (number, percent(one), f'{loss:.2f}')
    for number, (one, loss) in enumerate(zip(found['expert_accuracy'], found['expert_loss'], strict=True))
  ]
  changes = [100 * value for value in order['accuracy']]
  header = ('rule', 'right on the global test set', 'against unclustered', 'predicted like FedEx')
  return {
    'story': _story(found, alone),
    'rules': Table(header, rows, (1, 2, 3)),
    'orders': order['num_shuffles'],
    'least': min(changes),
    'most': max(changes),
    'changed': order['changed'],
    'single': Table(('expert (cluster)', 'right on the global test set', 'loss'), single, (0, 1, 2)),
  }


def _story(found: Mapping[str, Any], alone: float) -> str:
  """Says where FedEx stands, and whether experts or their combination lose."""
  accuracy = found['accuracy']
  fedex, oracle, best = accuracy['fedex'], accuracy['oracle'], max(found['expert_accuracy'])
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
