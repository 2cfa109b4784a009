"""Comparisons for the tests of the atlas, with the arrays of their runs."""

from typing import Any

from tests.made_up import finished_run as made_up
from tests.made_up import in_json
from tff_cluster.report.atlas import data as atlas
from tff_cluster.scorecard import contenders, paired_statistics
from tff_cluster.studies.comparison import saved, verdicts

METHODS = ('kmeans', 'dynamic_distance:cliques', 'bipartition', 'planted', 'ifca')
STRANGE = [
  '</script><b>x</b>',
  'é"\'',
  '<img src=x onerror=alert(1)>',
  'a b&client=1#%',
  '-->',
  '日本 \u2028',
]


def make(seeds: int = 2, num_clients: int = 14, **options: Any) -> tuple[list, dict[int, dict]]:
  """Returns (seed, results) of each run, and its arrays by seed; options are those of made_up.make_run."""
  options = {'truth': 'mixture', 'methods': METHODS, 'personalized': {'local': -0.02}} | options
  made = [made_up.make_run(num_clients=num_clients, seed=seed, **options) for seed in range(seeds)]
  return [(seed, run[0]) for seed, run in enumerate(made)], {seed: run[1] for seed, run in enumerate(made)}


def strange_ids(num_clients: int) -> list[str]:
  return STRANGE + [f'c{k:02d}' for k in range(len(STRANGE), num_clients)]


def document(runs: list, arrays: dict[int, dict], alarms: tuple[str, ...] = ()) -> tuple[dict, dict]:
  """Returns the atlas's document and comparison.json."""
  runs = in_json.typed_runs(runs)
  rows = contenders.read_contenders(runs)
  found = paired_statistics.measure(rows, runs[0][1].config.evaluation.target_accuracy, samples=100)
  checks = verdicts.make_checks(found, verdicts.planted_form(runs))
  told = saved.document(runs, rows, found, checks, alarms)
  return atlas.make(runs, arrays, rows, told), told
