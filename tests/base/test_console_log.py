"""Lines of the log: a level and a text, whoever logs."""

import subprocess
import sys

PROGRAM = """
import logging
import absl.flags
import absl.logging
from tff_cluster.base import console_log
absl.flags.FLAGS(['program'])
console_log.use()
logging.getLogger('somewhere').warning('%d rows', 3)
absl.logging.error('no rows')
"""


def test_a_line_has_no_time_thread_or_place_in_the_code():
  done = subprocess.run([sys.executable, '-c', PROGRAM], capture_output=True, text=True)
  assert done.stderr.splitlines() == ['warning: 3 rows', 'error: no rows']
