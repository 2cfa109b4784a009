"""CFL: Clustered Federated Learning, as printed, and the experiments that its guarantees ask for.

F. Sattler, K.-R. Müller, W. Samek, "Clustered Federated Learning", NeurIPS 2019 workshop on federated learning for data
privacy and confidentiality. Figure 3 trains 20 clients on CIFAR-10 whose labels are permuted, by one of four
permutations; figures 1 and 2 are toy problems (toys/).

Departures and choices:
  The paper prints no numbers but those of its text, so figure 3 has claims and no cells.
  eps_1, eps_2, the learning rate and the network's widths are not given. Figure 3 splits in rounds 50, 100 and 150, so
    a cluster trains 50 rounds before it may be split. 201 rounds are run: the clusters of round 150 are tested after 50, and in the last round
    nobody is. eps_1 is so large that it forbids none of
    these splits, and eps_2 lies between the norms, at the small scale, of clients that agree and of those
    that do not (docs/results/sattler2019.md).
  A client trains on nine tenths of its rows (validation_fraction): the others are for validation, and CFL does not look at them. The paper
    keeps none.
  Equation 7 tests every client on all of D^test, its labels permuted, and so does figure 3 here (test_rows=all), at both scales, in every
    round. Clients of a group that have one model are one measurement: FedAvg, and four clusters together, put 40,000 test rows
    through a model each round, beside the 135,000 that a round trains on at the paper's scale. SPLITS is ours, and shares the test rows out.
  SPLITS is not the paper's table: how often CFL splits clients that agree, and finds planted groups, which the paper
    claims in words.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tff_cluster.clustering import halves
from tff_cluster.scorecard.cells import standard
from tff_cluster.scorecard.published import PAPER, Published, Scale, by_name
from tff_cluster.scorecard.rows import Row

ROUNDS, ROUNDS_BEFORE_SPLIT = 201, 50


def _cfl(name: str, **changes: Any) -> dict[str, Any]:
  return {'method': 'bipartition', 'name': name, **changes}


def _groups_rows() -> tuple[Row, ...]:
  """Returns two rows for each kind of clients: CFL as printed, and with all three guards."""
  kinds: dict[str, dict[str, Any]] = {
    'IID': {'partition': 'iid'},
    'labels skewed': {'partition': 'dirichlet', 'dirichlet_alpha': 1.0},
    'labels swapped, 2 groups': {'partition': 'label_swapped', 'num_groups': 2},
    'labels swapped, 4 groups': {'partition': 'label_swapped', 'num_groups': 4},
    'rotated, 2 groups': {'partition': 'rotated', 'num_groups': 2},
    'rotated, 4 groups': {'partition': 'rotated', 'num_groups': 4},
  }
  variants = {
    AS_PRINTED: _cfl('as_printed', stopping_norm=_EPS_2, **_TESTED),
    # The guards keep clients together that agree, so eps_2 may be low enough for whatever still disagrees.
    GUARDED: _cfl(
      'guarded',
      stopping_norm=_LOW_EPS_2,
      min_cluster_size=2,
      min_similarity_gap=GAP,
      max_cross_similarity=CROSS,
      **_TESTED,
    ),
  }
  return tuple(
    Row(f'{kind}; {words}', settings, clustering)
    for kind, settings in kinds.items()
    for words, clustering in variants.items()
  )


def _entry(
  name: str, title: str, source: str, preset: str, rows: tuple[Row, ...], note: str, sections: tuple[str, ...],
  small: Scale = PAPER, compute: Callable[[int], Sequence[Any]] | None = None,
) -> Published:  # fmt: skip
  cells = tuple(cell for row in rows for cell in standard(row.name))
  return Published(
    f'cfl/{name}', title, f'Sattler et al. 2019, {source}', preset, rows, note, 'CFL', small, cells,
    sections=sections, compute=compute,
  )  # fmt: skip


# Imported late: nobody else needs what computes the toys.
def _clients_toys(seed: int) -> Sequence[Any]:
  from tff_cluster.papers.sattler2019.toys import clients

  return clients.run_figure1(seed)


def _risks_toys(seed: int) -> Sequence[Any]:
  from tff_cluster.papers.sattler2019.toys import risks

  del seed  # The risks are formulas, so that nothing is drawn.
  return risks.run_figure2()


# Chosen on other seeds than docs/results/sattler2019.md reports: norms and gap on 0 to 4, the similarity across on 0 to 9, and that
# nobody is split off alone on 10 to 14.
_TESTED = {'stationary_norm': 0.3, 'rounds_before_split': 10}
_EPS_2, _LOW_EPS_2 = 0.75, 0.3
AS_PRINTED, GUARDED = 'as printed', 'guarded'
GAP, CROSS = halves.GAP, halves.CROSS
PLANTED = ('swapped', 'rotated')

FIGURE3 = _entry(
  'figure3', 'CFL on CIFAR-10 with four permutations of the labels', 'figure 3', 'cfl_cifar10',
  (
    Row(
      'four permutations',
      {'phase1_rounds': ROUNDS_BEFORE_SPLIT, 'phase2_rounds': ROUNDS - ROUNDS_BEFORE_SPLIT},
      _cfl('cfl', stationary_norm=2.0, stopping_norm=1.0, rounds_before_split=ROUNDS_BEFORE_SPLIT),
    ),
  ),
  'The figure prints no numbers; its claims stand in section 4.',
  ('splits', 'claims', 'clusters', 'curves'),
  Scale(
    'small', '500 rows a client instead of 2,500, batches of 20 instead of 100, 81 rounds in all, 20 instead of 50 before a split',
    {'rows_per_client': 500, 'batch_size': 20, 'phase1_rounds': 20, 'phase2_rounds': 61}, {'bipartition': {'rounds_before_split': 20}},
  ),
)  # fmt: skip
SPLITS = _entry(
  'splits', 'How often CFL splits clients that agree, and finds planted groups', 'section 2', 'cfl_mnist',
  _groups_rows(),
  'The table is ours: the paper claims in words that only clients that disagree are separated. “As printed” decides by '
  'the norms alone (equation 5); “guarded” also asks that no two clients across the halves have a similarity above '
  f'{CROSS:g}, that every client is more similar to its own half than that, by {GAP:g}, and that no half is one client; '
  'it stops at a lower eps_2.',
  ('claims', 'clusters', 'curves'),
  Scale('small', '10 clients instead of 20', {'num_clients': 10}),
)  # fmt: skip
# Figures without an experiment behind them: phases.reproduce computes them at once.
TOYS = by_name(
  _entry(
    'figure1', 'Two cases in which one model does not fit all clients', 'figure 1', '', (),
    'The paper draws the points and prints no number of them, so discs, sizes and the models are ours. '
    'The lower panels are our addition: a model that is complex enough for XOR.',
    ('clients toy', 'claims', 'clients of the toy'), compute=_clients_toys,
  ),
  _entry(
    'figure2', 'Paths of Federated Learning on incongruent and congruent risks', 'figure 2', '', (),
    'The paper draws two problems and prints neither formulas nor numbers, so the risks and the start are ours.',
    ('risks toy', 'claims', 'risks of the toy'), compute=_risks_toys,
  ),
)  # fmt: skip
PUBLISHED = by_name(FIGURE3, SPLITS, *TOYS.values())
