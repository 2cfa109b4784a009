"""Connected components against SciPy's."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

from tests.made_up.clients import together
from tff_cluster.clustering import connected_components


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0, 0.5))
def test_components_equal_scipys(size, seed, density):
  links = np.random.default_rng(seed).random((size, size)) < density
  links |= links.T
  found = connected_components.components(links)
  _, expected = csgraph.connected_components(links, directed=False)
  np.testing.assert_array_equal(together(found), together(expected))
  _, first = np.unique(found, return_index=True)
  assert (np.diff(first) > 0).all() and found[0] == 0
