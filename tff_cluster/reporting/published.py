"""The numbers that Rohith et al. 2020 published, and the rule that compares ours with them."""

import dataclasses

from tff_cluster.reporting.setting import Setting

TOLERANCE_POINTS = 1.0
_KMEANS, _DYNAMIC, _BRIGGS = 'kmeans', 'dynamic_distance', 'hierarchical'


@dataclasses.dataclass(frozen=True)
class PublishedNumber:
  """One cell of a table.

  Attributes:
    table: For instance 'Table 3'.
    cell: Row and column, in words.
    method: Which of our methods fills it (a name in clustering/methods).
    quantity: Which quantity of ours stands beside it, see evidence.quantities.
    value: From 0 to 1.
    source: Where it is printed.
  """

  table: str
  cell: str
  method: str
  quantity: str
  value: float
  source: str


PUBLISHED = (
    PublishedNumber(
        'Table 1', 'FL+HC (L2, single linkage): highest client accuracy', _BRIGGS, 'own_highest', 0.981,
        'Rohith et al. 2020, table 1, after Briggs et al. 2020',
    ),
    PublishedNumber(
        'Table 1', 'FL+HC (L2, single linkage): clients at the highest accuracy', _BRIGGS, 'own_share_at_highest', 0.67,
        'Rohith et al. 2020, table 1, after Briggs et al. 2020',
    ),
    PublishedNumber(
        'Table 2', 'K-means: highest client accuracy', _KMEANS, 'highest', 0.996,
        'Rohith et al. 2020, table 2 and section 7.2.1',
    ),
    PublishedNumber(
        'Table 2', 'K-means: clients at the highest accuracy', _KMEANS, 'share_at_highest', 0.26,
        'Rohith et al. 2020, table 2 and section 7.2.1',
    ),
    PublishedNumber(
        'Table 2', 'Dynamic clustering: highest client accuracy', _DYNAMIC, 'highest', 0.997,
        'Rohith et al. 2020, table 2 and section 7.2.2',
    ),
    PublishedNumber(
        'Table 2', 'Dynamic clustering: clients at the highest accuracy', _DYNAMIC, 'share_at_highest', 0.28,
        'Rohith et al. 2020, table 2 and section 7.2.2',
    ),
    PublishedNumber(
        'Table 3', 'K-means: Phase 1, global test set', _KMEANS, 'phase1_global', 0.925,
        'Rohith et al. 2020, table 3 and section 7.2.1',
    ),
    PublishedNumber(
        'Table 3', 'K-means: Phase 3, clusters average', _KMEANS, 'average_global', 0.934,
        'Rohith et al. 2020, table 3 and section 7.2.1',
    ),
    PublishedNumber(
        'Table 3', 'K-means: Phase 3, weighted cluster average', _KMEANS, 'weighted_global', 0.934,
        'Rohith et al. 2020, table 3 and section 7.2.1',
    ),
    PublishedNumber(
        'Table 3', 'Dynamic clustering: Phase 1, global test set', _DYNAMIC, 'phase1_global', 0.91,
        'Rohith et al. 2020, table 3 and section 7.2.2',
    ),
    PublishedNumber(
        'Table 3', 'Dynamic clustering: Phase 3, clusters average', _DYNAMIC, 'average_global', 0.93,
        'Rohith et al. 2020, table 3 and section 7.2.2',
    ),
    PublishedNumber(
        'Table 3', 'Dynamic clustering: Phase 3, weighted cluster average', _DYNAMIC, 'weighted_global', 0.93,
        'Rohith et al. 2020, table 3 and section 7.2.2',
    ),
)  # fmt: skip


def verdict(published: float, ours: float | None, setting: Setting) -> str:
  """Compares a published accuracy or share with ours.

  Only a run in the paper's own setting can reproduce a number or fail to. In another setting the
  closeness is told for what it is, and the line says what was run.

  Args:
    published: From 0 to 1.
    ours: From 0 to 1, or None where it was not measured.
    setting: What the run was run on.

  Returns:
    'not run'; 'reproduced (within 1 point)'; 'differs by 3.2 points (ours is lower)'; and in another
    setting 'within 1 point' or 'differs by ...', followed by what it was run on.
  """
  if ours is None:
    return 'not run'
  difference = 100.0 * (ours - published)
  # The slack keeps a difference of exactly one point from failing by rounding of binary fractions.
  if abs(difference) <= TOLERANCE_POINTS + 1e-9:
    found = f'within {TOLERANCE_POINTS:g} point'
    return f'reproduced ({found})' if setting.is_papers else f'{found} ({setting.remark})'
  side = 'higher' if difference > 0 else 'lower'
  # "differs by 1.0 points" would read like the tolerance that it exceeds.
  size = f'{abs(difference):.1f} points'
  size = f'just over {TOLERANCE_POINTS:g} point' if size == f'{TOLERANCE_POINTS:.1f} points' else size
  return f'differs by {size} (ours is {side}{"" if setting.is_papers else f"; {setting.remark}"})'
