"""Runs of the three-phase method: as printed where a number is printed, and with a fault for each claim."""

from collections.abc import Iterator

from tests.made_up import in_json
from tff_cluster.papers import rohith2020
from tff_cluster.papers.rohith2020.tables import DYNAMIC, HIERARCHICAL, KMEANS
from tff_cluster.scorecard.rows import Ours, Run

NAMES = tuple(rohith2020.PUBLISHED)
# What nothing decides, and what says why.
UNDECIDABLE = {
  'Clients of both are more accurate': 'quoted of another',
  'Fewer clients than with hierarchical': 'quoted of another',
}
ROWS = {'kmeans': KMEANS, 'dynamic_distance': DYNAMIC, 'hierarchical': HIERARCHICAL}
_BASELINE_GLOBAL = 0.92
# Shares by method: the paper's numbers where it prints them (tables 1 to 3).
PRINTED = {
    'kmeans': {
        'phase1_global': 0.925, 'average_global': 0.934, 'weighted_global': 0.934, 'highest': 0.996, 'share_at_highest': 0.26,
        'blended_mean': 0.99, 'own_mean': 0.99, 'blended_99': 0.3, 'members_unblended': 0.95, 'members_blended': 0.948,
        'global_unblended': 0.7, 'global_blended': 0.8, 'own_folds': 0.95, 'blended_folds': 0.96,
    },
    'dynamic_distance': {
        'phase1_global': 0.91, 'average_global': 0.93, 'weighted_global': 0.93, 'highest': 0.997, 'share_at_highest': 0.28,
        'blended_mean': 0.998, 'own_mean': 0.998, 'blended_99': 0.3, 'members_unblended': 0.96, 'members_blended': 0.958,
        'global_unblended': 0.7, 'global_blended': 0.8, 'own_folds': 0.97, 'blended_folds': 0.98,
    },
    'hierarchical': {'own_mean': 0.981, 'own_99': 0.67, 'blended_mean': 0.98, 'phase1_global': 0.91, 'average_global': 0.93},
}  # fmt: skip


def run(
  method: str,
  told: dict[str, float],
  phase1=(0.97, 0.5),
  baseline_mean=0.94,
  seed=0,
  over_clients=None,
) -> Ours:
  """Returns a row of one seed from which just these numbers can be read, all shares; FedAvg has two clients, the clusters 100.

  Means over clients in the rounds of a stage are its accuracy on the global test set, or `over_clients`.
  """

  def clients(kind: str, **metrics: str):
    at_99 = round(100 * told.get(f'{kind}_99', 0.0))
    at_highest = round(100 * told.get('share_at_highest', 0.0)) if kind == 'blended' else 0
    found = {name: told[key] for name, key in metrics.items() if key in told}
    accuracy = [told.get('highest')] * at_highest + [0.99] * max(at_99 - at_highest, 0)
    return {'clients': found, 'client_accuracy': accuracy + [0.9] * (100 - len(accuracy))}

  def stage(accuracy, global_accuracy):
    history = {
      'rounds': list(range(1, 21)),
      'test_accuracy': [global_accuracy if over_clients is None else over_clients] * 20,
      'share_at_target': [0.0] * 20,
    }
    return {
      'rounds': 20, 'history': history,
      'evaluation': {
        'client_accuracy': accuracy, 'clients': {'mean_client_accuracy': sum(accuracy) / len(accuracy)},
        'global': {'accuracy': global_accuracy},
      },
    }  # fmt: skip

  clustering = {
    'label': method, 'signature': 'weights', 'parameters': {},
    'evaluations': {
      'own': clients('own', mean_client_accuracy='own_mean'),
      'blended': clients(
        'blended', mean_client_accuracy='blended_mean', highest_client_accuracy='highest',
      ),
      **{name: {'global': {'accuracy': told.get(f'{name}_global', 0.0)}} for name in ('average', 'weighted')},
    },
    'cluster_scores': {
      kind: {where: [told[f'{where}_{kind}']] for where in ('members', 'global') if f'{where}_{kind}' in told}
      for kind in ('unblended', 'blended')
    },
    'history': {'rounds': [21, 40], 'test_accuracy': [0.9, 0.9], 'share_at_target': [0.0, 0.0]},
  }  # fmt: skip
  over_folds = {f'{method}/{kind}': told.get(f'{kind}_folds', 0.0) for kind in ('own', 'blended')}
  made = in_json.typed({
    'config': {},
    'cross_validation': {
      'folds': 10,
      'evaluations': {key: {'mean': mean} for key, mean in {'unclustered/baseline': 0.9, **over_folds}.items()},
    },
    'phase1': stage(list(phase1), told.get('phase1_global', 0.0)),
    'baseline': stage([baseline_mean - 0.01, baseline_mean + 0.01], _BASELINE_GLOBAL),
    'clusterings': [clustering],
  })  # fmt: skip
  found = Ours(ROWS[method], (Run(seed, made, made.clusterings[0]),))
  found.__dict__['together'] = ((told.get('together', 0.5), 0.2),)
  return found


