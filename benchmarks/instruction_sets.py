"""What another type of processor changes, for the demo's page of docs/results: python -m benchmarks.instruction_sets

The demo with three models, beside itself with a worker whose kernels (oneDNN) are held to older instruction sets by ONEDNN_MAX_CPU_ISA: a
stand-in for other processors. What NumPy computes is not held.

Writes two tables and their provenance into --kept_dir:

  table.csv      a line for each model and instruction set: whether the digest is the same, the largest difference of a client's weights
                 after 1, 5 and 20 rounds of Phase 1, and how many clients have another accuracy after the last of them
  clusters.csv   for each clustering beside that: the Omega index between its clusters and those without the limit, and both accuracies

The last line of the output is the first table as JSON.
"""

import argparse
import dataclasses
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import tff_cluster
from benchmarks import common
from tff_cluster.base import environment
from tff_cluster.clustering import recovery
from tff_cluster.engine import worker
from tff_cluster.experiment import config_file
from tff_cluster.experiment.results import own
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import client_signatures
from tff_cluster.storage.tables import csv_lines
from tff_cluster.studies.kept import results
from tff_cluster.studies.loaded_run import LoadedRun

_KEPT = common.ROOT / 'docs/results/data'
_ROUNDS = (1, 5, 20)
_PHASE2_ROUNDS = 1
_MODELS = ('logistic', '2nn', 'mnist_cnn')
_ALL, _HELD = 'all', ('AVX2', 'SSE41')


@common.program
def main() -> object:
  parser = common.parser(__doc__)
  parser.add_argument(
    '--kept_dir',
    type=pathlib.Path,
    default=_KEPT / 'instruction_sets',
    help='where the tables are written; default: %(default)s',
  )
  parser.add_argument('--machine', default='', help='the machine in words, for provenance.json')
  parser.add_argument('--model', choices=_MODELS, help=argparse.SUPPRESS)
  parser.add_argument('--held', help=argparse.SUPPRESS)
  parser.add_argument('--runs_dir', type=pathlib.Path, help=argparse.SUPPRESS)
  flags = parser.parse_args()
  if not flags.held:
    return _measure(flags.kept_dir, flags.machine)
  _run(flags.runs_dir, flags.model, flags.held)
  return None


def _run(folder: pathlib.Path, model: str, held: str) -> None:
  """Runs the demo with a model, once with each number of rounds of Phase 1, into folders below `folder`."""
  if held != _ALL:
    worker._ENVIRONMENT['ONEDNN_MAX_CPU_ISA'] = held
  demo = config_file.read_config(_KEPT / 'demo/config.json')
  for rounds in _ROUNDS:
    training = dataclasses.replace(
      demo.training, model=model, phase1_rounds=rounds, phase2_rounds=_PHASE2_ROUNDS
    )
    asked = demo.clusterings if rounds == _ROUNDS[-1] else demo.clusterings[:1]
    config = dataclasses.replace(demo, training=training, clusterings=asked)
    tff_cluster.run_experiment(config, folder / str(rounds), export_models=False)


def _measure(kept_dir: pathlib.Path, machine: str) -> list[dict[str, Any]]:
  began = time.monotonic()
  table, clusters = [], []
  for model in _MODELS:
    with tempfile.TemporaryDirectory() as name:
      folders = {held: pathlib.Path(name) / held for held in (_ALL, *_HELD)}
      for held, folder in folders.items():
        common.of_process('benchmarks.instruction_sets', {'runs_dir': folder, 'model': model, 'held': held})
      for held in _HELD:
        about = {'model': model, 'held to': held}
        table.append(about | _of_phase1(folders[_ALL], folders[held]))
        clusters += [about | each for each in _of_clusterings(_last(folders[_ALL]), _last(folders[held]))]
        print(table[-1], flush=True)
  provenance = results.Provenance(
    title='The demo with kernels held to older instruction sets',
    commands=['python -m benchmarks.instruction_sets'],
    published={},
    scale='',
    setting=f'the demo with each of {", ".join(_MODELS)}, {_ROUNDS[-1]} rounds of Phase 1 and {_PHASE2_ROUNDS} of Phase 2',
    scaled_down='',
    seeds=[0],
    data_seeds=[0],
    engine=environment.ENGINE,
    origin='written by the benchmark',
    commit=environment.describe_environment().commit,
    machine=machine,
    date=time.strftime('%Y-%m-%d', time.gmtime()),
    minutes=round((time.monotonic() - began) / 60, 1),
    schema=None,
    digests={},
    configurations=[],
  )
  texts = {'table': csv_lines(table), 'clusters': csv_lines(clusters)}
  results.write(kept_dir, provenance, texts, [])
  return table


def _of_phase1(one: pathlib.Path, other: pathlib.Path) -> dict[str, Any]:
  """Returns what differs after Phase 1 between runs that differ in nothing but the instruction set."""
  apart = {}
  for rounds in _ROUNDS:
    weights, others = (
      client_signatures.load(RunFolder(folder / str(rounds)), 'weights').vectors for folder in (one, other)
    )
    largest = np.abs(weights - others).max()
    apart[f'difference after {rounds}'] = f'{largest:.1e}'
  apart['in % of the largest weight'] = f'{100 * largest / np.abs(weights).max():.1e}'
  accuracies, held = (_last(folder).results.phase1.evaluation.client_accuracy for folder in (one, other))
  return {
    'digest': 'same' if _last(one).results.digest == _last(other).results.digest else 'other',
    **apart,
    'clients with another accuracy': sum(a != b for a, b in zip(accuracies, held, strict=True)),
  }


def _of_clusterings(one: LoadedRun, other: LoadedRun) -> Iterator[dict[str, Any]]:
  """Yields for each clustering how far its clusters and accuracies differ."""
  for each, others in zip(one.results.clusterings, other.results.clusterings, strict=True):
    memberships = one.finished.membership(each), other.finished.membership(others)
    same = {tuple(row) for row in memberships[0]} == {tuple(row) for row in memberships[1]}
    yield {
      'clustering': each.label,
      'clusters': 'same' if same else 'other',
      'Omega between them': f'{recovery.omega_index(*memberships):.4f}',
      'accuracy [%]': f'{100 * own(each).clients.mean_client_accuracy:.4f}',
      'accuracy, held [%]': f'{100 * own(others).clients.mean_client_accuracy:.4f}',
    }


def _last(folder: pathlib.Path) -> LoadedRun:
  return tff_cluster.load(folder / str(_ROUNDS[-1]))


if __name__ == '__main__':
  sys.exit(main())
