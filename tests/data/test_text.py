"""Plays as plain text: who speaks what, the rows that follow, worked out by hand, and what is refused in one line."""

import collections
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_up import two_languages
from tff_cluster.base.errors import EnvironmentFault, InputError
from tff_cluster.data import characters, plays, populate, sources
from tff_cluster.data.data_config import DataConfig
from tff_cluster.experiment.config import ExperimentConfig

PLAYS = """A preamble that nobody speaks.

# Danes / Hamlet

Hamlet, a prince.

HAMLET.
To be,   or
not.

[Exit.]
So.

First Clown:
A pick-axe.
\tA spade.

HAMLET.
Alas.
What?
# Romans / Caesar
HAMLET.
I came.
BRUTUS\tHail: Caesar.
PORTIA\tO.
"""
SPOKEN = [
  plays.Speaker('Danes / Hamlet: HAMLET', 'Danes', 'To be, or not. [Exit.] So. Alas. What?'),
  plays.Speaker('Danes / Hamlet: First Clown', 'Danes', 'A pick-axe. A spade.'),
  plays.Speaker('Romans / Caesar: HAMLET', 'Romans', 'I came.'),
  plays.Speaker('Romans / Caesar: BRUTUS', 'Romans', 'Hail: Caesar.'),
  plays.Speaker('Romans / Caesar: PORTIA', 'Romans', 'O.'),
]


def write(folder, text):
  path = folder / 'plays.txt'
  path.write_bytes(text if isinstance(text, bytes) else text.encode())
  return str(path)


def load(path, **options):
  return sources.load(DataConfig(dataset='text', data_file=path, **options))


def test_who_speaks_what(tmp_path):
  assert plays.read_plays(write(tmp_path, PLAYS)) == SPOKEN
  # A byte order mark, and ends of lines of other systems.
  assert plays.read_plays(write(tmp_path, '\ufeff' + PLAYS.replace('\n', '\r\n'))) == SPOKEN


def test_speakers_without_a_play(tmp_path):
  assert plays.read_plays(write(tmp_path, 'ANN:\nYes.\n\nBOB\tNo.\n')) == [
    plays.Speaker('ANN', '', 'Yes.'),
    plays.Speaker('BOB', '', 'No.'),
  ]


@pytest.mark.parametrize(
  'line',
  ['Never!', 'A name that is far too long to be the name of somebody:', '1.', '(ANN)', 'ANN. Yes', '.'],
)
def test_lines_that_name_nobody(line, tmp_path):
  assert plays.read_plays(write(tmp_path, f'BOB.\nNo.\n\n{line}\nYes.\n')) == [
    plays.Speaker('BOB', '', f'No. {line} Yes.')
  ]


def test_rows_labels_and_owners_by_hand(tmp_path):
  # 'a' occurs 6 times, 'b' 5, 'c' 4, 'd' once; of 3 classes the last is that of c and d.
  path = write(tmp_path, '# P\nANN.\nabcabcabab\n# Q\nBOB.\nabcacd\n')
  source = load(path, text_window=2, text_classes=3, test_fraction=0.5)
  assert (source.name, source.num_classes, source.train_x.dtype) == ('plays', 3, np.int8)
  # ANN trains on abcab, from 0 and from 2, and is tested on cabab; BOB on abc and acd.
  assert source.train_x.tolist() == [[0, 1], [2, 0], [0, 1]]
  assert source.train_y.tolist() == [2, 1, 2]
  assert source.train_owner.tolist() == ['P: ANN', 'P: ANN', 'Q: BOB']
  assert source.train_group.tolist() == [0, 0, 1]
  assert source.test_x.tolist() == [[2, 0], [1, 0], [0, 2]]
  assert source.test_y.tolist() == [1, 1, 2]
  assert source.test_owner.tolist() == ['P: ANN', 'P: ANN', 'Q: BOB']
  assert source.test_group.tolist() == [0, 0, 1]
  closer = load(path, text_window=2, text_stride=1, text_classes=3, test_fraction=0.5)
  assert closer.train_x.tolist() == [[0, 1], [1, 2], [2, 0], [0, 1]]


