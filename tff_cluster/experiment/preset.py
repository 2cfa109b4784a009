"""Reads a preset (a flagfile in flags/) as an experiment, with some of its fields changed."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tff_cluster.base import fields as fields_lib
from tff_cluster.base.errors import InputError
from tff_cluster.experiment import config

# In a checkout a link to flags/, which is where presets are written; in an installed package the files themselves.
FOLDER = Path(__file__).parents[1] / 'presets'


def read_preset(
  name: str, changes: Mapping[str, Any], clusterings: tuple[config.ClusteringConfig, ...]
) -> config.ExperimentConfig:
  """Returns the experiment of a preset with other clusterings.

  Args:
    name: The stem of a file in flags/.
    changes: Fields that take the place of the preset's, by name.

  Raises:
    InputError: if there is no such preset, or the changed experiment is not a valid one.
  """
  path = FOLDER / f'{name}.flags'
  try:
    lines = path.read_text().splitlines()
  except FileNotFoundError:
    known = ', '.join(sorted(found.stem for found in FOLDER.glob('*.flags')))
    raise InputError(f'no preset {name!r} in {FOLDER}; there are {known or "none"}') from None
  given = [_name_and_text(line.strip()[2:]) for line in lines if line.strip().startswith('--')]
  sections: dict[str, Any] = {}
  for section, kind in config.SECTIONS.items():
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values = {n: _value(path, fields[n], text) for n, text in given if n in fields}
    values |= {
      n: tuple(text for name, text in given if name == n)
      for n in values
      if fields_lib.takes_several(fields[n])
    }
    sections[section] = fields_lib.make_section(
      kind, values | {n: v for n, v in changes.items() if n in fields}
    )
  return config.ExperimentConfig(**sections, clusterings=clusterings).validated()


def _name_and_text(flag: str) -> tuple[str, str]:
  """Returns the name and the value of NAME=VALUE; of a boolean flag, which may be given as NAME or noNAME."""
  name, equals, text = flag.partition('=')
  if equals:
    return name, text
  known = {field.name for kind in config.SECTIONS.values() for field in dataclasses.fields(kind)}
  turned_off = name.startswith('no') and name not in known
  return (name.removeprefix('no'), 'false') if turned_off else (name, 'true')


def _value(path: Path, field: dataclasses.Field, text: str) -> Any:
  try:
    return fields_lib.value_from_text(field, text)
  except ValueError as error:
    raise InputError(f'{path}: {field.name}={text}: {error}') from None
