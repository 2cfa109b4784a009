"""Names for content: equal content, equal digest, on every machine."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np


def of_json(value: Any) -> str:
  """Returns the SHA-256 (64 hex digits) of a JSON value in canonical form.

  Raises:
    ValueError: if the value holds NaN or an infinity, which JSON cannot name.
  """
  text = json.dumps(value, sort_keys=True, separators=(',', ':'), allow_nan=False)
  return hashlib.sha256(text.encode()).hexdigest()


def of_arrays(arrays: Iterable[np.ndarray]) -> str:
  """Returns the SHA-256 (64 hex digits) of arrays: their order, dtypes, shapes and bytes."""
  digest = hashlib.sha256()
  for array in arrays:
    array = np.ascontiguousarray(array)
    if array.dtype.hasobject:
      raise TypeError('an array of objects has no digest: its bytes are addresses')
    digest.update(f'{array.dtype.str}{array.shape}'.encode())
    digest.update(array.data if array.size else b'')
  return digest.hexdigest()
