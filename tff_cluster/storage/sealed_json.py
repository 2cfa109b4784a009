"""JSON text that tells whether it was changed, and by which kind of file it is: a seal as the last key of the object.

  "sealed": {"format": 1, "sha256": "..."}

The checksum is over all text before the seal. What has no seal (an earlier version's file, or one written by hand) is
taken as it is; whoever changes a sealed file on purpose takes the line out. A seal in another layout is taken for a change: a text
that was formatted anew cannot be checked.
"""

import hashlib
import json
import re
from typing import Any

from tff_cluster.base.errors import EnvironmentFault

# Raised when a file's content changes its meaning, so that a version that does not know it leaves it alone.
FORMAT = 1
_SEAL = re.compile(rb',\n "sealed": \{"format": (\d{1,9}), "sha256": "([0-9a-f]{64})"\}\n\}\n\Z')
_WRAPPED = 'value'


class NewerFile(EnvironmentFault):
  """A file of a later version of this software. It is named, never used, never replaced."""


def seal(value: Any) -> bytes:
  """Returns the text of a JSON value, indented, keys in their order. What is no object becomes one, {"value": ...}.

  Raises:
    ValueError: if the value holds NaN or an infinity.
  """
  if not isinstance(value, dict) or set(value) <= {_WRAPPED}:
    value = {_WRAPPED: value}
  text = json.dumps(value, indent=1, allow_nan=False).encode()
  checksum = hashlib.sha256(text).hexdigest()
  line = f',\n "sealed": {{"format": {FORMAT}, "sha256": "{checksum}"}}\n}}\n'
  return text.removesuffix(b'\n}') + line.encode()


def unseal(text: bytes) -> Any:
  """Returns the value that `seal` made the text of, or that a text without a seal has.

  Raises:
    NewerFile: if it has a later format.
    ValueError: if it is no JSON, or was changed after it was sealed.
  """
  body = opened(text)
  value = json.loads(body)
  return value[_WRAPPED] if len(body) < len(text) and set(value) == {_WRAPPED} else value


def opened(text: bytes) -> bytes:
  """Returns the text without its seal; raises as `unseal` does where it was changed."""
  found = _SEAL.search(text)
  if found is None:
    if _has_seal(text):
      raise ValueError('its seal does not stand where it was written, so it was formatted anew or changed')
    return text
  check_format(int(found[1]))
  body = text[: found.start()] + b'\n}'
  if hashlib.sha256(body).hexdigest() != found[2].decode():
    raise ValueError('its checksum does not fit')
  return body


def is_sealed(text: bytes) -> bool:
  """Tells whether a text ends with a seal, whether or not that fits."""
  return _SEAL.search(text) is not None


def _has_seal(text: bytes) -> bool:
  """Tells whether a text without a seal at its end is a JSON object that has one as a key."""
  if b'"sealed"' not in text:
    return False
  try:
    value = json.loads(text)
  except (ValueError, RecursionError):
    return False  # Whoever reads it says why it is no JSON.
  return isinstance(value, dict) and 'sealed' in value


def check_format(number: int) -> None:
  """Raises NewerFile unless this version knows the format."""
  if number != FORMAT:
    raise NewerFile(f'is of file format {number}, this version of the software reads {FORMAT}')
