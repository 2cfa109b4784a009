"""The two kinds of failure that a person has to act on, each told in one line.

Anything else that is raised is a fault of this software and keeps its traceback.
"""


class InputError(ValueError):
  """What was given is wrong. The message says what was given, what is allowed. Exit code 2."""

  exit_code = 2


class EnvironmentFault(RuntimeError):
  """The machine failed us (disk full, worker did not start, file missing). Exit code 1."""

  exit_code = 1
