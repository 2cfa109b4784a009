"""The page of a cross-validation: what the folds say of each model, with interval, precision and recall."""

import json

import pytest

from tests.made_up import finished_run as made_up
from tests.made_up import in_json
from tff_cluster.papers import rohith2020
from tff_cluster.scorecard.published import PAPER
from tff_cluster.studies.reproduction import page

FOLDS = rohith2020.PUBLISHED['rohith2020/folds']


def test_the_page_has_what_the_folds_say_and_nothing_of_rows_that_were_not_run(tmp_path):
  value, _ = made_up.make_run(methods=('kmeans',))
  told = {'mean': 0.9, 'low': 0.88, 'high': 0.92, 'precision': 0.89, 'recall': 0.87}
  names = ('unclustered/baseline', 'kmeans/own', 'kmeans/blended')
  value['cross_validation'] = {
    'folds': 10, 'evaluations': {name: {k: v - 0.1 * i for k, v in told.items()} for i, name in enumerate(names)},
  }  # fmt: skip
  written = page.write(
    FOLDS, [((FOLDS.rows[0],), 0, in_json.typed(value))], PAPER, {'command': 'none'}, tmp_path
  )
  assert 'interval over folds' in written.read_text()
  records = json.loads((tmp_path / 'scorecard.json').read_text())
  found = {record['column']: record['ours'] for record in records if record['row'] == 'K-means'}
  for i, model in enumerate(('baseline', 'own', 'blended')):
    for metric, share in told.items():
      assert float(found[f'{model}_{metric}']) == pytest.approx(100 * (share - 0.1 * i))
  assert {record['row'] for record in records} == {'K-means', 'claim'}
