"""What methods that are told the number of clusters have in common: its bounds, and what readers must know of it."""

from tff_cluster.base.errors import InputError
from tff_cluster.base.words import plural
from tff_cluster.clustering.assignment import ClusterAssignment


def check_num_clusters(
  num_clusters: int, num_clients: int, words: str = '', name: str = 'num_clusters'
) -> None:
  """Raises InputError if K is below 1 or above the number of clients; `words` stand behind 'clients', `name` is what K is called."""
  if num_clusters < 1:
    raise InputError(f'{name}={num_clusters}: must be at least 1')
  if num_clusters > num_clients:
    raise InputError(
      f'{name}={num_clusters} is more than the {plural(num_clients, "client")}{words}; '
      'give at most as many clusters as clients'
    )


def notes_on_number(assignment: ClusterAssignment, asked: int) -> list[str]:
  """Returns sentences on a clustering that has fewer clusters than were asked for, or separates nobody or everybody.

  Args:
    assignment: A disjoint clustering.
    asked: The number of clusters that was asked for.
  """
  notes = []
  if assignment.num_clusters < asked:
    notes.append(
      f'{assignment.num_clusters} of the {asked} clusters asked for have members: the method cannot tell more of the clients apart'
    )
  if assignment.num_clients > 1 and assignment.num_clusters == assignment.num_clients:
    notes.append('every client is alone: there are as many clusters as clients')
  elif assignment.num_clients > 1 and assignment.num_clusters == 1:
    notes.append('all clients are in one cluster')
  return notes
