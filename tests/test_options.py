"""Declared fields: what is saved of a section."""

import dataclasses

from tff_cluster import options
from tff_cluster.options import option


@dataclasses.dataclass(frozen=True)
class Section:
  rounds: int = option(20, 'Rounds.')
  aggregator: str = option('mean', 'How updates are aggregated.', quiet=True)


def test_a_quiet_field_is_saved_only_where_it_is_used():
  assert options.to_json(Section()) == {'rounds': 20}
  assert options.to_json(Section(aggregator='robust')) == {'rounds': 20, 'aggregator': 'robust'}


def test_what_is_saved_gives_the_section_back():
  for section in (Section(), Section(rounds=3), Section(aggregator='robust')):
    assert options.section_from_json(Section, options.to_json(section)) == section
