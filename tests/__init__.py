"""Tests. Those that start programs kill them, but never the machine, so files need not outlive a power cut.

To wait for a disk after each of the hundred files of a run takes as long as training it; tests/storage/test_files.py looks at
what is waited for. Programs that are started as users start them do wait.
"""

import os

SYNC = os.fsync
os.fsync = lambda descriptor: None
