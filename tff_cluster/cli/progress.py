"""How far a program is: one bar over everything with the time left on a terminal, else a line for each finished phase."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TextIO

from tff_cluster.base.words import duration, percent

# Of the bar, so that a step of a long phase moves it.
_WHOLE = 1000


class Progress:
  """Follows runs, their phases, and the stages within a phase.

  On a terminal one bar shows the share of all phases that is done, weighed by what they are planned to cost. Elsewhere a phase
  that ends is a line: what was found, and the time that it took. `with` keeps the bar from the first phase to the last;
  without it every phase has its own.

      with Progress() as progress, progress.run('seed 1', 1, 5):
        progress.plan({'Phase 1': 20, 'report': 1})
        with progress.phase('Phase 1', steps=20) as tell:
          with progress.stage('phase1', 20):
            for _ in range(20):
              progress.update(accuracy=0.93)
          tell(accuracy=0.93)
  """

  def __init__(self, stream: TextIO | None = None, interval: float = 0.1):
    """Makes one that has shown nothing yet.

    Args:
      stream: Where progress is shown; standard error if not given.
      interval: Seconds between two drawings of the bar, at least.
    """
    self._interval = interval
    self._stream = stream if stream is not None else sys.stderr
    isatty = getattr(self._stream, 'isatty', None)
    self._watched = bool(callable(isatty) and isatty())
    self._lock = threading.RLock()  # Clusters train side by side.
    self._bar: Any = None
    self._held = False
    self._run, self._first_run, self._runs = '', 0, 1
    self._plan: Mapping[str, float] = {}
    self._phase: str | None = None
    self._steps, self._step = 1, 0

  def __enter__(self) -> 'Progress':
    self._held = True
    return self

  def __exit__(self, *_: object) -> None:
    self._held = False
    self._close()

  @contextlib.contextmanager
  def run(self, name: str, number: int, count: int) -> Iterator[None]:
    """Says that what the block does is run `number`, from 1, of `count`."""
    before = self._run, self._first_run, self._runs
    self._run, self._first_run, self._runs = f'{name} ({number} of {count})', number - 1, count
    try:
      yield
      if self._bar is not None:
        self._bar.update(max(_WHOLE * number / count - self._bar.n, 0))
    finally:
      self._run, self._first_run, self._runs = before
      self._plan = {}

  def plan(self, weights: Mapping[str, float]) -> None:
    """Takes the phases of a run, in their order, and about what each costs, in any unit; those not named cost nothing."""
    self._plan = dict(weights)

  @contextlib.contextmanager
  def phase(self, name: str, steps: int = 1) -> Iterator[Callable[..., None]]:
    """Follows a phase, and yields a function that takes what it found.

    That function takes `words`, text, and `accuracy`, a share from 0 to 1; either may be left out.

    Args:
      name: What the phase is called.
      steps: How often its stages call `update`, about.
    """
    told: list[str] = []

    def tell(words: str | None = None, accuracy: float | None = None) -> None:
      told.extend([words] if words is not None else [])
      told.extend([f'{percent(accuracy)} accuracy'] if accuracy is not None else [])

    begun = time.monotonic()
    self._phase, self._steps, self._step = name, max(steps, 1), 0
    try:
      self._show()
      yield tell
      self._step = self._steps
      self._show()
    finally:
      self._phase = None
      if not self._held:
        self._close()
    if not self._watched:
      words = ', '.join([*told, duration(time.monotonic() - begun)])
      self._line(f'{f"{self._run}, " if self._run else ""}{name}: {words}')

  @contextlib.contextmanager
  def stage(self, name: str, total: int | None = None) -> Iterator['Progress']:
    """Names what the phase is at; outside of a phase it is one, of `total` steps (None: unknown)."""
    if self._phase is None and self._watched:
      with self.phase(name, total or 1):
        yield self
    else:
      with self._lock:
        self._show(at=name)
      yield self

  def update(self, n: int = 1, **figures: Any) -> None:
    """Counts n steps of the phase and shows figures beside the bar.

    A float called `accuracy` is a share from 0 to 1 and is shown in percent.
    """
    with self._lock:
      if self._phase is not None:
        self._step = min(self._step + n, self._steps)
        self._show(**figures)

  def note(self, words: str) -> None:
    """Shows a line that stays, above the bar."""
    with self._lock:
      if self._bar is not None:
        self._bar.clear()
      self._line(words)

  def _share(self) -> float:
    """Returns the share of everything that is done, from 0 to 1."""
    within = self._step / self._steps
    if self._phase is not None and self._phase in self._plan:
      names, whole = list(self._plan), sum(self._plan.values())
      before = sum(self._plan[name] for name in names[: names.index(self._phase)])
      within = (before + within * self._plan[self._phase]) / whole
    return (self._first_run + within) / self._runs

  def _show(self, at: str | None = None, **figures: Any) -> None:
    if not self._watched or self._phase is None:
      return
    done = _WHOLE * self._share()
    if self._bar is None:
      import tqdm

      form = '{desc}: {percentage:3.0f}%|{bar}| {elapsed}, {remaining} left{postfix}'
      self._bar = tqdm.tqdm(
        total=_WHOLE,
        initial=done,
        file=self._stream,
        mininterval=self._interval,
        miniters=0,
        bar_format=form,
        dynamic_ncols=True,
        leave=True,
      )
    self._bar.set_description_str(', '.join(filter(None, (self._run, self._phase))), refresh=False)
    shown = {k: percent(v) if k == 'accuracy' and isinstance(v, float) else v for k, v in figures.items()}
    if at is not None or shown:
      self._bar.set_postfix({**({'at': at} if at not in (None, self._phase) else {}), **shown}, refresh=False)
    self._bar.update(max(done - self._bar.n, 0))

  def _close(self) -> None:
    if self._bar is not None:
      self._bar.close()
      self._bar = None

  def _line(self, text: str) -> None:
    if self._stream is not None:
      # A reader that is gone is no reason to stop a run.
      with contextlib.suppress(OSError, ValueError):
        print(text, file=self._stream, flush=True)