@pytest.mark.parametrize('stride', [1, 3, 6])
def test_a_speakers_validation_rows_are_the_end_and_share_no_character_with_training_rows(stride, tmp_path):
  places = ''.join(chr(0x4E00 + place) for place in range(100))
  path = write(tmp_path, f'# P\nANN.\n{places}\n# Q\nBOB.\n{places}\n')
  changes = {'text_window': 7, 'text_stride': stride, 'text_classes': 128, 'validation_fraction': 0.2}
  config = DataConfig('text', data_file=path, partition='by_writer', num_clients=2, **changes)
  population = populate.build_population(config)
  for k in range(2):
    told = {}
    for split in ('train', 'validation'):
      x, y = getattr(population, split).client(k)
      told[split] = set(x.ravel().tolist()) | set(y.tolist())
    assert not told['train'] & told['validation'], k
    # Codes are by code point here, so in the order of the text.
    assert max(told['train']) < min(told['validation'])
    gap = min(told['validation']) - max(told['train'])
    assert gap <= stride  # No more is left out than must be.


@settings(max_examples=50)
@given(
  spoken=st.lists(st.text('abcdefxyz ', max_size=30), min_size=1, max_size=4),
  window=st.integers(1, 5),
  stride=st.integers(1, 5),
  classes=st.integers(2, 9),
)
def test_rows_are_the_text_again(spoken, window, stride, classes):
  texts = [characters.Text(f's{k}', '', text) for k, text in enumerate(spoken)]
  longer = characters.Text('t', '', 'ab' * 5)
  config = DataConfig(text_window=window, text_stride=stride, text_classes=classes)
  source = characters.to_source('made up', [*texts, longer], [longer], config)
  counts = collections.Counter(''.join(spoken) + longer.characters * 2)
  ranked = sorted(counts, key=lambda letter: (-counts[letter], letter))
  rest = classes - 1 if len(ranked) > classes else classes
  codes = {letter: min(place, rest) for place, letter in enumerate(ranked)}
  expected = [
    ([codes[c] for c in text.characters[i : i + window]], codes[text.characters[i + window]], text.owner)
    for text in (*texts, longer)
    for i in range(0, len(text.characters) - window, stride)
  ]
  found = zip(source.train_x.tolist(), source.train_y.tolist(), source.train_owner.tolist(), strict=True)
  assert list(found) == expected
  assert source.train_group is None and source.train_x.max() < source.num_classes


def test_an_outline_is_that_of_the_rows(tmp_path):
  config = DataConfig(dataset='text', data_file=write(tmp_path, two_languages.plays(3, 500)), text_window=9)
  outline, source = sources.check(config), sources.load(config)
  assert outline.rows == len(source.train_y) + len(source.test_y) == 6 * (44 + 11)
  assert (outline.input_shape, outline.row_bytes, outline.num_classes) == ((9,), source.train_x[0].nbytes, 8)


def test_speakers_are_clients_and_plays_their_groups(tmp_path):
  path = write(tmp_path, two_languages.plays(3, 500))
  config = DataConfig(dataset='text', data_file=path, partition='by_writer', num_clients=6, text_window=9)
  population = populate.build_population(config)
  names = [
    f'{place} / a play of the {place}: SPEAKER {k}' for place in two_languages.LANGUAGES for k in range(3)
  ]
  assert population.client_ids == tuple(names)
  np.testing.assert_array_equal(population.truths['group'], np.repeat(np.eye(2), 3, axis=1))
  # Letters of equal codes are equal, so each client's labels follow as its language says.
  letters = characters.alphabet_of(
    (speaker.text for speaker in plays.read_plays(path)), config.text_classes
  ).kept
  for k, language in enumerate(np.repeat(two_languages.LANGUAGES, 3)):
    after = two_languages.followers(str(language))
    for x, y in zip(*population.train.client(k), strict=True):
      assert letters[y] in after[letters[x[-1]]]


def test_who_says_little_is_no_client(tmp_path):
  path = write(tmp_path, two_languages.plays(2, 300) + f'\nEXTRA.\n{"ab" * 40}\n')
  asked = {'dataset': 'text', 'data_file': path, 'partition': 'by_writer', 'text_window': 9}
  few = populate.build_population(DataConfig(**asked, num_clients=4, min_examples=20))
  assert not any('EXTRA' in client for client in few.client_ids)
  with pytest.raises(InputError, match='4 of 5 writers qualify'):
    populate.build_population(DataConfig(**asked, num_clients=5, min_examples=20))


