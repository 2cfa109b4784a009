"""Draws depend on (seed, purpose, keys) and on nothing else."""

import hashlib
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tff_cluster.base import seeding

ROOT = pathlib.Path(__file__).parents[2]
KEYS = st.lists(st.integers(-(2**40), 2**40) | st.text(max_size=5), max_size=3).map(tuple)
NAMES = st.tuples(st.integers(0, 2**40), st.text(max_size=5), KEYS)

DRAW = """
from tff_cluster.base import seeding
draws = [seeding.generator(7, 'visit order', 12, name).permutation(50).tolist() for name in ('c07', 'writer é', '')]
print([draws, seeding.integer_seed(7, 'k-means starts', 4), seeding.integer_seed(0, '')])
"""


def first(seed, purpose, *keys, count=4):
  return tuple(seeding.generator(seed, purpose, *keys).integers(0, 2**62, count).tolist())


def test_every_process_draws_the_same(capsys):
  exec(DRAW, {})
  environment = os.environ | {'PYTHONHASHSEED': '1'}
  done = subprocess.run(
    [sys.executable, '-c', DRAW], cwd=ROOT, env=environment, capture_output=True, text=True
  )
  assert capsys.readouterr().out == done.stdout != ''


def test_a_draw_is_pcg64_of_the_blake2b_of_its_name_as_json():
  # The text of its name, with the escape that JSON has for a letter beyond ASCII.
  name = b'[7, "visit order", [12, "writer \\u00e9", -1]]'
  entropy = int(hashlib.blake2b(name, digest_size=16).hexdigest(), 16)
  found = seeding.generator(7, 'visit order', 12, 'writer é', -1).permutation(50)
  expected = np.random.Generator(np.random.PCG64(entropy)).permutation(50)
  assert found.tolist() == expected.tolist()
  # Its last 31 bits.
  assert seeding.integer_seed(7, 'visit order', 12, 'writer é', -1) == entropy & 0x7FFF_FFFF


@given(NAMES, NAMES)
@settings(max_examples=60)
def test_draws_are_equal_exactly_where_their_names_are(one, other):
  assert (first(one[0], one[1], *one[2]) == first(other[0], other[1], *other[2])) == (one == other)
  assert first(np.int64(one[0]), one[1], *one[2]) == first(one[0], one[1], *one[2])


@pytest.mark.parametrize(
  ('one', 'other'),
  [
    ((0, 'p', '1'), (0, 'p', 1)),
    ((0, 'p', 1, 2), (0, 'p', 12)),
    ((0, 'p', 'a', 'b'), (0, 'p', 'a", "b')),
    ((0, 'p', 'a'), (0, 'pa')),
    ((0, 'p'), (0, 'p', '')),
  ],
)
def test_names_that_look_alike_draw_differently(one, other):
  assert first(*one) != first(*other)
  assert seeding.integer_seed(*one) != seeding.integer_seed(*other)


def test_integer_seeds_fit_libraries_and_fill_their_range():
  seeds = [seeding.integer_seed(0, 'range', k) for k in range(2000)]
  assert all(isinstance(s, int) and 0 <= s < 2**31 for s in seeds)
  assert len(set(seeds)) == 2000
  assert np.ptp(np.bincount(np.array(seeds) >> 28, minlength=8)) < 120  # Expected: 250 +- 15 in each eighth.
