"""Declared fields: what is saved of a section, and how its texts and numbers are read."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tff_cluster.base import fields
from tff_cluster.base.errors import InputError
from tff_cluster.base.fields import option


@dataclasses.dataclass(frozen=True)
class Section:
  rounds: int = option(20, 'Rounds.')
  model: str = option('cnn', 'A model.')
  aggregator: str = option('mean', 'How updates are aggregated.')
  experts: bool = option(False, 'Combine models.')


def test_a_default_is_a_value_of_the_same_type():
  rounds, _, aggregator, experts = dataclasses.fields(Section)
  assert fields.is_default(rounds, 20) and fields.is_default(aggregator, 'mean')
  assert not fields.is_default(rounds, 20.0) and not fields.is_default(rounds, 3)
  assert fields.is_default(experts, False) and not fields.is_default(experts, 0)


@given(st.text(st.sampled_from('0123456789.eE+-_ \n１２٣²½x'), max_size=6), st.floats(-1e300, 1e300))
def test_what_is_read_as_a_number_python_reads_as_the_same(text, value):
  assert fields.number(repr(value)) == value and fields.number(f'{value:+.3e}') == float(f'{value:.3e}')
  try:
    value = fields.number(text)
  except ValueError:
    return
  assert text.isascii() and '_' not in text and text == text.strip()
  assert math.isfinite(value) and value == float(text)


@pytest.mark.parametrize('text', ['１２', '1_0', ' 1', '1\n', 'nan', '1e999', '', '0x10', '1,5'])
def test_other_digits_and_slips_are_no_numbers(text):
  with pytest.raises(ValueError, match='expected a number, such as'):
    fields.number(text)


def test_text_that_is_not_utf8_is_refused():
  fields.check_fields(Section(model='modèle/模型'))
  with pytest.raises(InputError, match=r'^model=a\\udcffb: the value is not UTF-8 text'):
    fields.check_fields(Section(model='a\udcffb'))


def test_booleans_are_true_or_false_and_nothing_else():
  experts = dataclasses.fields(Section)[-1]
  for value in (True, False):
    assert fields.value_from_text(experts, fields.as_text(value)) is value
    assert fields.value_from_text(experts, str(value)) is value
    fields.check_fields(Section(experts=value))
  for text in ('yes', '1', '', ' true'):
    with pytest.raises(ValueError, match='expected true or false'):
      fields.value_from_text(experts, text)
  for value in ('true', 1, None):
    with pytest.raises(InputError, match=r'^experts=.*: expected true or false$'):
      fields.check_fields(Section(experts=value))
