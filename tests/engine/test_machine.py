"""What a run may be given to reach a cluster."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tff_cluster.base.errors import InputError
from tff_cluster.engine.machine import Machine, Scheduler


@pytest.fixture
def tls(tmp_path):
  paths = {name: tmp_path / f'{name}.pem' for name in ('tls_ca', 'tls_cert', 'tls_key')}
  for path in paths.values():
    path.touch()
  return {name: str(path) for name, path in paths.items()}


def test_without_a_scheduler_there_is_no_cluster():
  assert Machine().cluster is None


def test_an_address_with_certificates_or_with_those_of_dask_itself(tls):
  found = Machine(scheduler='tls://one.example:8786', **tls).cluster
  assert found == Scheduler('tls://one.example:8786', tuple(tls.values()))
  assert Machine(scheduler='tls://[fe80::1]:8786').cluster == Scheduler('tls://[fe80::1]:8786')


@pytest.mark.parametrize('host', ['127.0.0.1', '127.8.9.10', 'localhost', '[::1]'])
def test_this_machine_needs_no_encryption(host):
  assert Machine(scheduler=f'tcp://{host}:8786').cluster == Scheduler(f'tcp://{host}:8786')


@pytest.mark.parametrize(
  'host', ['10.0.0.5', 'one.example', 'localhost.example', '[::2]', '127.0.0.1.example']
)
@pytest.mark.parametrize('by_file', [False, True])
def test_another_machine_needs_encryption_however_its_address_is_given(host, by_file, tmp_path):
  address, path = f'tcp://{host}:8786', tmp_path / 'scheduler.json'
  path.write_text(json.dumps({'type': 'Scheduler', 'address': address}))
  given = {'scheduler_file': str(path)} if by_file else {'scheduler': address}
  with pytest.raises(InputError, match=r'is not encrypted.*tunnel'):
    _ = Machine(**given).cluster


@pytest.mark.parametrize(
  'address',
  ['', 'one.example:8786', 'tls://one.example', 'tls://:8786', 'tls://a:0', 'tls://a:65536', 'tls://a:８７８６', 'ucx://a:1', 'tls://::1:8786', 'tls://a b:1', 'tls://a:1\n'],
)  # fmt: skip
def test_what_is_no_address_is_refused(address):
  with pytest.raises(InputError, match=r'expected tls://HOST:PORT, for instance'):
    _ = Machine(scheduler=address).cluster


@given(st.text())
def test_any_other_text_is_refused_in_one_line(text):
  with pytest.raises(InputError) as caught:
    _ = Machine(scheduler=text).cluster
  assert str(caught.value).isprintable()


def test_certificates_come_all_three_and_are_there(tls):
  for name in tls:
    with pytest.raises(InputError, match=f'{name}.*all three'):
      _ = Machine(
        scheduler='tls://a:1', **{other: path for other, path in tls.items() if other != name}
      ).cluster
  os.remove(tls['tls_key'])
  with pytest.raises(InputError, match=r'tls_key=.*: there is no such file'):
    _ = Machine(scheduler='tls://a:1', **tls).cluster


def test_what_has_no_effect_is_refused(tls, tmp_path):
  with pytest.raises(InputError, match='tls_ca is for a cluster; give scheduler'):
    _ = Machine(**tls).cluster
  with pytest.raises(InputError, match='tls_ca is for nothing'):
    _ = Machine(scheduler='tcp://127.0.0.1:1', **tls).cluster
  with pytest.raises(InputError, match='both given'):
    _ = Machine(scheduler='tls://a:1', scheduler_file=str(tmp_path)).cluster


def test_the_file_of_a_scheduler(tmp_path):
  path = tmp_path / 'scheduler.json'
  with pytest.raises(InputError, match='No such file or directory; the scheduler writes it when it starts'):
    _ = Machine(scheduler_file=str(path)).cluster
  for text in ('', '{', '[1]', '{"address": 1}', '\xff', '{"id": "x"}'):
    path.write_bytes(text.encode('latin-1'))
    with pytest.raises(InputError, match='is not what a Dask scheduler writes'):
      _ = Machine(scheduler_file=str(path)).cluster
  path.write_text('{"address": "ucx://a:1"}')
  with pytest.raises(InputError, match=r"'ucx://a:1': expected tls://HOST:PORT"):
    _ = Machine(scheduler_file=str(path)).cluster
  path.write_text('{"address": "tls://a:1"}')
  assert Machine(scheduler_file=str(path)).cluster == Scheduler('tls://a:1')
