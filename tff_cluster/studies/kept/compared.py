"""What is kept of comparisons: one table a question, with a column for the setting where they are those of a league."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tff_cluster.storage import files, tables
from tff_cluster.storage.tables import csv_text
from tff_cluster.studies.kept.rounding import percent, rounded

# Columns of comparison.csv and league.csv that are shares from 0 to 1, and those that are bytes.
_SHARES = ('accuracy', 'validation', 'worst_decile', 'at_target', 'harmed_', 'global_', 'clients_')
_GAINS = (
  'setting', 'contender', 'kind', 'budget', 'accuracy [%]', 'worst tenth [%]', 'difference [points]', 'low [points]',
  'high [points]', 'harmed [%]', 'verdict', 'models of clients',
)  # fmt: skip
_PAIRS = (
  'setting', 'budget', 'overlapping', 'other', 'difference [points]', 'low [points]', 'high [points]', 'verdict',
)  # fmt: skip
_OVERLAP = (
  'setting', 'budget', 'overlapping', 'disjoint', 'difference [points]', 'low [points]', 'high [points]', 'worst tenth [points]',
  'harmed [%]', 'p', 'verdict',
)  # fmt: skip
_NEW = (
  'setting', 'contender', 'accuracy [%]', 'difference [points]', 'low [points]', 'high [points]', 'regret [points]'
)  # fmt: skip
_TRAINED_ON = (
  'setting', 'contender', 'rule', 'accuracy [%]', 'difference [points]', 'low [points]', 'high [points]',
  'to fine-tuned FedAvg [points]', 'low to it [points]', 'high to it [points]',
)  # fmt: skip
_ALARMS = ('setting', 'alarm')
_MALICIOUS = (
  'setting', 'contender', 'honest [%]', 'difference [points]', 'low [points]', 'high [points]', 'malicious [%]',
  'honest beside malicious [%]', 'isolated [seeds]', 'dropped [updates]',
)  # fmt: skip


def tables_of(folders: Mapping[str, Path]) -> dict[str, str]:
  """Returns the tables of comparisons by the name of their setting, as CSV text: gains, pairs, overlap, new_clients, trained_on, alarms, malicious."""
  gains, pairs, overlap, new, trained, alarms, malicious = [], [], [], [], [], [], []
  for setting, folder in folders.items():
    found = files.load_json(folder / 'comparison.json')
    alarms += [(setting, alarm) for alarm in found['alarms']]
    for each in found['contenders']:
      for budget, summary in each['budgets'].items():
        over = summary['over_fedavg']
        told = _interval(over['interval'] if over else None)
        harmed = percent(over['harmed'] if over else None)
        accuracy, worst = percent(summary['accuracy']['mean']), percent(summary['worst_decile'])
        models = round(float(np.mean(each['client_models'])), 1)
        about = setting, each['name'], each['kind'], budget
        gains.append((*about, accuracy, worst, *told, harmed, summary['verdict'], models))
    for pair in found['pairs']:
      told = _interval(pair['difference']['interval'])
      pairs.append((setting, pair['budget'], pair['overlapping'], pair['other'], *told, pair['verdict']))
    for budget, chosen in found['overlap'].items():
      if chosen is not None:
        told, harmed = _interval(chosen['difference']['interval']), percent(chosen['difference']['harmed'])
        names, p_value = (chosen['overlapping'], chosen['disjoint']), chosen['difference']['seeds']['p_value']
        worst = percent(chosen['worst_decile'])
        overlap.append((setting, budget, *names, *told, worst, harmed, rounded(p_value), chosen['verdict']))
    for each in found['new_clients'] or ():
      told = _interval(each['over_fedavg']['interval'])
      accuracy, regret = percent(each['accuracy']['mean']), percent(each['regret']['mean'])
      new.append((setting, each['clustering'], accuracy, *told, regret))
    for each in found['trained_on']:
      over = [each[f'over_{kind}'] for kind in ('fedavg', 'fine_tuning')]
      both = [value for gain in over for value in _interval(gain['interval'] if gain else None)]
      trained.append((setting, each['contender'], each['rule'], percent(each['accuracy']['mean']), *both))
    for each in found['malicious'] or ():
      told = _interval(each['over_fedavg']['interval'] if each['over_fedavg'] else None)
      beside = each['honest_beside_malicious']
      apart = (percent(float(np.mean(beside))), beside.count(0.0)) if beside else (None, None)
      accuracies = percent(each['honest']['mean']), *told, percent(each['malicious'])
      malicious.append((setting, each['contender'], *accuracies, *apart, sum(each['dropped_updates'])))
  made = {
    'gains': (_GAINS, gains),
    'pairs': (_PAIRS, pairs),
    'overlap': (_OVERLAP, overlap),
    'new_clients': (_NEW, new),
    'trained_on': (_TRAINED_ON, trained),
    'alarms': (_ALARMS, alarms),
    'malicious': (_MALICIOUS, malicious),
  }
  return {name: csv_text(header, lines) for name, (header, lines) in made.items() if lines}


def with_units(path: Path) -> str:
  """Returns comparison.csv or league.csv with units in its header."""
  header, lines = tables.read(path)
  units = [
    f'{name} [share]' if name.startswith(_SHARES) else f'{name} [bytes]' if name.startswith('bytes') else name
    for name in header
  ]
  return csv_text(units, (list(line.values()) for line in lines))


def _interval(found: Mapping[str, float | None] | None) -> tuple[float | None, ...]:
  return tuple(percent(found[name] if found else None) for name in ('mean', 'low', 'high'))
