"""Clusterings whose clients trained on for themselves, beside fine-tuned FedAvg: numbers, words, page and what is kept."""

import json

import numpy as np
import pytest

from tests.made_up import comparison_runs
from tests.made_up.comparison_runs import FEDAVG, FINE_TUNED, constant
from tff_cluster.scorecard import contenders, paired_statistics
from tff_cluster.studies.comparison import answer, page
from tff_cluster.studies.kept import compared

LEVELS = {FEDAVG: 0.5, FINE_TUNED: 0.6, 'kmeans': 0.55, 'second': 0.65, 'planted': 0.7}
TUNED = {'kmeans': 0.7, 'second': 0.55, 'planted': 0.8}


def made(seeds, tuned=True):
  levels = {name: constant(level, seeds) for name, level in LEVELS.items()}
  more = {name: constant(level, seeds) for name, level in TUNED.items()} if tuned else None
  return comparison_runs.typed(comparison_runs.make(levels, trained_on=more))


def statistics(seeds, **options):
  return paired_statistics.measure(contenders.read_contenders(made(seeds, **options)), 0.9)


def test_each_is_compared_with_fedavg_and_with_fine_tuned_fedavg():
  found = {each.name: each for each in statistics(3).trained_on}
  assert list(found) == list(TUNED)
  for name, level in TUNED.items():
    assert (found[name].rule, found[name].mean.mean) == ('fine_tuned', pytest.approx(level))
    over = {kind: difference.interval.mean for kind, difference in found[name].over.items()}
    assert over == pytest.approx({'fedavg': level - 0.5, 'fine_tuning': level - 0.6})
  assert statistics(3, tuned=False).trained_on == ()


@pytest.mark.parametrize(
  ('seeds', 'words'),
  [
    (3, 'Above fine-tuned FedAvg, by intervals over 3 seeds, trained on by clients (fine_tuned): kmeans.'),
    (8, 'Better than fine-tuned FedAvg, trained on by clients (fine_tuned): kmeans.'),
  ],
)
def test_the_answer_names_those_above_it_and_no_oracle(seeds, words):
  told = answer.sentences(statistics(seeds))
  assert words in told and any('second' in each and 'fine-tuned' in each for each in told if each != words)
  assert not any('trained on' in each for each in answer.sentences(statistics(seeds, tuned=False)))


def test_page_and_kept_table_have_them(tmp_path):
  runs = made(3)
  written = page.write(runs, {'command': 'python -m phases.compare'}, tmp_path, {}).read_text()
  assert 'Own models that clients trained on for themselves' in written
  (kmeans, *_) = json.loads((tmp_path / 'comparison.json').read_text())['trained_on']
  assert (kmeans['contender'], kmeans['rule']) == ('kmeans', 'fine_tuned')
  np.testing.assert_allclose(kmeans['over_fine_tuning']['by_seed'], 0.1)
  header, first, *_ = compared.tables_of({'': tmp_path})['trained_on'].splitlines()
  told = dict(zip(header.split(','), first.split(','), strict=True))
  assert (told['contender'], told['accuracy [%]']) == ('kmeans', '70.0')
  assert (told['difference [points]'], told['to fine-tuned FedAvg [points]']) == ('20.0', '10.0')
