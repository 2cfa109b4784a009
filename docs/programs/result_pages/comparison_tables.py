"""Tables and pictures of kept comparisons and leagues: accuracies beside FedAvg, the best, overlap against disjoint clusters."""

from collections.abc import Mapping, Sequence

from docs.programs.result_pages import intervals_picture
from docs.programs.result_pages import markdown_tables as markdown
from tff_cluster.scorecard.contenders import BUDGETS
from tff_cluster.studies.kept.results import Kept


def gains(kept: Kept, budgets: Sequence[str], setting: str = '') -> str:
  """Returns the accuracies of a comparison beside FedAvg: difference, 95% interval, worst tenth, clients harmed, and what else is
  kept, the verdict and how many different models clients have of their own.

  Args:
    kept: A comparison or a league.
    budgets: What equal cost means, keys of contenders.BUDGETS, each of which gets columns.
    setting: Which clients, in a league.
  """
  found = kept.lines('gains', setting=setting)
  judged, counted = (any(line.get(column) for line in found) for column in ('verdict', 'models of clients'))
  header = ['', *(['models of clients'] if counted else [])]
  lines: dict[str, list[str]] = {}
  for budget in budgets:
    header += [
      BUDGETS[budget],
      'over FedAvg, points',
      'worst tenth',
      'clients worse off',
      *(['verdict'] if judged else []),
    ]
    for line in found:
      models = [line['models of clients']] if counted else []
      told = lines.setdefault(line['contender'], [line['contender'], *models])
      if line['budget'] == budget:
        told += [markdown.cell(line['accuracy'], '%', 1), markdown.interval(line)]
        told += [markdown.cell(line[column], '%', 1) for column in ('worst tenth', 'harmed')]
        told += [line['verdict'] or '–'] if judged else []
    for told in lines.values():
      told += ['–'] * (len(header) - len(told))
  return markdown.table(header, list(lines.values()))


def alarms(kept: Kept, setting: str = '') -> str:
  """Returns what must not be overlooked in a comparison, as a list; empty where there is nothing."""
  found = kept.lines('alarms', setting=setting) if 'alarms' in kept.tables else []
  return '\n'.join(f'* **Mind:** {line["alarm"]}' for line in found)


def best(kept: Kept, budget: str, most: int = 3) -> str:
  """Returns for each kind of clients of a league those with the highest accuracy that need not know the groups.

  Beside them stand how many of all such contenders are above and below FedAvg by the 95% interval of the difference.
  """
  header = [
    'clients',
    'FedAvg',
    *(f'highest, {k}' for k in range(1, most + 1)),
    'above FedAvg',
    'below FedAvg',
  ]
  by_setting: dict[str, list[Mapping[str, str]]] = {}
  for line in kept.lines('gains', budget=budget):
    by_setting.setdefault(line['setting'], []).append(line)
  lines = []
  for setting, found in by_setting.items():
    (fedavg,) = (line for line in found if line['kind'] == 'fedavg')
    others = [line for line in found if line['kind'] not in ('fedavg', 'oracle')]
    others.sort(key=lambda line: -float(line['difference']))
    told = [f'{line["contender"]}: {markdown.interval(line)}' for line in others[:most]]
    judged = [line for line in others if line['low']]
    above = sum(float(line['low']) > 0.0 for line in judged)
    below = sum(float(line['high']) < 0.0 for line in judged)
    counts = [f'{count} of {len(judged)}' if judged else '–' for count in (above, below)]
    lines.append(
      [setting, markdown.cell(fedavg['accuracy'], '%', 1), *told, *['–'] * (most - len(told)), *counts]
    )
  return markdown.table(header, lines)


def overlap(comparisons: Mapping[str, Kept]) -> str:
  """Returns how overlapping clusters fare beside disjoint ones, a line a comparison and budget.

  Args:
    comparisons: Each by what it is called in words.
  """
  header = (
    'comparison',
    'budget',
    'overlap over disjoint, points',
    'p',
    'verdict',
    'worst tenth, points',
    'worse off',
  )
  lines = [
    [
      line['comparison'], line['budget'], markdown.interval(line), markdown.cell(line['p'], ''), line['verdict'],
      markdown.cell(line['worst tenth'], 'points', 1), markdown.cell(line['harmed'], '%', 1),
    ]
    for line in _overlap(comparisons)
  ]  # fmt: skip
  return markdown.table(header, lines)


def overlap_sides(comparisons: Mapping[str, Kept]) -> str:
  """Returns which clusterings `overlap` compares, as validation rows chose them."""
  shown = ('comparison', 'budget', 'overlapping', 'disjoint')
  return markdown.table(shown, ([line[column] for column in shown] for line in _overlap(comparisons)))


def overlap_picture(comparisons: Mapping[str, Kept]) -> str:
  """Returns a picture of `overlap`, as SVG."""
  axis = 'points of mean client accuracy, overlapping less disjoint clusters'
  return intervals_picture.draw(_overlap(comparisons), 'comparison', 'budget', axis)


def _overlap(comparisons: Mapping[str, Kept]) -> list[dict[str, str]]:
  return [
    dict(line) | {'comparison': words, 'budget': BUDGETS[line['budget']]}
    for words, kept in comparisons.items()
    for line in kept.lines('overlap')
  ]
