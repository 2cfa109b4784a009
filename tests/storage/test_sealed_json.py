"""A sealed JSON text comes back, and every change of it is noticed or changes nothing."""

import hashlib
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tff_cluster.storage import sealed_json

VALUES = st.recursive(
  st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
  lambda inner: (
    st.lists(inner) | st.dictionaries(st.sampled_from(['value', 'sealed', 'a', '']) | st.text(), inner)
  ),
  max_leaves=12,
)
VALUE = {'rounds': [1, 2, 30], 'loss': 0.125, 'name': 'k"means\n', 'none': None}


# What looks like the wrapping is wrapped itself.
@example({})
@example({'value': 1})
@example({'value': {'value': []}})
@given(VALUES)
@settings(max_examples=60)
def test_values_come_back_as_they_were(value):
  assert sealed_json.unseal(sealed_json.seal(value)) == value


def test_the_text_is_json_with_the_seal_as_its_last_key():
  text = sealed_json.seal(VALUE)
  read = json.loads(text)
  assert list(read) == [*VALUE, 'sealed']
  assert read.pop('sealed')['sha256'] == hashlib.sha256(json.dumps(VALUE, indent=1).encode()).hexdigest()
  assert read == VALUE
  assert json.loads(sealed_json.seal([1, 2]))['value'] == [1, 2]


@pytest.mark.parametrize('mask', [0x01, 0x40])
def test_a_text_cut_off_or_altered_anywhere_is_noticed_or_changes_nothing(mask):
  text = sealed_json.seal(VALUE)
  start = text.index(b',\n "sealed"')
  for length in range(len(text.rstrip())):
    with pytest.raises(json.JSONDecodeError, match=r'line \d+ column \d+'):
      sealed_json.unseal(text[:length])
  for position in range(len(text)):
    altered = text[:position] + bytes([text[position] ^ mask]) + text[position + 1 :]
    try:
      found = sealed_json.unseal(altered)
    except (ValueError, sealed_json.NewerFile):
      continue
    # Only the words of the seal itself can be changed; then it is none, and a stranger among the keys.
    assert position >= start and {name: found.get(name) for name in VALUE} == VALUE, position


def test_what_has_no_seal_is_taken_as_it_is_and_what_json_cannot_say_is_refused():
  assert sealed_json.unseal(b'{"a": 1}') == {'a': 1}
  assert sealed_json.unseal(b'[1, 2]\n') == [1, 2]
  assert sealed_json.opened(b'{"a": 1}') == b'{"a": 1}'
  for value in (float('nan'), {'a': {1, 2}}):
    with pytest.raises((ValueError, TypeError)):
      sealed_json.seal(value)


def test_another_format_is_told_apart_from_damage():
  text = sealed_json.seal(VALUE).replace(b'"format": 1', b'"format": 17')
  with pytest.raises(sealed_json.NewerFile, match='file format 17, this version of the software reads 1'):
    sealed_json.unseal(text)


@pytest.mark.parametrize(
  'layout', [{'indent': 1}, {'indent': 2}, {}, {'indent': 1, 'sort_keys': True}], ids=str
)
def test_a_text_that_was_formatted_anew_with_its_seal_is_taken_for_changed(layout):
  value = json.loads(sealed_json.seal(VALUE)) | {'loss': 0.5}
  text = json.dumps(value, **layout).encode()
  for read in (sealed_json.unseal, sealed_json.opened):
    with pytest.raises(ValueError, match='its seal'):
      read(text)
  del value['sealed']
  assert sealed_json.unseal(json.dumps(value, **layout).encode()) == VALUE | {'loss': 0.5}
  # Further down, and in a list, it is a word like any other.
  assert sealed_json.unseal(b'{"a": {"sealed": 1}}') == {'a': {'sealed': 1}}
  assert sealed_json.unseal(b'["sealed"]') == ['sealed']
