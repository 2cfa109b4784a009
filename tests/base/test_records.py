"""Records: JSON and back, and what is said of JSON that is none."""

import dataclasses
import json

import pytest

from tff_cluster.base import records
from tff_cluster.base.types import Json


@dataclasses.dataclass(frozen=True)
class Inner(records.Record):
  number: int
  share: float | None


@dataclasses.dataclass(frozen=True)
class Wider(Inner):
  words: str


@dataclasses.dataclass(frozen=True)
class Outer(records.Record):
  everyone: list[float] = dataclasses.field(metadata=records.about(key='global'))
  by_name: dict[str, Inner]
  rows: tuple[tuple[int, ...], ...]
  anything: Json
  count: int | float | None
  wider: list[Wider] | None
  text: str = dataclasses.field(metadata=records.about(read=str.upper))
  seldom: int = records.optional(0)
  usual: int | None = None


WHOLE = Outer(
  [0.5, 1.0], {'a': Inner(1, None)}, ((1, 2), ()), {'x': [1, 'y', None]}, 2.5, [Wider(2, 0.25, 'so')], 'LOUD', 3
)  # fmt: skip


def test_a_record_comes_back_from_json_with_the_types_that_it_declares():
  found = json.loads(json.dumps(WHOLE.to_json()))
  assert found['global'] == [0.5, 1.0]
  assert list(found['wider'][0]) == ['number', 'share', 'words']
  assert Outer.from_json(found) == WHOLE
  assert records.plain({'a': [WHOLE]}) == {'a': [WHOLE.to_json()]}


def test_json_leaves_out_an_optional_field_at_its_default_and_no_other():
  bare = dataclasses.replace(WHOLE, seldom=0, wider=None)
  told = bare.to_json()
  assert 'seldom' not in told
  assert (told['wider'], told['usual']) == (None, None)
  assert Outer.from_json(told) == bare
  del told['usual']
  assert Outer.from_json(told) == bare


def test_an_integer_is_a_float_and_stays_an_integer_where_both_are_meant():
  found = Outer.from_json(WHOLE.to_json() | {'global': [1, 0.5], 'count': 4})
  assert [type(value) for value in found.everyone] == [float, float]
  assert type(found.count) is int


@pytest.mark.parametrize(
  ('change', 'words'),
  [
    ({'global': 'no list'}, 'holds str, expected a list, in global'),
    ({'by_name': [1]}, 'holds list, expected a JSON object, in by_name'),
    ({'by_name': {'a': {'share': 1.0}}}, "has no 'number', in by_name.a"),
    ({'by_name': {'a': {'number': True, 'share': 1.0}}}, 'holds bool, expected int, in by_name.a.number'),
    ({'rows': [[1], [2, 'x']]}, 'holds str, expected int, in rows.1.1'),
    ({'count': 'four'}, 'holds str, expected float, in count'),
    ({'wider': [7]}, 'holds no JSON object, in wider.0'),
    ({'seldom': None}, 'holds NoneType, expected int, in seldom'),
  ],
)
def test_what_is_no_such_record_is_named_with_its_place(change, words):
  with pytest.raises(records.Mismatch) as caught:
    Outer.from_json(WHOLE.to_json() | change)
  assert str(caught.value) == words
