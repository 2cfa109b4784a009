"""Makes up rounds of a method that alternates for made-up runs: clients start anywhere and go to the model of their group."""

from typing import Any

import numpy as np

from tff_cluster.clustering import membership_history

PARAMETERS = {'num_clusters': 4, 'start': 'random', 'start_noise': 0.1, 'start_clustering': None}


def make_rounds(
  owner: np.ndarray, label: str, rounds: tuple[int, int], taken: int = 3
) -> tuple[dict[str, Any], np.ndarray, dict[str, np.ndarray]]:
  """Returns the clustering's `alternation`, int64[clients] its clusters, and its arrays.

  Of 4 models the last is nobody's from the second round on. Client k is in model k % 4 after the first round, and from round
  2 + k % 2 on in model g % taken, where g is its group. Clients with k % 5 = 4 are not seen in the first round.

  Args:
    owner: int64[clients], planted groups.
    label: Of the clustering.
    rounds: Of Phase 1 and Phase 2; the rounds start before Phase 1.
    taken: How many models have clients in the end.
  """
  places, final, length = np.arange(len(owner)), owner % taken, sum(rounds)
  models = np.stack([np.where(r < 1 + places % 2, places % 4, final) for r in range(length)])
  models[1:][models[1:] == 3] = final[np.nonzero(models[1:] == 3)[1]]
  shares = (np.arange(4)[:, None] == models[:, None]).astype(np.float32)
  shares[0][:, places % 5 == 4] = 0.0
  clusters, labels = np.unique(final, return_inverse=True)
  first = [int(np.flatnonzero(labels == row)[0]) for row in range(len(clusters))]
  order = np.argsort(first)
  found = membership_history.summarise(
    shares, np.full(len(owner), length), 'random', 0, clusters[order].tolist()
  )
  arrays = {f'memberships_{label}': shares, f'first_round_{label}': np.array(0)}
  return found.to_json(), np.argsort(order)[labels], arrays
