"""The cluster's benchmarks: rounds of sleeping clients are what they say, and the table of docs/cluster.md is the formula's."""

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import cluster_pays
from benchmarks.cluster_pays import Cluster, round_seconds
from benchmarks.cluster_scale import tasks_per_second
from tests.benchmarks.program import ROOT, run


def test_cluster_scale():
  pytest.importorskip('distributed')
  lines, result = run(
    'benchmarks.cluster_scale', '--workers=4', '--clients=24', '--seconds', '0.05', '0.1', '--parameters=10',
  )  # fmt: skip
  assert [each['client_seconds'] for each in result['rounds']] == [0.05, 0.1]
  for each in result['rounds']:
    # Six tasks of four clients on four workers, two of which have two.
    assert each['seconds'] >= 8 * each['client_seconds'] and each['possible'] == 0.75
    assert each['efficiency'] == pytest.approx(6 * each['client_seconds'] / each['seconds'], abs=0.01)
  for each in result['idle_round']:
    assert each['cpu_ms'].keys() == {'scheduler', 'run', 'workers'} and min(each['cpu_ms'].values()) >= 0
    # What a task is asked and answers takes some hundred bytes, without its sum of 40.
    assert 100 < each['bytes']['in'] < 10_000 and 100 < each['bytes']['out'] < 10_000
  assert lines


def test_processor_time_below_a_tick_gives_no_rate():
  assert tasks_per_second({'scheduler': 4.0, 'run': 0.0, 'workers': 9.0}) == {'scheduler': 250, 'run': None}


def test_a_round_by_hand():
  # 10 MB take 0.1 s. Ten clients are three tasks, so that of two machines one trains eight clients, four at a time.
  cluster = Cluster(threads=4, line=1e8, task_seconds=0.01, round_seconds=0.3)
  assert round_seconds(cluster, 2, 10, 5.0, 10**7) == pytest.approx(0.3 + 3 * 0.1 + 2 * 5.0 + 2 * 0.1)
  # One machine has them all, ten, and more than three have nothing to do.
  assert round_seconds(cluster, 1, 10, 5.0, 10**7) == pytest.approx(0.3 + 2 * 0.1 + 3 * 5.0 + 0.1)
  assert round_seconds(cluster, 5, 10, 5.0, 10**7) == pytest.approx(0.3 + 6 * 0.1 + 5.0 + 3 * 0.1)
  # Clients that take no time: three sums, or three tasks.
  assert round_seconds(cluster, 3, 10, 0.0, 10**7) == pytest.approx(0.3 + 4 * 0.1 + 3 * 0.1)
  assert round_seconds(cluster, 3, 10, 0.0, 1) == pytest.approx(0.3 + 3 * 0.01, abs=1e-6)


@given(
  st.integers(1, 16), st.integers(1, 300), st.integers(1, 2000), st.floats(0.01, 10.0), st.integers(1, 10**8)
)
def test_a_round_takes_longer_than_its_clients_and_less_on_better_lines(
  threads, machines, clients, seconds, model
):
  cluster = Cluster(threads, 1.25e8, 0.003, 0.3)
  took = round_seconds(cluster, machines, clients, seconds, model)
  assert took > math.ceil(clients / (threads * machines)) * seconds
  better = Cluster(threads, 1.25e9, 0.003, 0.3)
  assert round_seconds(better, machines, clients, seconds, model) < took


def test_the_table_of_the_docs_is_the_formulas(capsys, monkeypatch):
  page = (ROOT / 'docs/cluster.md').read_text()
  commands = re.findall(r'`python -m benchmarks\.cluster_pays([^`]*)`', page)
  assert commands
  for command in commands:
    monkeypatch.setattr('sys.argv', ['cluster_pays', *command.split()])
    assert cluster_pays.main() == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert '\n'.join(lines) in page
    assert len(json.loads(last)) == 2 * (len(lines) - 2)
