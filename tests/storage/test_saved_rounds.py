"""Rounds on disk are read as they were saved."""

import numpy as np

from tff_cluster.storage import saved_rounds


def test_a_state_of_more_than_ten_thousand_arrays_keeps_their_order(tmp_path):
  history = {name: np.zeros(1) for name in saved_rounds.COLUMNS}
  arrays = [np.full((), position) for position in range(10_012)]
  saved_rounds.save(tmp_path, 3, True, history, arrays)
  record = saved_rounds.load_or_none(tmp_path, 3)
  assert list(map(int, saved_rounds.state(record))) == list(range(10_012))
  assert list(map(int, saved_rounds.model(record, 2, 5003))) == [10_006, 10_007]
