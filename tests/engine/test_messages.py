"""What a worker is sent is what TFF itself would write, without its copies; and it is sent once."""

import collections

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow


def filled(value, kind):
  from tensorflow_federated.proto.v0 import executor_pb2

  from tff_cluster.engine import messages

  message = executor_pb2.Value()
  messages.fill(message, value, kind)
  return message


def kinds():
  """Yields values with their types: what the computations of this suite take, and what TFF has beside."""
  import tensorflow_federated as tff

  x, y = np.arange(12, dtype=np.uint8).reshape(3, 4), np.array([1, 2, 3], np.int32)
  of_client = tff.types.StructType(
    [('x', tff.TensorType(np.uint8, [None, 4])), ('y', tff.TensorType(np.int32, [None]))]
  )
  client = collections.OrderedDict(x=x, y=y)
  yield x, tff.TensorType(np.uint8, [3, 4])
  yield np.zeros((0, 4), np.float32), tff.TensorType(np.float32, [None, 4])
  yield x.T, tff.TensorType(np.uint8, [4, 3])  # Not in C order.
  yield np.array([True, False]), tff.TensorType(np.bool_, [2])
  yield np.float32(2.5), tff.TensorType(np.float32)
  yield 7, tff.TensorType(np.int32)
  yield 'words', tff.TensorType(np.str_)
  yield [1, 2], tff.TensorType(np.int32, [2])
  yield client, of_client
  yield [], tff.types.StructType([])
  yield (x, [y, np.float32(1)]), tff.types.StructType([tff.TensorType(np.uint8, [3, 4]), [tff.TensorType(np.int32, [3]), np.float32]])  # fmt: skip
  yield [client, client], tff.types.FederatedType(of_client, tff.CLIENTS)
  yield [], tff.types.FederatedType(of_client, tff.CLIENTS)
  yield client, tff.types.FederatedType(of_client, tff.SERVER)
  yield client, tff.types.FederatedType(of_client, tff.CLIENTS, all_equal=True)
  model = tff.learning.models.ModelWeights((np.ones((2, 2), np.float32),), ())
  yield model, tff.types.to_type(tff.learning.models.ModelWeights((tff.TensorType(np.float32, [2, 2]),), ()))


def test_messages_are_those_of_tff():
  import tensorflow_federated as tff

  for value, kind in kinds():
    expected, _ = tff.framework.serialize_value(value, kind)
    assert filled(value, kind).SerializeToString(deterministic=True) == expected.SerializeToString(
      deterministic=True
    ), kind


def test_values_are_read_as_tff_reads_them():
  import tensorflow as tf
  import tensorflow_federated as tff

  from tff_cluster.engine import messages

  for value, kind in kinds():
    if isinstance(kind, tff.types.FederatedType) and not kind.all_equal and not value:
      continue  # TFF reads nothing of no clients.
    message = filled(value, kind)
    expected, _ = tff.framework.deserialize_value(message, kind)
    found = messages.read(message, kind)
    tf.nest.assert_same_structure(plain(found), plain(expected))
    for one, other in zip(tf.nest.flatten(plain(found)), tf.nest.flatten(plain(expected)), strict=True):
      assert type(one) is type(other) and np.array_equal(one, other)
      assert np.asarray(one).dtype == np.asarray(other).dtype and np.shape(one) == np.shape(other)


def plain(value):
  """Returns a value with tuples for TFF's structures."""
  import tensorflow_federated as tff

  if isinstance(value, tff.structure.Struct):
    return tuple((name or '', plain(part)) for name, part in tff.structure.iter_elements(value))
  return [plain(part) for part in value] if isinstance(value, list) else value


def test_an_answer_with_other_parts_is_refused():
  import tensorflow_federated as tff

  from tff_cluster.engine import messages

  kind = tff.types.StructType([np.float32, np.float32])
  with pytest.raises(ValueError, match='shorter'):
    messages.read(filled([np.float32(1)], tff.types.StructType([np.float32])), kind)


def test_data_sets_are_left_to_tff():
  import tensorflow as tf
  import tensorflow_federated as tff

  kind = tff.types.FederatedType(tff.types.SequenceType(np.int32), tff.CLIENTS)
  given = [tf.data.Dataset.from_tensors(np.int32(k)) for k in (3, 4)]
  found, _ = tff.framework.deserialize_value(filled(given, kind), kind)
  assert [[int(k) for k in rows] for rows in found] == [[3], [4]]


def test_tensors_are_written_as_their_arrays():
  import tensorflow as tf
  import tensorflow_federated as tff

  for value in (np.ones((2, 3), np.float32), np.float32(3)):
    kind = tff.TensorType(value.dtype, value.shape)
    assert filled(tf.constant(value), kind) == filled(value, kind)


@pytest.mark.parametrize(
  ('value', 'shape'),
  [
    (np.zeros(3, np.int64), (3,)),
    (np.zeros(3, np.float64), (3,)),
    (np.zeros(4, np.float32), (3,)),
    (np.zeros((3, 1), np.float32), (3,)),
  ],
)
def test_an_array_of_another_type_is_refused(value, shape):
  import tensorflow_federated as tff

  with pytest.raises(TypeError, match='Failed to serialize'):
    filled(value, tff.TensorType(np.float32, shape))


def test_parts_that_are_missing_are_refused():
  import tensorflow_federated as tff

  with pytest.raises(ValueError, match='shorter'):
    filled([np.float32(1)], tff.types.StructType([np.float32, np.float32]))


def test_clients_are_counted():
  import tensorflow_federated as tff

  from tff_cluster.engine import messages

  theirs = tff.types.FederatedType(np.float32, tff.CLIENTS)
  one = tff.types.FederatedType(np.float32, tff.SERVER)
  assert messages.num_clients([1.0, 2.0], theirs) == 2
  assert messages.num_clients([1.0, [1.0, 2.0, 3.0]], tff.types.StructType([one, theirs])) == 3
  assert messages.num_clients([1.0, []], tff.types.StructType([one, theirs])) == 0
  assert messages.num_clients(1.0, one) == 0 == messages.num_clients(1.0, tff.TensorType(np.float32))
  with pytest.raises(ValueError, match='values of 1 and 2 clients'):
    messages.num_clients([[1.0], [1.0, 2.0]], tff.types.StructType([theirs, theirs]))
