"""What holds of every table and figure of every paper: it is found by name, can be run, and its claims wait for their rows."""

import pytest

from tests.made_up.published_table import table
from tests.made_up.refusals import refused
from tff_cluster.papers import catalogue
from tff_cluster.scorecard import rows
from tff_cluster.scorecard.claims import RuledClaim, judged
from tff_cluster.studies.reproduction import runs


@pytest.mark.parametrize('published', catalogue.PUBLISHED.values(), ids=lambda p: p.name)
def test_it_is_found_can_be_run_and_its_claims_wait_for_their_rows(published, tmp_path):
  asked = {'table': None, 'figure': None} | {'figure' if published.is_figure else 'table': published.name}
  assert catalogue.find(**asked) is published
  refused(lambda: catalogue.find(table=asked['figure'], figure=asked['table']), ('no such',))
  assert len({claim.words for claim in published.claims}) == len(published.claims)
  for claim in published.claims:
    finding = claim.check({})
    assert (finding.verdict, finding.ours) == ('not run', '–')
    assert claim.names[0] in finding.note
    assert claim.published and claim.source.startswith(published.source.split(',')[0])
  names = [row.name for row in published.rows]
  assert len(set(names)) == len(names) and {cell.row for cell in published.cells} <= set(names)
  if published.compute is not None:  # A toy.
    assert not names and not published.preset
    return
  for scale in ('paper', 'small'):
    jobs = runs.plan(published, published.scale(scale), (0,), tmp_path)
    assert sorted(row.name for job in jobs for row in job.rows) == sorted(names)
    assert all(len(job.rows) == max(len(job.config.clusterings), 1) for job in jobs)


def test_a_number_says_what_of_a_run_it_is_about():
  stages = {
    rows.fedavg_over_rows: rows.BASELINE,
    rows.alone_over_rows: rows.ALONE,
    rows.fine_tuned_over_rows: rows.FINE_TUNED,
    rows.clusters_over_rows: rows.CLUSTERS,
  }
  cells = [(published, cell) for published in catalogue.PUBLISHED.values() for cell in published.cells]
  about = [(published.name, cell) for published, cell in cells if cell.read in stages]
  assert {name.partition('/')[0] for name, _ in about} >= {'ifca', 'fedem', 'fedsoft', 'cfl_gp'}
  assert not [(name, cell.row, cell.column) for name, cell in about if cell.stage != stages[cell.read]]


def test_a_cell_or_a_claim_about_a_row_that_is_not_there_is_told_when_the_paper_is_read():
  printed = {'first': ((90.0, 1.5), None, None, None)}
  astray = table({'frist': printed['first']}).cells
  claim = RuledClaim('It is so', 'section 3', '1.2x', ('second',), lambda rows: judged(True, '1.5x'))
  refused(
    lambda changes: table(printed, **changes).checked(),
    ({'cells': astray}, "^paper/table9: .* about row 'frist'; its rows are 'first'"),
    ({'claims': (claim,)}, "^paper/table9: claim 'It is so' is about row 'second'"),
  )
