"""Values of TFF's types in messages of its executor protocol.

tff.framework.serialize_value puts messages together from smaller ones, and each level copies all bytes below it, twice. Here
a message is filled in place. What is no array is written and read by TFF.
"""

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import executor_pb2


def fill(message: executor_pb2.Value, value: Any, kind: tff.types.Type) -> None:
  """Writes a value into an empty message.

  Args:
    message: The message, or the part of one.
    value: Arrays, tensors, data sets and Python's numbers in containers; a list for what each client has.
    kind: Its type.

  Raises:
    TypeError or ValueError: if the value is not of the type.
  """
  if isinstance(kind, tff.types.FederatedType):
    message.federated.type.CopyFrom(tff.types.serialize_type(kind).federated)
    for each in [value] if kind.all_equal else value:
      fill(message.federated.value.add(), each, kind.member)
  elif isinstance(kind, tff.types.StructType):
    message.struct.SetInParent()  # Also where it has no parts.
    for (name, part_kind), part in zip(tff.structure.iter_elements(kind), _parts(value), strict=True):
      element = message.struct.element.add()
      if name:
        element.name = name
      fill(element.value, part, part_kind)
  else:
    found = value.numpy() if isinstance(value, tf.Tensor) else value
    if isinstance(kind, tff.types.TensorType) and _is_array_of(found, kind):
      message.array.dtype = tff.types.serialize_type(kind).tensor.dtype
      message.array.shape.dim.extend(found.shape)
      message.array.content = found.tobytes()
    else:
      message.CopyFrom(tff.framework.serialize_value(found, kind)[0])


def read(message: executor_pb2.Value, kind: tff.types.Type) -> Any:
  """Returns the value of a type that a message holds, as tff.framework.deserialize_value does: structures are tff.structure.Struct.

  Raises:
    TypeError or ValueError: if it holds none of the type.
  """
  if isinstance(kind, tff.types.FederatedType) and message.federated.value:
    if kind.all_equal:
      return read(message.federated.value[0], kind.member)
    return [read(each, kind.member) for each in message.federated.value]
  if isinstance(kind, tff.types.StructType):
    parts = zip(tff.structure.iter_elements(kind), message.struct.element, strict=True)
    return tff.structure.Struct([(name, read(element.value, part)) for (name, part), element in parts])
  if isinstance(kind, tff.types.TensorType) and kind.shape and message.array.content:
    found = np.frombuffer(message.array.content, kind.dtype)
    return found.reshape(message.array.shape.dim)
  return tff.framework.deserialize_value(message, kind)[0]


def num_clients(value: Any, kind: tff.types.Type) -> int:
  """Returns how many clients have a part in a value of a type; 0 where nothing in it is the clients'.

  Raises:
    ValueError: if the value has lists of several lengths for them.
  """
  found = _lengths(value, kind)
  if len(found) > 1:
    raise ValueError(f'values of {" and ".join(map(str, sorted(found)))} clients')
  return found.pop() if found else 0


def _lengths(value: Any, kind: tff.types.Type) -> set[int]:
  if isinstance(kind, tff.types.FederatedType):
    return set() if kind.all_equal else {len(value)}
  if not isinstance(kind, tff.types.StructType):
    return set()
  kinds = (part_kind for _, part_kind in tff.structure.iter_elements(kind))
  return set().union(
    *(_lengths(part, part_kind) for part, part_kind in zip(_parts(value), kinds, strict=True))
  )


def _parts(value: Any) -> list[Any]:
  return list(tff.structure.from_container(value))


def _is_array_of(value: Any, kind: tff.types.TensorType) -> bool:
  """Tells whether a value is an array with bytes of the type, whose elements are no strings."""
  if not isinstance(value, np.ndarray) or value.dtype != kind.dtype or kind.shape is None:
    return False
  if value.dtype.kind not in 'biuf' or value.ndim != len(kind.shape) or not value.ndim:
    return False
  return all(wanted in (None, size) for wanted, size in zip(kind.shape, value.shape, strict=True))
