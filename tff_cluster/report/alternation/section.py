"""The section of report.html about rounds that alternate between clustering and training: where clients went, and what collapsed."""

from collections.abc import Callable, Sequence

import numpy as np

from tff_cluster.base.words import plural
from tff_cluster.clustering.membership_history import Alternated, Collapse
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.pages import Section
from tff_cluster.report.pictures import Picture


def rounds_section(
  run: FinishedRun, clustering: Clustering, figures: Callable[[str], Sequence[Picture]]
) -> Section | None:
  """Returns the rounds of one clustering; None where its method does not alternate.

  Args:
    run: The run.
    clustering: One of the run's.
    figures: Returns the pictures of a section, here of 'rounds LABEL'.
  """
  found = clustering.alternation
  if found is None:
    return None
  data = {
    'story': story(found, str(clustering.parameters.get('start_clustering')), len(run.client_ids)),
    'collapse': collapse(clustering.collapse),
    'pictures': figures(f'rounds {clustering.label}'),
  }
  return Section(f'Rounds of {clustering.label}', 'alternation.html', 'rounds', data)


def story(found: Alternated, start_clustering: str, clients: int) -> str:
  """Returns in sentences how it began, when clients settled, and how old memberships are."""
  starts = {
    'random': 'random initial models',
    'warm': 'the model of Phase 1 with noise',
    'clustering': f'the clusters of {start_clustering}',
  }
  begun = (
    f'Rounds {found.first_round + 1} to {found.last_round} alternated between clustering and training, with '
    f'{plural(found.num_models, "model")} that started from {starts.get(found.start, found.start)}'
  )
  moved = np.flatnonzero(found.changed)
  if not len(moved):
    settled = 'no client changed its model after the first of them'
  else:
    last = found.first_round + 1 + int(moved[-1])
    settled = (
      f'{found.changed[-1]:,} of {plural(clients, "client")} changed their model in the last round'
      if last == found.last_round
      else f'the last change of a client’s model was in round {last}'
    )
  return f'{begun}; {settled}. {_age(found)}'.rstrip()


def collapse(found: Collapse | None) -> str:
  """Returns what collapsed; empty where every model has clients, and they are not everybody’s alike."""
  if found is None:
    return ''
  if found.all_in_one:
    return f'All clients ended with the same of {found.num_models} models: the method collapsed to one model for everybody.'
  if found.empty_models:
    return f'{plural(found.empty_models, "model")} of {found.num_models} ended without clients: the method collapsed in part.'
  return ''


def _age(found: Alternated) -> str:
  if not found.oldest:
    return ''
  return f'Memberships were estimated up to {plural(found.oldest, "round")} before the last one, {found.mean_age:.1f} on average.'
