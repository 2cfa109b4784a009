"""Names of files after labels that users chose."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tff_cluster.report.files import file_names

LABELS = st.text('ab_0.1/ ', max_size=4) | st.sampled_from(
  ['x' * 60, 'x' * 61, 'kmeans', 'kmeans_updates', 'kmeans.updates']
)


@given(st.lists(LABELS, unique=True))
def test_labels_have_files_of_their_own(labels):
  names = file_names(labels)
  # A figure of one label, and one that belongs to a part of it.
  files = [*names, *(f'{name}.updates' for name in names)]
  assert len(names) == len(labels) and len(set(files)) == len(files)
  assert all(re.fullmatch('[A-Za-z0-9_.-]+', name) and not name.startswith('.') for name in files)


def test_a_plain_label_is_its_name():
  assert file_names(['kmeans', 'cfl_2', 'ifca: 4 clusters']) == ['kmeans', 'cfl_2', 'ifca__4_clusters']