@pytest.mark.parametrize('alpha', [0.05, 100.0])
def test_dirichlet_shares_over_plays_are_the_planted_groups(alpha, tmp_path):
  path = write(tmp_path, two_languages.plays(6, 3_000))
  config = DataConfig(
    dataset='text', data_file=path, partition='dirichlet', dirichlet_over='group', dirichlet_alpha=alpha,
    num_clients=10, text_window=9,
  )  # fmt: skip
  population = populate.build_population(config)
  shares = population.truths['group']
  np.testing.assert_allclose(shares.sum(axis=0), 1.0)
  # Few clients are mixed where the concentration is small, and all evenly where it is large.
  mixed = np.abs(shares[0] - 0.5) < 0.2
  assert mixed.all() if alpha == 100.0 else not mixed.all()
  letters = characters.alphabet_of((each.text for each in plays.read_plays(path)), 64).kept
  north = two_languages.followers('north')
  for split in (population.train, population.test):
    for k in range(10):
      x, y = split.client(k)
      found = np.mean([letters[label] in north[letters[row[-1]]] for row, label in zip(x, y, strict=True)])
      # Validation rows are taken out of the rows whose shares are told, and test rows are few.
      assert abs(found - shares[0, k]) < 0.15


@pytest.mark.parametrize('partition', ['iid', 'pathological', 'label_swapped', 'label_permuted', 'quantity_skew', 'dirichlet'])  # fmt: skip
def test_other_partitions_share_out_the_same_rows(partition, tmp_path):
  path = write(tmp_path, two_languages.plays(3, 2_000))
  config = DataConfig(dataset='text', data_file=path, partition=partition, num_clients=5, text_window=9)
  population = populate.build_population(config)
  rows = len(sources.load(config).train_y)
  assert population.train.counts.sum() + population.validation.counts.sum() == rows
  assert population.train.x.dtype == np.int8 and ('group' in population.truths) == partition.startswith(
    'label'
  )


@pytest.mark.parametrize(
  ('text', 'says'),
  [
    ('', 'nobody speaks'),
    ('To be, or not to be.\nThat, too.\n', 'nobody speaks'),
    ('HAMLET.\n\nTo be.\n', 'nobody speaks'),
    (b'HAMLET.\nTo b\xe9.\n', 'is not UTF-8 (byte 12)'),
    ('HAMLET.\nTo\0be.\n', 'zero bytes'),
    ('HAMLET.\nTo be.\n', 'nobody has a piece of 41 characters for training'),
    ('HAMLET.\n' + 'To be. ' * 9, 'nobody has a piece of 41 characters for training'),
  ],
)
def test_what_is_no_play_is_refused_in_one_line(text, says, tmp_path):
  with pytest.raises(InputError) as caught:
    load(write(tmp_path, text))
  assert says in str(caught.value) and '\n' not in str(caught.value)


def test_files_that_are_not_there_or_cannot_be_read(tmp_path):
  for path, says in ((tmp_path / 'none.txt', 'no such file'), (tmp_path, 'not a file')):
    with pytest.raises(InputError, match=says):
      load(str(path))
  with mock.patch('builtins.open', side_effect=PermissionError('no')), pytest.raises(EnvironmentFault, match='cannot be read'):  # fmt: skip
    load(write_before(tmp_path))
  with pytest.raises(InputError, match='dataset=text needs data_file'):
    ExperimentConfig(DataConfig(dataset='text')).validated()


def write_before(folder):
  (folder / 'there.txt').touch()
  return str(folder / 'there.txt')


def test_shares_over_groups_need_groups(tmp_path):
  wanted = {'partition': 'dirichlet', 'dirichlet_over': 'group'}
  with pytest.raises(InputError, match='dirichlet_over=group needs rows that come with groups: dataset='):
    ExperimentConfig(DataConfig(**wanted)).validated()
  path = write(tmp_path, f'ANN.\n{"ab" * 90}\n')
  with pytest.raises(InputError, match='the rows of plays are of one group'):
    populate.build_population(
      DataConfig(dataset='text', data_file=path, num_clients=2, text_window=5, **wanted)
    )
