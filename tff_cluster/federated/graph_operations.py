"""The operations of a model's graph: those that cannot be trusted or repeated are refused, and all have one digest."""

from collections.abc import Iterable

import tensorflow as tf

from tff_cluster.base import digests
from tff_cluster.base.errors import InputError
from tff_cluster.base.types import Json

# oneDNN's kernels of these keep what belongs to one call (the number of channels, and where mean and variance lie) in
# the operation. Clients that run it at the same time read and write each other's memory: wrong numbers, or a crash.
_UNSAFE = 'FusedBatchNorm'
# Attributes of operations that carry running numbers.
_NUMBERED = ('_gradient_op_type', '_class')


def refuse(graph: tf.Graph, has_dropout: bool) -> None:
  """Raises InputError where a model has operations whose numbers could not be trusted or repeated."""
  kinds = _operation_types(graph)
  random_ops = sorted(
    kind for kind in kinds if 'Random' in kind and not (has_dropout and kind.startswith('Stateless'))
  )
  if random_ops:
    raise InputError(
      f'the model draws random numbers ({", ".join(random_ops)}; a noise layer, or dropout inside a recurrent one, for '
      'instance), so that a round could not be repeated bit for bit; leave those layers out, or use keras.layers.Dropout'
    )
  unsafe = sorted(kind for kind in kinds if kind.startswith(_UNSAFE))
  if unsafe:
    raise InputError(
      f'the model uses {", ".join(unsafe)}, which computes wrong where clients train side by side; write mean and variance '
      'out (tf.nn.moments), or use keras.layers.LayerNormalization or GroupNormalization'
    )


def digest(graph: tf.Graph) -> str:
  """Returns a digest of the operations of a graph and of its functions, without their names."""
  definition = graph.as_graph_def()
  functions = [digests.of_json(_told(function.node_def)) for function in definition.library.function]
  # The order of functions is that of their names, which have running numbers.
  return digests.of_json([_told(definition.node), sorted(functions)])


def _operation_types(graph: tf.Graph) -> set[str]:
  """Returns the types of the operations of a graph and of the functions that it calls."""
  definition = graph.as_graph_def()
  inner = (node for function in definition.library.function for node in function.node_def)
  return {node.op for node in (*definition.node, *inner)}


def _told(nodes: Iterable[tf.compat.v1.NodeDef]) -> list[Json]:
  """Returns the operations of a graph as JSON, named by their places."""
  places = {node.name: place for place, node in enumerate(nodes)}
  told: list[Json] = []
  for node in nodes:
    # An input is NAME, NAME:NUMBER, ^NAME or NAME:OUTPUT:NUMBER.
    inputs = [
      [places.get(name.lstrip('^').partition(':')[0], -1), name.partition(':')[2]] for name in node.input
    ]
    values = {
      key: str(value)
      for key, value in node.attr.items()
      if key not in _NUMBERED and not value.HasField('func')
    }
    told.append([node.op, inputs, values])
  return told
