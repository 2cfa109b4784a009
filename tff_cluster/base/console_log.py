"""What is logged, as people read it: `warning: TEXT`, without the time, the thread and the place in the code."""

import logging

import absl.logging


class _Lines(logging.Formatter):
  def format(self, record: logging.LogRecord) -> str:
    return f'{record.levelname.lower()}: {super().format(record)}'


def use() -> None:
  """Lets absl's handler write such lines to standard error, for this process."""
  absl.logging.use_absl_handler()
  absl.logging.get_absl_handler().setFormatter(_Lines())
