"""What is asked of a run whose clients make their signatures private or small: which values, and which clusterings."""

import dataclasses
from collections.abc import Callable
from typing import Any

from tff_cluster.base import fields
from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.studies.disturbance.document import LeftOut

# Far above what leaves anything of an update; times the largest clip norm it is still a number of float32. Below the least no
# noise is told apart from none, and the accountant of its privacy fails.
_LEAST_NOISE, _LARGEST_NOISE = 1e-6, 1_000_000


@dataclasses.dataclass(frozen=True)
class Questions:
  """What is asked.

  Attributes:
    noise_multipliers: Ascending; 0 clips only.
    bits: Bits a number, descending.
    repeats: Draws of noise and of random rounding.
    clip_norm: What updates are clipped to; None is the median of the clients' norms.
  """

  noise_multipliers: tuple[float, ...]
  bits: tuple[int, ...]
  repeats: int
  clip_norm: float | None


def read_questions(given: Any) -> Questions:
  """Reads the lists of cli.flags.DisturbOptions.

  Raises:
    InputError: naming the list with an unknown or repeated entry, what has no effect, or where nothing is asked.
  """
  multipliers = _numbers(
    'noise_multipliers',
    given.noise_multipliers,
    fields.number,
    f'0 or a number from {_LEAST_NOISE:f} to {_LARGEST_NOISE:,}',
    lambda value: value == 0.0 or _LEAST_NOISE <= value <= _LARGEST_NOISE,
  )
  bits = _numbers('bits', given.bits, int, 'a whole number from 1 to 16', lambda value: 1 <= value <= 16)
  if not multipliers and not bits:
    raise InputError(
      f'{argument("noise_multipliers", "none")} and {argument("bits", "none")} ask nothing; give at least one of the two'
    )
  if not multipliers and given.clip_norm is not None:
    raise InputError(
      f'{argument("clip_norm", given.clip_norm)} has no effect with {argument("noise_multipliers", "none")}'
    )
  if not bits and not any(multipliers) and given.repeats != type(given).repeats:
    raise InputError(
      f'{argument("repeats", given.repeats)} has no effect where nothing is drawn: no noise and no random rounding'
    )
  return Questions(
    tuple(sorted(multipliers)), tuple(sorted(bits, reverse=True)), given.repeats, given.clip_norm
  )


def askable(
  folder: RunFolder, config: config_lib.ExperimentConfig
) -> tuple[list[config_lib.ClusteringConfig], list[LeftOut]]:
  """Returns the run's clusterings that signatures alone decide, and the others.

  A threshold that was chosen on validation rows stays the one that was chosen.

  Raises:
    InputError: if there is none, or if the run has no planted groups or has not chosen its thresholds.
  """
  from tff_cluster.phases import threshold_choice
  from tff_cluster.studies.replay import study

  if not study.run_truths(folder):
    raise InputError(
      f'{argument("output_dir", folder.root)}: this run has no planted groups of some clients each, so none can be lost; use a {argument("partition")} that plants some'
    )
  asked, left_out = [], []
  for clustering in config.clusterings:
    if reason := _reason_to_leave_out(clustering):
      left_out.append(LeftOut(clustering.label, reason))
    else:
      asked.append(threshold_choice.chosen(folder, clustering))
  if not asked:
    raise InputError(
      f'{argument("output_dir", folder.root)}: none of its clusterings can be made from signatures; add one with '
      'python -m phases.clustering'
    )
  return asked, left_out


def _reason_to_leave_out(clustering: config_lib.ClusteringConfig) -> str:
  if clustering.rule.trains:
    return 'it trains while it clusters, so saved signatures do not answer for it'
  if clustering.rule.reads_rows:
    return 'it clusters clients by their training rows, and no signature of them is sent'
  return 'it is the planted groups themselves' if clustering.rule.oracle else ''


def _numbers(
  name: str, text: str, kind: Callable[[str], Any], wanted: str, fits: Callable[[Any], bool]
) -> list[Any]:
  """Returns the entries of a list of numbers, or [] for 'none'."""
  found: list[Any] = []
  for entry in () if text == 'none' else map(str.strip, text.split(',')):
    try:
      value = kind(entry)
      fine = entry.isascii() and '_' not in entry and fits(value)
    except ValueError:
      fine = False
    if not fine:
      raise InputError(f'{argument(name, text)}: {entry!r} is not {wanted}')
    if value in found:
      raise InputError(f'{argument(name, text)}: {entry} is given twice')
    found.append(value)
  return found
