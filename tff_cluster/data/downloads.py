"""What the loaders of downloadable data share: where to look, and how a download fails in one line."""

import contextlib
import io
import logging
import os
import pathlib
import socket
import urllib.error
import urllib.parse
import urllib.request
import warnings
from collections.abc import Iterator

_TIMEOUT_S = 10.0
_STALL_S = 60.0


def subfolder(data_dir: str | None, name: str) -> str | None:
  """Returns data_dir/name where that folder exists, else data_dir; None stays None."""
  if data_dir is None:
    return None
  data_dir = os.path.abspath(os.path.expanduser(data_dir))
  inside = os.path.join(data_dir, name)
  return inside if os.path.isdir(inside) else data_dir


def unreachable(url: str) -> str | None:
  """Returns why the host of `url` cannot be reached, or None where it answers.

  Asked before a download, because the libraries' own retries take minutes where there is no network.
  """
  host = urllib.parse.urlparse(url).netloc
  try:
    with urllib.request.urlopen(urllib.request.Request(url, method='HEAD'), timeout=_TIMEOUT_S):
      return None
  except urllib.error.HTTPError:
    return None
  except (OSError, ValueError) as error:
    return f'no connection to {host}: {one_line(getattr(error, "reason", error))}'


def writable_fault(folder: str | pathlib.Path) -> str | None:
  """Returns why nothing can be downloaded to `folder` (made where it is missing), or None."""
  try:
    os.makedirs(folder, exist_ok=True)
  except OSError as error:
    return one_line(error)
  return None if os.access(folder, os.W_OK | os.X_OK) else f'no permission to write to {folder}'


def one_line(error: object, limit: int = 200) -> str:
  """Returns the message of an error on one line."""
  text = ' '.join(str(error).split()) or type(error).__name__
  return text if len(text) <= limit else text[: limit - 3] + '...'


@contextlib.contextmanager
def quiet() -> Iterator[None]:
  """Silences what data libraries log and warn while they are imported and load; output streams stay."""
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  disabled = logging.root.manager.disable
  logging.disable(max(disabled, logging.WARNING))
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      yield
  finally:
    logging.disable(disabled)


@contextlib.contextmanager
def downloading() -> Iterator[None]:
  """Silences progress bars and lets a connection that hangs fail.

  Only for use after the libraries are imported: a logging handler made meanwhile would keep the mute stream.
  """
  timeout = socket.getdefaulttimeout()
  socket.setdefaulttimeout(_STALL_S)
  try:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
      yield
  finally:
    socket.setdefaulttimeout(timeout)
