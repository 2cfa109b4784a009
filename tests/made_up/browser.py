"""Drives a real browser without a window, over a pipe: no port, no driver and no package is needed."""

import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

NAMES = ('chromium', 'chromium-browser', 'google-chrome')
# The browser takes its pipes as descriptors 3 and 4. They are put there by a program of their own, because a function that
# runs between fork and exec would need a fork of this process, which may have gRPC loaded.
_TRAMPOLINE = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
  os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
_OPTIONS = (
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-extensions',
    '--disable-background-networking', '--remote-debugging-pipe', '--window-size=1400,1600', 'about:blank',
)  # fmt: skip


def find() -> str | None:
  """Returns the path of a browser, None where there is none."""
  return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
  """One page of a browser.

  Attributes:
    faults: What its console told as an error or a warning, and exceptions that nobody caught.
  """

  def __init__(self, path: str, folder: pathlib.Path):
    read, self._out = os.pipe()
    self._in, write = os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read, write)]
    command = [
      sys.executable,
      '-c',
      _TRAMPOLINE,
      *map(str, ends),
      path,
      *_OPTIONS,
      f'--user-data-dir={folder}',
    ]
    self._process = subprocess.Popen(
        command, pass_fds=ends, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True, env=os.environ | {'HOME': str(folder)},
    )  # fmt: skip
    for end in (read, write, *ends):
      os.close(end)
    self.faults: list[str] = []
    self._held, self._events, self._number, self._session = b'', [], 0, None
    target = self.call('Target.createTarget', url='about:blank')['targetId']
    self._session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
    for domain in ('Page', 'Runtime', 'Log'):
      self.call(f'{domain}.enable')

  def call(self, method: str, **parameters: Any) -> dict[str, Any]:
    """Returns the answer of a command of the DevTools protocol."""
    self._number += 1
    message = {'id': self._number, 'method': method, 'params': parameters}
    if self._session:
      message['sessionId'] = self._session
    os.write(self._out, json.dumps(message).encode() + b'\0')
    while True:
      answer = self._receive()
      if answer.get('id') == self._number:
        if 'error' in answer:
          raise RuntimeError(f'{method}: {answer["error"]}')
        return answer['result']
      self._take(answer)

  def open(self, address: str) -> None:
    """Loads a page from nothing, and waits until it is there."""
    # From one view of a page to another the browser only changes the part after #.
    self._load('Page.navigate', url='about:blank')
    self._load('Page.navigate', url=address)

  def reload(self) -> None:
    self._load('Page.reload')

  def evaluate(self, script: str) -> Any:
    """Returns the value of an expression; what cannot be JSON is {}."""
    found = self.call('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
    if 'exceptionDetails' in found:
      raise RuntimeError(f'{script}: {found["exceptionDetails"]}')
    return found['result'].get('value')

  def click(self, selector: str, at: int = 0) -> None:
    """Clicks the middle of an element with the mouse, as a person does."""
    element = f'document.querySelectorAll({json.dumps(selector)})[{at}]'
    self.evaluate(f"{element}.scrollIntoView({{block: 'center'}})")
    box = self.evaluate(
      f'(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({element}.getBoundingClientRect())'
    )
    for kind in ('mousePressed', 'mouseReleased'):
      self.call('Input.dispatchMouseEvent', type=kind, x=box[0], y=box[1], button='left', clickCount=1)

  def press(self, key: str) -> None:
    """Presses and releases a key: 'Tab', 'Enter', 'ArrowRight', ..."""
    code = {'Tab': 9, 'Enter': 13, 'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowDown': 40}[key]
    entered = {'text': '\r'} if key == 'Enter' else {}
    told = {'key': key, 'code': key, 'windowsVirtualKeyCode': code}
    self.call('Input.dispatchKeyEvent', type='keyDown', **told, **entered)
    self.call('Input.dispatchKeyEvent', type='keyUp', **told)

  @contextlib.contextmanager
  def screen(self, width: int, height: int, media: str = '', scheme: str = 'light') -> Iterator[None]:
    """While it lasts, the page is on a screen of so many pixels, or on paper where `media` is 'print', in this colour scheme."""
    preferred = [{'name': 'prefers-color-scheme', 'value': scheme}]
    self.call('Emulation.setEmulatedMedia', media=media, features=preferred)
    self.call(
      'Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False
    )
    try:
      yield
    finally:
      self.call('Emulation.clearDeviceMetricsOverride')
      self.call('Emulation.setEmulatedMedia', media='', features=[])

  def close(self) -> None:
    """Ends the browser and all of its processes."""
    for end in (self._out, self._in):
      os.close(end)  # A browser whose pipe is closed goes.
    with contextlib.suppress(subprocess.TimeoutExpired):
      self._process.wait(5)
    with contextlib.suppress(ProcessLookupError):
      os.killpg(self._process.pid, signal.SIGKILL)
    self._process.wait(10)

  def _load(self, method: str, **parameters: Any) -> None:
    self._events.clear()
    self.call(method, **parameters)
    while 'Page.loadEventFired' not in self._events:
      self._take(self._receive())

  def _take(self, event: dict[str, Any]) -> None:
    method, told = event.get('method', ''), event.get('params', {})
    self._events.append(method)
    if method == 'Runtime.exceptionThrown':
      self.faults.append(json.dumps(told['exceptionDetails']))
    elif method == 'Runtime.consoleAPICalled' and told['type'] in ('error', 'warning', 'assert'):
      self.faults.append(json.dumps(told['args']))
    elif method == 'Log.entryAdded' and told['entry']['level'] in ('error', 'warning'):
      self.faults.append(told['entry']['text'])

  def _receive(self, timeout: float = 60) -> dict[str, Any]:
    deadline = time.monotonic() + timeout
    while b'\0' not in self._held:
      ready, _, _ = select.select([self._in], [], [], max(deadline - time.monotonic(), 0))
      data = os.read(self._in, 1 << 20) if ready else b''
      if not data:
        raise RuntimeError(
          'the browser has gone' if ready else f'the browser said nothing for {timeout} seconds'
        )
      self._held += data
    message, _, self._held = self._held.partition(b'\0')
    return json.loads(message)


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[Browser]:
  """Yields a browser that keeps what it keeps in a folder, and ends it."""
  path = find()
  if path is None:
    raise FileNotFoundError(f'none of {", ".join(NAMES)} on PATH')
  browser = Browser(path, folder)
  try:
    yield browser
  finally:
    browser.close()
