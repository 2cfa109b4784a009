"""What holds of every table and figure of every paper: it is found by name, can be run, and its claims wait for their rows."""

import pytest

from tff_cluster.base.errors import InputError
from tff_cluster.papers import catalogue
from tff_cluster.studies.reproduction import runs

EVERY = pytest.mark.parametrize('published', catalogue.PUBLISHED.values(), ids=lambda p: p.name)


@EVERY
def test_it_is_asked_for_by_name(published):
  asked = {'table': None, 'figure': None} | {'figure' if published.is_figure else 'table': published.name}
  assert catalogue.find(**asked) is published
  with pytest.raises(InputError, match='no such'):
    catalogue.find(table=asked['figure'], figure=asked['table'])


@EVERY
@pytest.mark.parametrize('scale', ['paper', 'small'])
def test_every_row_is_a_valid_experiment_and_toys_have_none(published, scale, tmp_path):
  names = [row.name for row in published.rows]
  assert len(set(names)) == len(names) and {cell.row for cell in published.cells} <= set(names)
  if published.compute is not None:
    assert not names and not published.preset
    return
  jobs = runs.plan(published, published.scale(scale), (0, 1), tmp_path)
  assert sorted(row.name for job in jobs for row in job.rows) == sorted(2 * names)
  assert all(len(job.rows) == max(len(job.config.clusterings), 1) for job in jobs)


@EVERY
def test_claims_say_what_the_paper_has_and_without_rows_none_was_run(published):
  assert len({claim.words for claim in published.claims}) == len(published.claims)
  for claim in published.claims:
    finding = claim.check({})
    assert (finding.verdict, finding.ours) == ('not run', '–')
    assert claim.needs.names[0] in finding.note
    assert claim.published and claim.source.startswith(published.source.split(',')[0])
