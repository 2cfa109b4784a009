"""The faults of mutations.py can be planted: their texts are still there, and so are the tests that find them."""

import pytest

from tests import mutations


@pytest.mark.parametrize('fault', mutations.FAULTS, ids=lambda fault: fault.name)
def test_the_text_that_is_changed_is_there_once(fault):
  assert mutations.occurrences(fault) == 1
  assert fault.new != fault.old
  assert all((mutations.ROOT / 'tests' / test).is_file() for test in fault.tests)


def test_names_tell_faults_apart():
  assert len({fault.name for fault in mutations.FAULTS}) == len(mutations.FAULTS) >= 30
