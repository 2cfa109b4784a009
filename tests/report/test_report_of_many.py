"""The report of thousands of clients and clusters stays small, says what it leaves out, and of few it leaves out nothing."""

import re

import numpy as np
import pytest

from tests.made_up import finished_run as made_up
from tests.made_up.drawn import drawn, run_of
from tff_cluster.report import cluster_sections
from tff_cluster.report.figures import accuracy, base, embedding, heatmaps, membership
from tff_cluster.scorecard import summary
from tff_cluster.scorecard.intervals import Interval


def _shapes(figure):
  svg, _ = base.render(figure)
  return len(re.findall(rb'<(?:use|path)\b', svg))


def test_shapes_of_a_picture_do_not_grow_with_the_clients(rendered):
  clients, rng = 600, np.random.default_rng(0)
  overlapping = (rng.random((40, clients)) < 0.05).astype(float)
  overlapping[rng.integers(40, size=clients), np.arange(clients)] = 1.0
  places, truth = rng.normal(size=(clients, 2)), np.eye(4)[:, np.arange(clients) % 4]
  few = embedding.embedding(places[:40], truth[:, :40], truth[:, :40], 'group', 'x')
  many = embedding.embedding(places, truth, overlapping, 'group', 'x')
  gains = accuracy.client_differences([('x', rng.normal(size=clients), Interval(0.0, -1.0, 1.0))])
  assert _shapes(few) > 80 and _shapes(many) < 500 and _shapes(gains) < 200


def test_a_matrix_pools_what_does_not_fit_and_keeps_its_places(monkeypatch):
  monkeypatch.setattr(base, 'MOST_PIXELS', 4)
  names, distances = [str(k) for k in range(10)], np.arange(100.0).reshape(10, 10)
  axes = heatmaps.distance_matrix(distances, np.arange(10), names, 'd').axes[0]
  (image,) = axes.images
  shown = np.asarray(image.get_array().filled(np.nan))
  plain = distances.copy()
  np.fill_diagonal(plain, np.nan)
  assert shown.shape == (4, 4)
  assert shown[0, 2] == plain[:3, 6:9].mean() and shown[3, 0] == plain[9:, :3].mean()
  assert np.isnan(shown[3, 3])  # The last pixel is one client beside itself.
  assert axes.get_xlim() == (-0.5, 9.5) and axes.get_ylim() == (9.5, -0.5)
  assert tuple(image.get_extent()) == (-0.5, 11.5, 11.5, -0.5)
  member = np.zeros((10, 10))
  member[4, 7] = member[:, 0] = 1.0
  figure = membership.membership_matrix(member, names, 'm', order=np.arange(10))
  pixels = np.asarray(figure.axes[0].images[0].get_array())
  assert pixels[:, 0].tolist() == [1.0] * 4 and pixels[:, 1:].sum() == 1.0


@pytest.mark.parametrize('most', [2, 200])
def test_a_table_of_clusters_has_the_largest_and_says_what_is_left_out(most, monkeypatch):
  monkeypatch.setattr(cluster_sections, '_MOST_CLUSTERS', most)
  run = run_of(made_up.make_run(methods=('dynamic_distance',))[0])
  (clustering,) = run.results.clusterings
  count = clustering.num_clusters
  assert count > 2
  html = drawn(cluster_sections.clustering_section(run, clustering, lambda section: []))
  (body,) = re.findall('<tbody>(.*)</tbody>', html, re.S)
  shown = [int(n) for n in re.findall(r'<tr><td class="n">\d+</td><td class="n">(\d+)</td>', body)]
  assert sorted(shown, reverse=True) == sorted(map(len, clustering.clusters), reverse=True)[:most]
  left_out = f'{count - most} smaller clusters are left out of the table. All are in clusterings/'
  assert (left_out in html) == (most == 2)


def test_a_summary_has_the_numbers_of_the_report():
  results, _ = made_up.make_run(methods=('kmeans', 'dynamic_distance', 'planted'), local=-0.1)
  lines = summary.of_run(run_of(results).results)
  fedavg, alone, kmeans, *_ = lines
  assert (fedavg.label, alone.label, kmeans.label) == (
    'FedAvg without clusters',
    'every client alone',
    'kmeans',
  )
  assert [line.kind for line in lines] == ['fedavg', 'local', 'disjoint', 'overlapping', 'oracle']
  own = np.array(results['clusterings'][0]['evaluations']['own']['client_accuracy'])
  without = np.array(results['baseline']['evaluation']['client_accuracy'])
  assert kmeans.mean_client_accuracy == own.mean()
  assert kmeans.difference == pytest.approx(np.mean(own - without))
  assert kmeans.interval[0] < kmeans.difference < kmeans.interval[1]
  assert (fedavg.difference, fedavg.interval, fedavg.num_clusters, fedavg.ari) == (None,) * 4
  ledger = results['clusterings'][0]['ledger']
  assert kmeans.client_rounds == ledger['client_rounds']
  assert kmeans.bytes == ledger['bytes_up'] + ledger['bytes_down']
  told = summary.words(lines, 'clients')
  assert len(told) == len(lines) and told[0].startswith('FedAvg without clusters: ')
  assert '95% interval over clients' in told[2] and '95% interval' not in told[0]
