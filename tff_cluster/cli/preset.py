"""Reads a preset (a flagfile in flags/) as an experiment, with some of its fields changed."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tff_cluster.base import fields as fields_lib
from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse
from tff_cluster.experiment import config

FOLDER = Path(__file__).parents[2] / 'flags'
_SECTIONS = ('data', 'training', 'evaluation')


def read_preset(
  name: str, changes: Mapping[str, Any], clusterings: tuple[config.ClusteringConfig, ...]
) -> config.ExperimentConfig:
  """Returns the experiment of a preset with other clusterings.

  Args:
    name: The stem of a file in flags/.
    changes: Fields that take the place of the preset's, by name.
    clusterings: What is clustered.

  Raises:
    InputError: if there is no such preset, or the changed experiment is not a valid one.
  """
  path = FOLDER / f'{name}.flags'
  try:
    lines = path.read_text().splitlines()
  except FileNotFoundError:
    known = ', '.join(sorted(found.stem for found in FOLDER.glob('*.flags')))
    raise InputError(f'no preset {name!r} in {FOLDER}; there are {known or "none"}') from None
  given = dict(line.removeprefix('--').split('=', 1) for line in lines if line.startswith('--'))
  sections: dict[str, Any] = {}
  for section in _SECTIONS:
    kind = flags.SECTIONS[section]
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values = {n: fields_lib.value_from_text(fields[n], text) for n, text in given.items() if n in fields}
    sections[section] = parse.make_section(kind, values | {n: v for n, v in changes.items() if n in fields})
  return config.ExperimentConfig(**sections, clusterings=clusterings).validated()
