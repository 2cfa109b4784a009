"""A kernel of a notebook under test: it runs cells, can be interrupted, and is ended."""

import os
import pathlib
import queue
import time

from jupyter_client import manager

from tests.programs.children import ROOT


class Notebook:
  """A kernel and what its cells print."""

  def __init__(self, folder: pathlib.Path, cwd: pathlib.Path = ROOT):
    """Starts it with settings of its own in a folder; it works in `cwd` and finds this repository."""
    private = {
      name: str(folder / 'jupyter') for name in ('JUPYTER_RUNTIME_DIR', 'IPYTHONDIR', 'JUPYTER_CONFIG_DIR')
    }
    environment = os.environ | private | {'PYTHONPATH': str(ROOT)}
    self._manager, self._client = manager.start_new_kernel(cwd=str(cwd), env=environment)

  def start(self, code: str) -> str:
    return self._client.execute(code)

  def finish(self, cell: str, timeout: float = 300) -> tuple[str, str]:
    """Returns what a cell printed on standard output, and the name and text of its error, '' where there is none."""
    printed, error, deadline = '', '', time.monotonic() + timeout
    while time.monotonic() < deadline:
      try:
        message = self._client.get_iopub_msg(timeout=1)
      except queue.Empty:
        assert self._manager.is_alive()
        continue
      if message['parent_header'].get('msg_id') != cell:
        continue
      content = message['content']
      if message['msg_type'] == 'stream' and content['name'] == 'stdout':
        printed += content['text']
      elif message['msg_type'] == 'error':
        error = f'{content["ename"]}: {content["evalue"]}'
      elif message['msg_type'] == 'status' and content['execution_state'] == 'idle':
        return printed, error
    raise AssertionError(f'the cell did not end within {timeout:g} s; it printed {printed!r}')

  def run(self, code: str) -> str:
    printed, error = self.finish(self.start(code))
    assert error == ''
    return printed

  def interrupt(self) -> None:
    self._manager.interrupt_kernel()

  def workers(self) -> list[str]:
    """Returns the command lines of living worker processes that the kernel started."""
    kernel = str(self._manager.provisioner.process.pid)
    found = []
    for entry in pathlib.Path('/proc').glob('[0-9]*'):
      try:
        state, parent = (entry / 'stat').read_text().rpartition(')')[2].split()[:2]
        command = (entry / 'cmdline').read_bytes().replace(b'\0', b' ').decode()
      except OSError:
        continue
      if parent == kernel and state != 'Z' and 'worker_binary' in command:
        found.append(command)
    return found

  def close(self) -> None:
    self._client.stop_channels()
    self._manager.shutdown_kernel(now=True)
