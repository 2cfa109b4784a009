"""The operations of a model's graph: those that cannot be trusted or repeated are refused, and all have one digest."""

import functools
from collections.abc import Callable, Iterable, Mapping

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
  """Returns a digest of the operations of a graph and of the functions that it calls, without their names."""
  definition = graph.as_graph_def()
  functions = {function.signature.name: function for function in definition.library.function}

  @functools.cache
  def of_function(name: str) -> str:
    function = functions[name]
    arguments: dict[str, Json] = {
      argument.name: ['argument', place] for place, argument in enumerate(function.signature.input_arg)
    }
    nodes, places = _told(function.node_def, arguments, of_function)
    returned = [_source(function.ret[output.name], places) for output in function.signature.output_arg]
    return digests.of_json([nodes, returned])

  return digests.of_json(_told(definition.node, {}, of_function)[0])


def _operation_types(graph: tf.Graph) -> set[str]:
  """Returns the types of the operations of a graph and of the functions that it calls."""
  definition = graph.as_graph_def()
  inner = (node for function in definition.library.function for node in function.node_def)
  return {node.op for node in (*definition.node, *inner)}


def _told(
  nodes: Iterable[tf.compat.v1.NodeDef],
  arguments: Mapping[str, Json],
  of_function: Callable[[str], str],
) -> tuple[list[Json], dict[str, Json]]:
  """Returns operations as JSON, named by their places, and the places by name.

  Args:
    nodes: The operations of a graph or of a function.
    arguments: What the function's arguments are told as, by name.
    of_function: Returns the digest of a function by its name, which has a running number.
  """
  places: dict[str, Json] = {**arguments, **{node.name: place for place, node in enumerate(nodes)}}
  told: list[Json] = []
  for node in nodes:
    values: dict[str, Json] = {}
    for key, value in node.attr.items():
      called = [value.func] if value.HasField('func') else value.list.func
      if key not in _NUMBERED:
        values[key] = [of_function(each.name) for each in called] if called else str(value)
    told.append([node.op, [_source(name, places) for name in node.input], values])
  return told, places


def _source(name: str, places: Mapping[str, Json]) -> Json:
  """Returns an input as JSON: it is NAME, NAME:NUMBER, ^NAME or NAME:OUTPUT:NUMBER."""
  node, _, output = name.removeprefix('^').partition(':')
  return [places[node], output, name.startswith('^')]
