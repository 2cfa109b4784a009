"""Any command line ends with exit code 0, or with 2 and one line; so does any text of --clustering. Never a traceback."""

import contextlib
import dataclasses
import io

import hypothesis
import pytest
from hypothesis import strategies as st

from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.clustering.methods import METHODS
from tff_cluster.experiment.config import ClusteringConfig, ExperimentConfig

SECTIONS = ('data', 'training', 'clusterings', 'evaluation', 'run')
FIELDS = {
  field.name: field
  for section in ('data', 'training', 'evaluation', 'run')
  for field in dataclasses.fields(flags.SECTIONS[section])
}
JUNK = st.text(st.characters(), max_size=8) | st.sampled_from(
  ['', '--', '-1', '1e400', 'nan', '9' * 40, '٣', 'a\0b', 'a\nb', 'a\u2028b', '\udcff', 'x' * 5000, '--seed=1', '~', '{}']
)  # fmt: skip
NUMBERS = st.integers(-2, 100).map(str) | st.integers().map(str) | st.floats().map(str)
# absl's own flags, and what is like a flag and is none.
FOREIGN = ('flagfile', 'undefok', 'verbosity', 'v', 'noverbosity', 'help', 'nosuch', 'f' * 600)


def values_of(field):
  """Texts for a field: those that it takes more often than others."""
  choices = field.metadata.get('choices')
  taken = NUMBERS if choices is None else st.sampled_from([str(choice) for choice in choices])
  return taken | taken | NUMBERS | JUNK


@st.composite
def clustering_texts(draw):
  fields = {field.name: field for field in dataclasses.fields(flags.ClusteringFlags)[1:]}
  parts = [draw(st.sampled_from([*METHODS, 'kmeans', 'dynamic_distance', 'hierarchical']) | JUNK)]
  for _ in range(draw(st.integers(0, 3))):
    name = draw(st.sampled_from(sorted(fields)))
    thresholds = st.sampled_from(['mean', 'quantile:0.1', 'quantile:2', 'validation', 'a b', 'a'])
    value = draw(values_of(fields[name]) | thresholds)
    forms = [f'{name}={value}', f' {name}={value} ', name, value, f'{name}=={value}']
    parts.append(draw(st.sampled_from(forms)))
  return draw(st.sampled_from([',', ',', ',', ',,', ';'])).join(parts)


@st.composite
def arguments(draw):
  line = []
  known = st.sampled_from(sorted(FIELDS))
  for _ in range(draw(st.integers(0, 4))):
    name = draw(known | known | st.sampled_from([*FOREIGN, 'clustering']))
    texts = values_of(FIELDS[name]) if name in FIELDS else JUNK
    value = draw(clustering_texts() if name == 'clustering' else texts)
    usual = [[f'--{name}={value}']] * 5
    line += draw(
      st.sampled_from([*usual, [f'-{name}={value}'], [f'--{name}', value], [f'--{name}'], [value]])
    )
  return [*line, *draw(st.sampled_from([[], ['--output_dir=x'], ['--output_dir=x']]))]


def execute(line):
  """Returns the exit code, stdout, stderr and the configuration of a program that only reads its flags."""
  found = []

  def main():
    parse.run_options_from_flags()
    found.append(parse.experiment_config_from_flags())

  out, err = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    code = program.execute(main, lambda: flags.define(*SECTIONS), ['p', *line])
  return code, out.getvalue(), err.getvalue(), found[0] if found else None


def check(line):
  code, out, err, found = execute(line)
  assert 'Traceback' not in out + err
  if code == 0:
    assert err == ''
    # Nothing is read where help was asked for.
    assert (found is None) == ('usage: ' in out)
    assert found is None or ExperimentConfig.from_json(found.to_json()) == found
  else:
    assert code == 2 and out == ''
    assert err.startswith('error: ') and err.endswith('\n') and err[:-1].isprintable() and len(err) < 2200
  return code


@hypothesis.given(arguments())
def test_any_command_line(line):
  check(line)


@hypothesis.settings(max_examples=2 * hypothesis.settings().max_examples)
@hypothesis.given(clustering_texts() | JUNK)
def test_any_clustering(text):
  try:
    read = parse.parse_clustering_spec(text)
  except InputError as error:
    assert str(error).startswith('--clustering=')
    assert str(error).isprintable() and len(str(error)) < 2200
    assert check([f'--clustering={text}', '--output_dir=x']) == 2
  else:
    assert ClusteringConfig.from_json(read.to_json()) == read
    read.check()


@pytest.mark.parametrize(
  ('text', 'code'),
  [('kmeans', 0), ('kmeans, num_clusters = 3', 2), (' kmeans , num_clusters=3 ', 0), ('kmeans,name=a b', 2)],
)
def test_both_ends_are_met(text, code):
  assert check([f'--clustering={text}', '--output_dir=x']) == code
  assert check(['--num_clients=5', f'--clustering={text}', '--output_dir=x']) == code
