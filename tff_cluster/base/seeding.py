"""Every random draw of the suite comes from (seed, purpose, keys), never from global state.

A draw is named by what it is for, so it does not depend on how many draws came before it: the order
in which client 'c07' visits its rows in round 12 is the same whether clients run one or eight at a
time, in one process or after a resume, and whichever cluster asked for it.
"""

import hashlib
import json

import numpy as np


def generator(seed: int, purpose: str, *keys: int | str) -> np.random.Generator:
  """Returns the generator that belongs to (seed, purpose, keys).

  Args:
    seed: The experiment's seed.
    purpose: What the draw is for, for instance 'visit order'.
    *keys: What tells draws of one purpose apart, for instance the round and the client id. Strings
      and integers are distinct keys: '1' is not 1.
  """
  return np.random.Generator(np.random.PCG64(_entropy(seed, purpose, keys)))


def integer_seed(seed: int, purpose: str, *keys: int | str) -> int:
  """Returns a seed in [0, 2**31) for libraries that take an integer (Keras, scikit-learn)."""
  return _entropy(seed, purpose, keys) % 2**31


def _entropy(seed: int, purpose: str, keys: tuple[int | str, ...]) -> int:
  plain = [k if isinstance(k, str) else int(k) for k in keys]
  text = json.dumps([int(seed), purpose, plain])
  return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), 'big')
