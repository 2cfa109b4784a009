"""Files that others read: Containerfile, CITATION.cff and the hooks of pre-commit."""

import json
import pathlib
import re
import shlex

import yaml

import tff_cluster
from tests.test_readme import check_command

ROOT = pathlib.Path(__file__).parents[1]


def test_the_container_installs_the_lock_with_its_hashes_and_runs_a_preset():
  lines = (ROOT / 'Containerfile').read_text().replace('\\\n', ' ').splitlines()
  steps = [line.partition(' ')[::2] for line in lines if line and not line.startswith('#')]
  assert steps[0][0] == 'FROM' and re.fullmatch(r'python:3\.11[a-z-]*', steps[0][1])
  installs = [text for kind, text in steps if kind == 'RUN']
  assert ' --no-deps --require-hashes -r requirements.lock' in installs[0]
  assert ' --no-deps --no-build-isolation --no-index .' in installs[1] and len(installs) == 2
  copied = [name for kind, text in steps if kind == 'COPY' for name in text.split()[:-1]]
  assert all((ROOT / name).exists() for name in copied) and {'tff_cluster', 'phases', 'flags'} <= set(copied)
  (entry,), (given,) = (
    [json.loads(text) for kind, text in steps if kind == word] for word in ('ENTRYPOINT', 'CMD')
  )
  assert check_command(shlex.join([*entry, *given]), ROOT) == 0
  assert '://' not in ''.join(lines)


def test_the_citation_is_of_this_version_and_the_hooks_run_what_make_runs():
  citation = yaml.safe_load((ROOT / 'CITATION.cff').read_text())
  assert {'cff-version', 'message', 'title', 'authors'} <= citation.keys()
  assert citation['version'] == tff_cluster.__version__
  (repository,) = yaml.safe_load((ROOT / '.pre-commit-config.yaml').read_text())['repos']
  assert repository['repo'] == 'local'
  assert [(hook['entry'], hook['language']) for hook in repository['hooks']] == [('make check', 'system')]
