"""Which rows an experiment has, and which client holds them: each field is declared once, with its help text."""

import dataclasses

from tff_cluster.base import fields as fields_lib
from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.fields import Section, option
from tff_cluster.data import datasets

DATASETS = tuple(datasets.registered())
PARTITIONS = (
    'iid', 'pathological', 'label_swapped', 'label_permuted', 'rotated',
    'dirichlet', 'quantity_skew', 'by_writer', 'mixture',
)  # fmt: skip
ATTACKS = ('sign_flip', 'scaled', 'label_flip', 'nan')
# What a malicious client multiplies its update with, where attack_scale is not given.
_ATTACK_SCALES = {'sign_flip': 1.0, 'scaled': 10.0}
GROUPED = ('label_swapped', 'label_permuted', 'rotated', 'mixture')
# Those of them whose groups call rows by other labels, and turn none.
RELABELLED = ('label_swapped', 'label_permuted')


@dataclasses.dataclass(frozen=True)
class DataConfig(Section):
  """Which rows, and which client holds them."""

  dataset: str = option(
    'digits',
    'Source of the rows; tfds:NAME is a set of labelled images of TensorFlow Datasets, such as tfds:fashion_mnist.',
    choices=DATASETS,
  )
  data_dir: str | None = option(
    None,
    'Folder that loaders read and download to; default: their own cache.',
    applies=('dataset', datasets.with_option('data_dir')),
  )
  data_file: str | None = option(
    None,
    'An .npz with x [rows, ...], y [rows] and optional client_id [rows], group [rows] and is_test bool[rows]; of dataset text, plays as '
    'plain text.',
    applies=('dataset', datasets.with_option('data_file')),
  )
  emnist_classes: int = option(
    10,
    'EMNIST: digits only, or digits and letters.',
    choices=(10, 62),
    applies=('dataset', datasets.with_option('emnist_classes')),
  )
  emnist_ink: str = option(
    'dark',
    'EMNIST: dark ink on white, as TFF has the images, or light ink on black, as MNIST has its own.',
    choices=('dark', 'light'),
    applies=('dataset', datasets.with_option('emnist_ink')),
  )
  text_window: int = option(
    40,
    'Text: characters that the next one is told from.',
    at_least=1,
    applies=('dataset', datasets.with_option('text_window')),
  )
  text_stride: int | None = option(
    None,
    'Text: characters from the beginning of a row to that of the next one; default: text_window, so that rows do not overlap.',
    at_least=1,
    applies=('dataset', datasets.with_option('text_stride')),
  )
  text_classes: int = option(
    64,
    'Text: classes at most; the most frequent characters have one each, and the others one together.',
    at_least=2,
    at_most=128,
    applies=('dataset', datasets.with_option('text_classes')),
  )
  partition: str = option(
    '',
    'How rows are given to clients; by_writer keeps the owners of emnist, of a file with client_id, and of what is said in a text. '
    'Default: label_swapped; rows of your own (file, text) must be given one.',
    choices=PARTITIONS,
    stands_for='label_swapped',
  )
  num_clients: int = option(20, 'Number of clients; by_writer draws this many writers.', at_least=1)
  new_clients: int = option(
    0,
    'So many of the clients take no part: they come after training, and are assigned to clusters by one local update each, or as the '
    'method says (docs/howto/new_clients.md).',
    at_least=0,
  )
  rows_per_client: int | None = option(
    None, 'Training and validation rows of each client at most; default: all rows are shared out.', at_least=3
  )
  min_examples: int = option(
    1, 'Take writers with at least this many examples.', at_least=1, applies=('partition', ('by_writer',))
  )
  max_examples: int | None = option(
    None, 'Take writers with at most this many examples.', at_least=1, applies=('partition', ('by_writer',))
  )
  shards_per_client: int = option(
    2, 'Label-sorted shards that each client gets.', at_least=1, applies=('partition', ('pathological',))
  )
  noise_clients: float = option(
    0.0,
    'Share of the clients that hold CIFAR-10 images as 28x28 grey instead; of dataset mnist only.',
    at_least=0.0,
    at_most=0.5,
    applies=('partition', ('pathological',)),
  )
  num_groups: int = option(4, 'Planted groups of clients.', at_least=1, applies=('partition', GROUPED))
  group_rows: str = option(
    'split',
    'Whether the planted groups split the rows, or each of them has all rows, turned or relabelled its way, to share out among '
    'its clients.',
    choices=('split', 'all'),
    applies=('partition', tuple(kind for kind in GROUPED if kind != 'mixture')),
  )
  test_rows: str = option(
    'split',
    'Whether clients split the test rows, or each is tested on all of them, relabelled the way of its planted group.',
    choices=('split', 'all'),
    applies=('partition', RELABELLED),
  )
  angles: str | None = option(
    None,
    'By how many degrees each planted group is turned anticlockwise, such as 0,15,90; default: quarter turns, and for more than '
    '4 groups as many even parts of a whole turn.',
    applies=('partition', ('rotated', 'mixture')),
  )
  label_skew: float | None = option(
    None,
    'Dirichlet concentration of the labels within the planted groups; default: no skew.',
    above=0.0,
    applies=('partition', GROUPED),
  )
  dirichlet_alpha: float = option(
    0.5,
    'Concentration of the shares of labels, or of groups; smaller is more skewed.',
    above=0.0,
    applies=('partition', ('dirichlet',)),
  )
  dirichlet_over: str = option(
    'label',
    'What the Dirichlet shares are of: labels, or the groups that rows come with (plays of a text, group of a file), which are then planted.',
    choices=('label', 'group'),
    applies=('partition', ('dirichlet',)),
  )
  quantity_alpha: float = option(
    1.0,
    'Concentration of the numbers of rows; smaller is more uneven.',
    above=0.0,
    applies=('partition', ('quantity_skew',)),
  )
  mixture_kind: str = option(
    'rotated',
    'What tells the groups of a mixture apart.',
    choices=('rotated', 'label_swapped', 'label_permuted'),
    applies=('partition', ('mixture',)),
  )
  mixture_share: float = option(
    0.3,
    "Share of a mixed client's rows that comes from its second group.",
    above=0.0,
    at_most=0.5,
    applies=('partition', ('mixture',)),
  )
  mixture_pattern: str = option(
    'fixed',
    'fixed: mixed clients have the same mixture_share of their second group; linear: the shares of the mixed clients of a group '
    'rise evenly from 0 to a half.',
    choices=('fixed', 'linear'),
    applies=('partition', ('mixture',)),
  )
  mixed_clients: float = option(
    0.5,
    'Share of the clients that are mixed; the others belong to one group.',
    at_least=0.0,
    at_most=1.0,
    applies=('partition', ('mixture',)),
  )
  validation_fraction: float = option(
    0.1,
    "Share of each client's training rows that is kept for validation (at least one row).",
    above=0.0,
    at_most=0.5,
  )
  test_fraction: float = option(
    0.2,
    'Share of the rows that is kept for testing, in sources that have no test set.',
    above=0.0,
    at_most=0.5,
    applies=('dataset', datasets.with_option('test_fraction')),
  )
  data_seed: int = option(0, 'Seed of partition, splits and planted groups.', at_least=0)
  malicious_clients: float = option(
    0.0,
    'Share of the clients that do harm, as attack says; drawn with data_seed.',
    at_least=0.0,
    at_most=0.5,
  )
  attack: str = option(
    'sign_flip',
    'What malicious clients do: send the negative of their update, send it multiplied by attack_scale, train on labels that are turned '
    'round (classes - 1 - y), or send NaN.',
    choices=ATTACKS,
  )
  attack_scale: float | None = option(
    None,
    'Factor by which malicious clients multiply their update; default: 1 for sign_flip, 10 for scaled.',
    above=0.0,
    applies=('attack', tuple(_ATTACK_SCALES)),
  )

  def __post_init__(self):
    # Rows of one's own are not relabelled where nobody asked for it.
    if self.partition == '' and self.dataset not in datasets.of_users():
      object.__setattr__(self, 'partition', 'label_swapped')
    super().__post_init__()

  @property
  def plants_groups(self) -> bool:
    """Whether groups of clients are planted, whose labels or images are not those of the global test set."""
    return self.partition in GROUPED

  @property
  def deals_groups(self) -> bool:
    """Whether rows are dealt by the groups that they come with."""
    return self.partition == 'dirichlet' and self.dirichlet_over == 'group'

  @property
  def overlapping_rows(self) -> int:
    """How many of the next rows of a text share more than a character with a row."""
    if self.text_stride is None or self.text_stride >= self.text_window:
      return 0
    return -(-(self.text_window + 1) // self.text_stride) - 1

  @property
  def relabels_copies(self) -> bool:
    """Whether a row is held by clients of several groups, which call most labels by the same names."""
    return self.group_rows == 'all' and self.partition in RELABELLED

  @property
  def row_copies(self) -> int:
    """How many clients have the same row, each in another group."""
    return self.num_groups if self.group_rows == 'all' else 1

  @property
  def degrees(self) -> tuple[float, ...]:
    """By how much each planted group is turned, anticlockwise.

    Raises:
      InputError: if angles are no numbers, not one a group, or not all different turns.
    """
    if self.angles is None:
      step = 90.0 if self.num_groups <= 4 else 360.0 / self.num_groups
      return tuple(step * group for group in range(self.num_groups))
    try:
      given = tuple(fields_lib.number(text) for text in self.angles.split(','))
    except ValueError as error:
      raise InputError(f'{argument("angles", self.angles)}: {error}') from None
    if len(given) != self.num_groups:
      raise InputError(
        f'{argument("angles", self.angles)}: {len(given)} for {argument("num_groups", self.num_groups)}; give one for each group'
      )
    if len({angle % 360.0 for angle in given}) < len(given):
      raise InputError(
        f'{argument("angles", self.angles)}: two groups are turned alike; give each an angle of its own'
      )
    return given

  @property
  def num_participants(self) -> int:
    """Clients that are trained and clustered."""
    return self.num_clients - self.new_clients

  @property
  def update_scale(self) -> float:
    """What a malicious client multiplies its update with: below 0 with its sign flipped, NaN where it sends NaN."""
    if self.attack not in _ATTACK_SCALES:
      return float('nan') if self.attack == 'nan' else 1.0
    scale = _ATTACK_SCALES[self.attack] if self.attack_scale is None else self.attack_scale
    return -scale if self.attack == 'sign_flip' else scale

  def check_combination(self) -> None:
    """Checks what `check` does not see, since it is about several fields.

    Raises:
      InputError: naming the first field that does not go with another one.
    """
    dataset = datasets.find(self.dataset)
    dataset.check_config(self)
    if not self.partition:
      raise InputError(
        f'{argument("dataset", self.dataset)} needs {argument("partition")}: by_writer keeps whose each row is, iid deals the rows '
        f'out; allowed are {", ".join(PARTITIONS)}, some of which relabel or turn rows'
      )
    if self.partition == 'by_writer' and not dataset.has_owners:
      owned = ' or '.join(name for name, each in datasets.registered().items() if each.has_owners)
      raise InputError(
        f'{argument("partition", "by_writer")} needs rows that have owners: {argument("dataset", owned)}, not {self.dataset}'
      )
    if self.dirichlet_over == 'group' and not dataset.has_groups:
      grouped = ' or '.join(name for name, each in datasets.registered().items() if each.has_groups)
      raise InputError(
        f'{argument("dirichlet_over", "group")} needs rows that come with groups: {argument("dataset", grouped)}, not {self.dataset}'
      )
    if self.max_examples is not None and self.max_examples < self.min_examples:
      raise InputError(
        f'{argument("max_examples", self.max_examples)} is below {argument("min_examples", self.min_examples)}'
      )
    if self.new_clients >= self.num_clients:
      raise InputError(
        f'{argument("new_clients", self.new_clients)} of {argument("num_clients", self.num_clients)}: at least one client must take '
        f'part; give at most {self.num_clients - 1}'
      )
    if self.new_clients and self.relabels_copies:
      raise InputError(
        f'{argument("new_clients", self.new_clients)} does not apply with {argument("group_rows", "all")} and '
        f'{argument("partition", self.partition)}: clients of other groups train on their rows, most of them with the same label'
      )
    if self.noise_clients > 0.0 and not dataset.takes_noise:
      noisy = ' or '.join(name for name, each in datasets.registered().items() if each.takes_noise)
      raise InputError(
        f'{argument("noise_clients", self.noise_clients)} does not apply to {argument("dataset", self.dataset)}; it applies to dataset {noisy}'
      )
    for name, share in (('noise', self.noise_clients), ('malicious', self.malicious_clients)):
      if share > 0.0 and self.num_clients < 2:
        raise InputError(
          f'{argument(f"{name}_clients", share)} needs at least 2 clients, found {argument("num_clients", self.num_clients)}'
        )
    self._check_malicious()
    if self.plants_groups and self.num_groups > self.num_clients:
      raise InputError(
        f'{argument("num_groups", self.num_groups)} is more than the {self.num_clients} clients; every group needs one'
      )
    if self.partition == 'mixture' and self.num_groups < 2:
      raise InputError(f'{argument("num_groups", self.num_groups)}: a mixture needs at least 2 groups')
    self._check_angles()
    if self.mixture_pattern != 'fixed' and self.mixture_share != type(self).mixture_share:
      raise InputError(
        f'{argument("mixture_share", self.mixture_share)} does not apply to '
        f'{argument("mixture_pattern", self.mixture_pattern)}; it applies to mixture_pattern fixed'
      )

  def _check_malicious(self) -> None:
    if self.malicious_clients == 0.0:
      for name in ('attack', 'attack_scale'):
        if getattr(self, name) != getattr(type(self), name):
          raise InputError(
            f'{argument(name, getattr(self, name))} needs malicious clients: give {argument("malicious_clients")} too'
          )
    elif self.update_scale == 1.0 and self.attack == 'scaled':
      raise InputError(
        f'{argument("attack_scale", 1.0)}: scaled by 1 clients are honest; give another number'
      )

  def _check_angles(self) -> None:
    if self.angles is None:
      return
    if self.partition == 'mixture' and self.mixture_kind != 'rotated':
      raise InputError(
        f'{argument("angles")} does not apply to {argument("mixture_kind", self.mixture_kind)}; it applies to mixture_kind rotated'
      )
    _ = self.degrees
