"""Progress bars with the time left, which fall silent when nobody watches."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from tff_cluster.reporting.words import percent


class Progress:
  """Bars of the running stages; silent when the stream is not a terminal.

  Stages may nest; `update` speaks to the innermost one.

      progress = Progress()
      with progress.stage('Phase 1', total=20):
        for _ in range(20):
          progress.update(accuracy=0.93)
  """

  def __init__(self, stream: TextIO | None = None):
    """Args: stream: Where bars are drawn; standard error if not given."""
    self._stream = stream if stream is not None else sys.stderr
    isatty = getattr(self._stream, 'isatty', None)
    self._silent = not (callable(isatty) and isatty())
    self._bars: list[Any] = []

  @contextlib.contextmanager
  def stage(self, name: str, total: int | None = None) -> Iterator['Progress']:
    """Shows a bar of `total` steps (None: unknown) while the block runs."""
    if self._silent:
      yield self
      return
    import tqdm

    bar = tqdm.tqdm(total=total, desc=name, file=self._stream, dynamic_ncols=True, leave=not self._bars)
    self._bars.append(bar)
    try:
      yield self
    finally:
      self._bars.remove(bar)
      bar.close()

  def update(self, n: int = 1, **figures: Any) -> None:
    """Counts n steps of the innermost stage and shows figures beside its bar; no stage: does nothing.

    A float called `accuracy` is a share from 0 to 1 and is shown in percent.
    """
    if self._bars:
      if figures:
        shown = {
          name: percent(v) if name == 'accuracy' and isinstance(v, float) else v
          for name, v in figures.items()
        }
        self._bars[-1].set_postfix(shown, refresh=False)
      self._bars[-1].update(n)
