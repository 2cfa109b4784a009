"""Rows of FedEx's tables as the paper prints them, for tests; what it does not print is made up."""

from tests.made_up import in_json
from tests.made_up.scorecard_rows import changed, make_ours
from tff_cluster.experiment.measured import Experts
from tff_cluster.papers import miles2024
from tff_cluster.scorecard.rows import Ours, Run


def experts(fedex, accuracy, losses, oracle=0.99, gate=0.98, mean=0.9):
  """Experts with shares from 0 to 1; rules that the paper does not have are made up."""
  others = {'mean': mean, 'vote': 0.62, 'confidence': 0.63, 'gate': gate, 'oracle': oracle}
  told = {
    'accuracy': {'fedex': fedex, **others},
    'expert_accuracy': list(accuracy),
    'expert_loss': [9.0] * len(accuracy),
    'expert_loss_twice': list(losses),
  }
  return in_json.record(Experts, told)


# Clusters in the order of print; N/A is made up as a useless expert.
PRINTED = {
  ('fedex/table1', '3 clusters'): (97.43, experts(0.7798, (0.7131, 0.7211, 0.7478), (1.77, 1.75, 1.72))),
  ('fedex/table1', '4 clusters'): (
    97.43,
    experts(0.0901, (0.0, 0.5291, 0.5291, 0.6412), (2.46, 1.93, 1.82, 1.82)),
  ),
  ('fedex/table2', '3 clusters'): (84.72, experts(0.8020, (0.7633, 0.4004, 0.5211), (1.7, 2.0, 1.9))),
  ('fedex/table2', '4 clusters'): (
    84.72,
    experts(0.6388, (0.5452, 0.4857, 0.4582, 0.4017), (1.9, 1.9, 2.0, 2.0)),
  ),
}


def fedavg_run(mean_accuracy, seed=0):
  """A run of FedAvg whose clients have this accuracy, in percent, in every one of its last ten rounds, and 20 points less before."""
  accuracy = [mean_accuracy / 100.0 - 0.2 * (number <= 190) for number in range(1, 201)]
  history = {'rounds': list(range(1, 201)), 'test_accuracy': accuracy, 'share_at_target': [0.0] * 200}
  return Run(seed, in_json.typed({'config': {}, 'baseline': {'history': history}}), None)


def row(table, name, **changes):
  """A row as printed, of one seed, with two MNIST clusters more than CIFAR-10's one.

  Args:
    table, name: Which one.
    **changes: Other values of its properties.
  """
  published = next(row for row in miles2024.PUBLISHED[table].rows if row.name == name)
  source = table.replace('figure2', 'table1').replace('figure3', 'table2')
  fedavg, found = PRINTED[source, name]
  shared = {'source': ([[40, 45, 0, 0][: int(name[0])], [0, 0, 15, 0][: int(name[0])]],)}
  made = make_ours(
    published,
    seeds=(0,),
    num_clusters=(int(name[0]),),
    threshold=(None,),
    rounds_after=2,
    rounds_end=200,
    accuracy_curve={2: 30.0, 200: 90.0},
    baseline_curve={1: 10.0, 2: 20.0, 200: 80.0},
    clusterings=(),
    share_curve={},
    baseline_share_curve={},
    recovery={},
    experts=(found,),
    baseline_global=(fedavg,),
    baseline_windows={'accuracy_end': (fedavg,)},
    shared=shared if source == 'fedex/table2' else {},
    together=((0.5, 0.2),),
  )
  return with_runs(changed(made, **changes), (fedavg_run(fedavg),))


def with_runs(found, runs):
  """Returns the same row with these runs behind it, for what is read from them."""
  other = Ours(found.row, runs)
  other.__dict__.update({key: value for key, value in found.__dict__.items() if key not in ('row', 'runs')})
  return other


def with_window(found, runs):
  """Returns the same row with these runs to draw from, and FedAvg's last rounds as they were."""
  other = with_runs(found, runs)
  other.__dict__['baseline_windows'] = found.baseline_windows
  return other


def rows(table, **changes):
  """All rows of a table as printed, changed where `changes` names a number of clusters ('3' or '4')."""
  names = [row.name for row in miles2024.PUBLISHED[table].rows if ',' not in row.name]
  return {name: row(table, name, **changes.get(f'of{name[0]}', {})) for name in names}
