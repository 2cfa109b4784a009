"""Equal content, equal digest; other content, another one."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tff_cluster.base import digests

JSON = st.recursive(
  st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
  lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
  max_leaves=6,
)
ARRAYS = st.lists(
  hnp.arrays(
    st.sampled_from([np.dtype(t) for t in ('<f4', '<f8', '<i4', '<i8', '|u1', '>i4')]),
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3),
    elements={'allow_nan': False},
  ),
  max_size=3,
)


def test_published_digests():
  # SHA-256 of nothing, and of the two bytes {}.
  assert digests.of_arrays([]) == 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
  assert digests.of_json({}) == '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'


@given(JSON, JSON)
@settings(max_examples=40)
def test_json_values_share_a_digest_exactly_where_they_are_the_same_text(one, other):
  same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
  assert (digests.of_json(one) == digests.of_json(other)) == same
  assert digests.of_json({'a': one, 'b': other}) == digests.of_json({'b': other, 'a': one})


def test_what_has_no_bytes_of_its_own_has_no_digest():
  for value in (float('nan'), [-float('inf')]):
    with pytest.raises(ValueError, match='not JSON compliant'):
      digests.of_json(value)
  with pytest.raises(TypeError, match='objects'):
    digests.of_arrays([np.array([{}], object)])


@given(ARRAYS, ARRAYS)
@settings(max_examples=50)
def test_arrays_share_a_digest_exactly_where_dtypes_shapes_and_bytes_agree(one, other):
  def plain(arrays):
    return [(a.dtype.str, a.shape, a.tobytes()) for a in arrays]

  assert (digests.of_arrays(one) == digests.of_arrays(other)) == (plain(one) == plain(other))
  assert digests.of_arrays(iter(one)) == digests.of_arrays([a.copy() for a in one])


@pytest.mark.parametrize(
  ('one', 'other'),
  [
    ([np.zeros(4, np.float32)], [np.zeros(2, np.float64)]),
    ([np.zeros((2, 3))], [np.zeros((3, 2))]),
    ([np.zeros((0, 3))], []),
    ([np.arange(2), np.arange(3)], [np.arange(3), np.arange(2)]),
    ([np.arange(4)], [np.arange(2), np.arange(2, 4)]),
    ([np.array([0.0])], [np.array([-0.0])]),
  ],
)
def test_arrays_that_look_alike(one, other):
  assert digests.of_arrays(one) != digests.of_arrays(other)


def test_how_an_array_lies_in_memory_does_not_matter():
  array = np.arange(24, dtype=np.float32).reshape(4, 6)
  expected = digests.of_arrays([array])
  assert digests.of_arrays([np.asfortranarray(array)]) == expected
  assert digests.of_arrays([np.repeat(array, 2, axis=1)[:, ::2]]) == expected
  array.setflags(write=False)
  assert digests.of_arrays([array]) == expected
