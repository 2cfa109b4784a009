"""Keeps TFF's stock execution context from failing, with a message, when the interpreter shuts down."""

import sys


def drop() -> None:
  """Drops the context that importing TFF installed; does nothing where TFF was not imported.

  Call it at exit: its destructor works while modules are still whole, and no computation runs after it.
  """
  package = 'tensorflow_federated.python.core.impl.context_stack'
  stack = sys.modules.get(f'{package}.context_stack_impl')
  empty = sys.modules.get(f'{package}.runtime_error_context')
  if stack and empty:
    stack.context_stack.set_default_context(empty.RuntimeErrorContext())
