"""Reading signatures: what is accepted, and one clear line for everything else."""

import io
import pickle

import numpy as np
import pytest

from tests.made_up.clients import scipy_distances
from tff_cluster.base.errors import InputError
from tff_cluster.clustering.signatures import Signatures, read_signatures

VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3)


def written(tmp_path, **arrays):
  path = tmp_path / 'x.npz'
  np.savez(path, **arrays)
  return path


def refusal(path):
  with pytest.raises(InputError) as caught:
    read_signatures(path)
  message = str(caught.value)
  assert '\n' not in message
  assert message.startswith(str(path))
  return message


@pytest.mark.parametrize(
  ('ids', 'expected', 'kind'),
  [
    (None, ('0', '1', '2', '3'), 'integer'),
    (np.array(['d', 'a', 'c', 'b']), ('d', 'a', 'c', 'b'), 'string'),
    (np.array([7, -1, 30, 2]), ('7', '-1', '30', '2'), 'integer'),
  ],
)
def test_ids_memory_mapping_and_number_types(tmp_path, ids, expected, kind):
  path = tmp_path / 'x.npy'
  if ids is None:
    np.save(path, VECTORS)
  else:
    path = written(tmp_path, signatures=VECTORS, client_ids=ids)
  found = read_signatures(path)
  assert (found.client_ids, found.id_kind) == (expected, kind)
  np.testing.assert_array_equal(found.vectors, VECTORS)
  # A plain array of vectors is not read into memory.
  assert isinstance(found.vectors, np.memmap) == (ids is None) != found.vectors.flags.writeable
  for dtype, kept in (('<f8', np.float64), ('>f4', np.float32), ('f2', np.float32), ('i8', np.float64)):
    read = read_signatures(written(tmp_path, signatures=VECTORS.astype(dtype)))
    assert read.vectors.dtype == kept
    np.testing.assert_array_equal(read.vectors, VECTORS)


def test_foreign_files_and_python_objects(tmp_path):
  class Bomb:
    def __reduce__(self):
      return pytest.fail, ('the file was unpickled',)

  assert 'no such file' in refusal(tmp_path / 'none.npz')
  assert 'is a folder' in refusal(tmp_path)
  path = tmp_path / 'x.npz'
  for content in (b'hello', b'PK\x03\x04 not a zip', pickle.dumps([1, 2]), bytes(999)):
    path.write_bytes(content)
    assert 'not an .npz or .npy file' in refusal(path)
  bomb = np.array([[Bomb()]], dtype=object)
  np.save(tmp_path / 'x.npy', bomb)
  assert 'holds Python objects' in refusal(tmp_path / 'x.npy')
  assert 'holds Python objects' in refusal(written(tmp_path, signatures=bomb))
  assert 'holds Python objects' in refusal(written(tmp_path, signatures=VECTORS, client_ids=bomb[0]))


def content_of(zipped, **others):
  """The bytes of an .npz or of an .npy file."""
  buffer = io.BytesIO()
  if zipped:
    np.savez(buffer, signatures=VECTORS, **others)
  else:
    np.save(buffer, VECTORS)
  return bytearray(buffer.getvalue())


@pytest.mark.parametrize('zipped', [False, True])
def test_truncations_are_told_and_a_damaged_byte_is_or_is_harmless(tmp_path, zipped):
  path = tmp_path / 'x'
  whole = content_of(zipped, client_ids=np.array(['a', 'b', 'c', 'd']))
  for length in (*range(128), *range(128, len(whole), 7)):
    path.write_bytes(whole[:length])
    assert 'not an .npz or .npy file' in refusal(path)
  rng = np.random.default_rng(0)
  for position, flip in zip(rng.integers(len(whole), size=150), rng.integers(1, 256, size=150), strict=True):
    damaged = bytearray(whole)
    damaged[position] ^= flip
    path.write_bytes(damaged)
    try:
      read_signatures(path)
    except InputError as error:
      assert '\n' not in str(error)


@pytest.mark.parametrize(
  ('arrays', 'message'),
  [
    ({'weights': VECTORS}, "must hold an array 'signatures', found weights"),
    ({}, "must hold an array 'signatures', found nothing"),
    ({'signatures': VECTORS[0]}, r'must be [clients, features], found shape (3,)'),
    ({'signatures': VECTORS[:0]}, 'hold no client'),
    ({'signatures': VECTORS[:, :0]}, 'no features'),
    ({'signatures': VECTORS > 3}, 'must be numbers (float32 or float64), found bool'),
    # The first client without finite numbers is named.
    (
      {'signatures': np.where(VECTORS > 6, np.nan, VECTORS)},
      'the signature of client 2 holds NaN or an infinity',
    ),
    ({'signatures': np.where(VECTORS > 9, -np.inf, VECTORS)}, 'the signature of client 3 holds NaN'),
    ({'client_ids': ['a', 'b', 'a', 'c']}, 'given twice or more: a'),
    ({'client_ids': ['a', 'b', 'c']}, '3 client ids for 4 signatures'),
    ({'client_ids': np.arange(8).reshape(4, 2)}, 'must be [clients], found shape (4, 2)'),
    ({'client_ids': np.linspace(0, 1, 4)}, 'integers or strings, found float64'),
    ({'client_ids': ['a', 'b', 'c', 'd\udfff']}, 'client_ids have text that is not Unicode'),
  ],
)
def test_wrong_content(tmp_path, arrays, message):
  given = {'signatures': VECTORS, **arrays} if 'client_ids' in arrays else arrays
  assert message in refusal(written(tmp_path, **given))


def test_distances_are_computed_once_and_read_only():
  signatures = Signatures.numbered(VECTORS)
  first = signatures.distances('l2')
  assert signatures.distances('l2') is first
  assert signatures.distances('l1') is not first
  with pytest.raises(ValueError, match='read-only'):
    first[0, 1] = 3.0


@pytest.mark.parametrize('shape', [(20, 400), (20, 3), (2, 9), (1, 9), (1, 1)])
def test_coordinates_keep_all_distances(shape):
  vectors = np.random.default_rng(1).normal(size=shape).astype(np.float32) + 5
  if shape[0] > 2:
    vectors[4], vectors[5] = vectors[1], vectors[2] + np.float32(1e-6)
  points = Signatures.numbered(vectors).coordinates()
  assert points.dtype == np.float64
  assert points.shape[1] <= max(shape[1] if shape[1] <= shape[0] else shape[0] - 1, 1)
  exact, found = scipy_distances(vectors, 'l2'), scipy_distances(points, 'l2')
  np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-6)
  # Equal vectors have equal coordinates, and others do not.
  if shape[0] > 2:
    np.testing.assert_array_equal(points[4], points[1])
    assert (points[5] != points[2]).any()
