"""Makes some clients of made-up results malicious; their accuracies stay what they are."""

from collections.abc import Mapping, Sequence
from typing import Any


def add(
  results: dict[str, Any],
  malicious: Sequence[int],
  beside: Mapping[str, float | None],
  dropped: int = 0,
  **data: Any,
) -> None:
  """Puts malicious clients into results, in place.

  Args:
    results: The results.
    malicious: Positions of the malicious clients.
    beside: By label, the share of honest clients that share a cluster with a malicious one.
    dropped: Updates that were dropped, the same everywhere.
    **data: Fields of the configuration: attack, attack_scale.
  """
  ids = results['population']['client_ids']
  chosen = set(malicious)
  results['config']['data'] |= {'malicious_clients': 0.2} | data
  results['population']['truths']['malicious'] = [
    [float(k not in chosen) for k in range(len(ids))],
    [float(k in chosen) for k in range(len(ids))],
  ]
  for clustering in results['clusterings']:
    clustering['recovery']['malicious'] = {'ari': 0.5, 'nmi': 0.5, 'omega': 0.25}
  results['malicious'] = {
    'client_ids': [ids[k] for k in sorted(chosen)],
    'baseline': _sides(results['baseline']['evaluation'], chosen, dropped),
    'clusterings': {
      clustering['label']: _sides(clustering['evaluations']['own'], chosen, dropped)
      | {'honest_beside_malicious': beside[clustering['label']]}
      for clustering in results['clusterings']
    },
  }


def _sides(evaluation: Mapping[str, Any], chosen: set[int], dropped: int) -> dict[str, Any]:
  honest = [a for k, a in enumerate(evaluation['client_accuracy']) if k not in chosen]
  other = [a for k, a in enumerate(evaluation['client_accuracy']) if k in chosen]
  return {
    'honest_accuracy': sum(honest) / len(honest) if honest else None,
    'malicious_accuracy': sum(other) / len(other) if other else None,
    'dropped_updates': dropped,
  }
