"""Declared fields: what is saved of a section."""

import dataclasses

from tff_cluster import options
from tff_cluster.options import option


@dataclasses.dataclass(frozen=True)
class Section:
  rounds: int = option(20, 'Rounds.')
  aggregator: str = option('mean', 'How updates are aggregated.')


def test_a_default_is_a_value_of_the_same_type():
  rounds, aggregator = dataclasses.fields(Section)
  assert options.is_default(rounds, 20) and options.is_default(aggregator, 'mean')
  assert not options.is_default(rounds, 20.0) and not options.is_default(rounds, 3)


def test_what_is_saved_gives_the_section_back():
  for section in (Section(), Section(rounds=3), Section(aggregator='robust')):
    assert options.section_from_json(Section, options.to_json(section)) == section
