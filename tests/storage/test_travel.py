"""Folders that travel: what goes with them, what stays, and how a machine sees whether it has a folder already."""

import pathlib

from tff_cluster.storage import travel


def test_a_folder_travels_without_links_and_what_belongs_to_programs_at_work(tmp_path):
  there, back = tmp_path / 'there', tmp_path / 'back'
  found = {'config.json': b'{}', 'phase2/local.json': b'[]', 'tensorboard/.tff_cluster-events.json': b'["a"]'}
  travel.put(there, found)
  (there / '.tff_cluster-lock').write_bytes(b'1')
  (there / '.tff_cluster-0123456789abcdef-phase1.json').write_bytes(b'half')
  travel.link(there / 'store', tmp_path / 'a store')
  (tmp_path / 'a store' / 'big.npz').write_bytes(b'x')
  left = there / '.tff_cluster-fedcba9876543210-seen'
  left.touch()
  with travel.marked(there) as other, travel.marked(there) as mark:
    # Of a killed program, and of one at work.
    assert not left.exists() and pathlib.Path(other).is_file()
    assert pathlib.Path(mark).parent == there and pathlib.Path(mark).is_file()
    assert travel.contents(there) == found
  assert not pathlib.Path(mark).exists()
  travel.put(back, {'config.json': b'old'})
  travel.put(back, found)
  assert travel.contents(back) == found