def rows(*changes: tuple[str, str, float], **more) -> dict[str, Ours]:
  """Returns the rows as printed, with some numbers changed: method, quantity, value."""
  told = {method: dict(quantities) for method, quantities in PRINTED.items()}
  for method, quantity, value in changes:
    told[method][quantity] = value
  return {ROWS[method].name: run(method, quantities, **more) for method, quantities in told.items()}


def good(name: str) -> dict[str, Ours]:
  """Returns rows for which every claim holds."""
  del name
  # Section 7.2 compares gains from two runs of Phase 1; on one the level decides.
  return rows()


def bad(name: str) -> Iterator[tuple[str, dict[str, Ours]]]:
  """Yields how the words of a claim start, and rows on which it fails."""
  if name.endswith('table2'):
    for kind in ('blended', 'own'):
      yield (
        f'Overlapping clusters serve the clients better than disjoint ones: {kind}',
        rows(('dynamic_distance', f'{kind}_mean', 0.989)),
      )
      yield (
        f'K-means: clients do better than with FedAvg without clusters: {kind}',
        rows(('kmeans', f'{kind}_mean', 0.94)),
      )
      yield (
        f'Dynamic clustering: clients do better than with FedAvg without clusters: {kind}',
        rows(('dynamic_distance', f'{kind}_mean', 0.93)),
      )
    for method, words in (('kmeans', 'K-means'), ('dynamic_distance', 'Dynamic clustering')):
      yield f'{words}: similar clients', rows((method, 'together', 0.2))
  if name.endswith('table3'):
    for method, words in (('kmeans', 'K-means'), ('dynamic_distance', 'Dynamic clustering')):
      yield (
        f'{words}: the average of the cluster models is better on the global test set than Phase 1',
        rows((method, 'phase1_global', 0.935)),
      )
      yield (
        f'{words}: the average of the cluster models is better on the global test set than FedAvg',
        rows((method, 'average_global', 0.91)),
      )
      yield (
        f'{words}: weighting',
        rows((method, 'weighted_global', 0.94 + 0.01 * (method == 'dynamic_distance'))),
      )
      yield (
        f'{words}: blended with the average of all, clusters keep',
        rows((method, 'members_blended', 0.93)),
      )
      yield f'{words}: blended with the average of all, clusters gen', rows((method, 'global_blended', 0.7))
    yield 'Dynamic clustering gains more', rows(('kmeans', 'phase1_global', 0.9))
  if name.endswith('folds'):
    for method, words in (('kmeans', 'K-means'), ('dynamic_distance', 'Dynamic clustering')):
      for kind in ('own', 'blended'):
        start = f'{words}: in ten-fold cross-validation clients do better than with FedAvg without clusters, in the mean over folds: {kind}'
        yield start, rows((method, f'{kind}_folds', 0.89))
  if name.endswith('figure4'):
    yield 'K-means: on average', rows(phase1=(0.995, 0.995))
  if name.endswith('figure5'):
    yield 'Dynamic clustering: on average', rows(phase1=(0.998, 0.998))
