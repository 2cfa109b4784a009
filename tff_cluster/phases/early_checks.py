"""What is known before anything is trained, or TensorFlow imported: whether model and data are there, and whether they fit."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tff_cluster.base import environment
from tff_cluster.base.errors import InputError, argument
from tff_cluster.data import datasets, saved, sources
from tff_cluster.data import population as population_lib
from tff_cluster.data.data_config import DataConfig
from tff_cluster.data.dataset import Outline
from tff_cluster.data.partitioners.rows import MIN_ROWS
from tff_cluster.engine import free_memory
from tff_cluster.engine import machine as machine_lib
from tff_cluster.experiment import memory_need
from tff_cluster.experiment.config import MODELS, ExperimentConfig
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.models import builtin, lookup


def check(config: ExperimentConfig, machine: machine_lib.Machine, folders: Sequence[Path]) -> str | None:
  """Refuses what cannot run.

  Args:
    config: The experiment.
    machine: The workers.
    folders: Those of the runs that are to be made of it. Where all of them have their clients, data that was loaded from
      elsewhere is not asked for again.

  Returns:
    A line on the memory that it needs; None where all clients are saved already, or the data has to be downloaded to know it.

  Raises:
    InputError: if the model or the data is wrong, there are fewer rows than clients need, or more memory is needed than there is.
    EnvironmentFault: if the data is neither there nor can be downloaded.
  """
  lookup.check(config.training.model)
  _check_kind_of_rows(config)
  if config.data.data_file is None and all(RunFolder(folder).population.exists() for folder in folders):
    return None
  outline = check_data(config)
  if outline is None:
    return None
  outline = dataclasses.replace(outline, rows=outline.rows * config.data.row_copies)
  if outline.rows < MIN_ROWS * config.data.num_clients:
    raise InputError(
      f'{argument("num_clients", config.data.num_clients)}: the data have {outline.rows:,} rows, test rows among them, and every '
      f'client needs {MIN_ROWS} of its own to train and validate on; use fewer clients'
    )
  size, parameters, activations = _size(config, outline, machine)
  available = free_memory.available()
  memory_need.check(size.needed(parameters or 0, activations), available)
  return size.words(available, parameters, activations)


def outline(config: DataConfig, folder: RunFolder) -> Outline | None:
  """Returns what is known of the rows of a run's clients: of those that are saved, or else of all that they are drawn from.

  None where the data has to be downloaded to know it. Raises as `check` does.
  """
  if folder.population.exists():
    return _outline_of(saved.load_population(folder.population))
  found = sources.check(config)
  return None if found is None else dataclasses.replace(found, rows=found.rows * config.row_copies)


def needed(config: ExperimentConfig, rows: Outline, machine: machine_lib.Machine) -> int:
  """Returns the bytes of memory that a run on such rows needs, as far as that is known before a model of a user's is built."""
  size, parameters, activations = _size(config, rows, machine)
  return size.needed(parameters or 0, activations)


def _size(
  config: ExperimentConfig, rows: Outline, machine: machine_lib.Machine
) -> tuple[memory_need.Size, int | None, int]:
  """Returns what the memory of a run depends on, with the parameters (None: not known) and activations of its model."""
  parallel = machine.clients_in_parallel or environment.available_cores()
  size = memory_need.of_config(config, rows.rows, rows.row_bytes, rows.num_classes, parallel)
  if config.training.model not in MODELS:
    return size, None, 0
  return size, *builtin.size(config.training.model, rows.input_shape, rows.num_classes)


def _check_kind_of_rows(config: ExperimentConfig) -> None:
  """Raises InputError where a built-in model takes codes of characters for numbers, or numbers for codes."""
  name, dataset = config.training.model, datasets.find(config.data.dataset)
  if name not in MODELS or dataset.is_text == builtin.reads_text(name):
    return
  allowed = ', '.join(each for each in MODELS if builtin.reads_text(each) == dataset.is_text)
  told = 'codes of characters' if dataset.is_text else 'numbers'
  raise InputError(
    f'{argument("model", name)} does not fit {argument("dataset", config.data.dataset)}, whose rows are {told}; allowed are '
    f'{allowed}, or package.module:function'
  )


def check_memory(
  config: ExperimentConfig,
  population: population_lib.Population,
  machine: machine_lib.Machine,
  parameters: int,
) -> None:
  """Refuses what does not fit once clients and model are there, whoever made the model. Raises InputError."""
  size, _, activations = _size(config, _outline_of(population), machine)
  available = free_memory.available()
  # What this process has taken by now is part of what is needed.
  memory_need.check(
    size.needed(parameters, activations), None if available is None else available + free_memory.resident()
  )


def _outline_of(population: population_lib.Population) -> Outline:
  splits = (population.train, population.validation, population.test)
  rows, one = sum(int(split.rows_added.sum()) for split in splits), population.global_test_x[:1]
  return Outline(rows + len(population.global_test_y), one.shape[1:], one.nbytes, population.num_classes)


def check_oracles(config: ExperimentConfig, population: population_lib.Population) -> None:
  """Raises InputError if an oracle (clustering/methods/planted.py) asks for planted groups that these clients do not have."""
  from tff_cluster.clustering import methods, signatures

  for clustering in config.clusterings:
    if clustering.rule.oracle:
      nobody = signatures.Signatures(np.zeros((population.num_clients, 1)), population.client_ids)
      methods.cluster(clustering, nobody, 0, population.truths)


def check_data(config: ExperimentConfig) -> Outline | None:
  """Returns what is known of the data, None before it is downloaded, and warns of labels that no row has. Raises as `check` does."""
  outline = sources.check(config.data)
  if outline is not None and outline.missing_classes:
    logging.warning(
      'data_file=%s: %d of %d classes have no rows (labels go up to %d); every model has outputs for them all the same',
      config.data.data_file,
      outline.missing_classes,
      outline.num_classes,
      outline.num_classes - 1,
    )
  return outline
