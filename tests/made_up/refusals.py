"""Wrong input in tables: what is given, and what the line says that it ends with."""

from collections.abc import Callable
from typing import Any

import pytest

from tff_cluster.base.errors import InputError


def refused(function: Callable[..., Any], *cases: tuple[Any, ...]) -> None:
  """Checks that each case, arguments and then a pattern, ends with one line that the pattern matches."""
  for *given, pattern in cases:
    with pytest.raises(InputError, match=pattern) as caught:
      function(*given)
    assert '\n' not in str(caught.value), given
