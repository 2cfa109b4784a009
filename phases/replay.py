"""Answers clustering questions from saved signatures: every metric, linkage, threshold and K. Trains nothing.

  python -m phases.replay --output_dir=runs/demo
  python -m phases.replay --output_dir=runs/demo --metrics=l2,cosine --linkages=ward,average --num_thresholds=40
  python -m phases.replay --signatures_file=X.npy --output_dir=D

The first two ask a run whose Phase 1 is done; the third needs no run, and asks no method that reads clients' training
rows. Each distance matrix and each linkage is computed once, whatever is asked. Writes replay.csv (a row a clustering, with the --clustering=... that trains
it), replay.json, replay.svg and replay.png in --output_dir, in the place of those of an earlier call, and prints which thresholds give the planted groups
exactly. replay.json has what is printed, and the command.
"""

import sys
from pathlib import Path
from typing import Any

from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.clustering import methods
from tff_cluster.experiment import run_claim
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import output_folders
from tff_cluster.studies.replay import study


def define_flags() -> None:
  flags.define('vectors', 'replay', 'output_dir')


def main() -> None:
  options = parse.section_from_flags(flags.ReplayOptions)
  vectors = parse.section_from_flags(flags.VectorsOptions)
  folder = parse.output_dir_from_flags()
  questions = study.read_questions(options)
  if vectors.signatures_file is not None:
    signatures = of_file(folder, vectors.signatures_file, options)
    seed, truths, rows = vectors.seed, dict[str, Any](), None
  else:
    signatures, seed, truths = of_run(folder, options)
    rows = study.run_rows(RunFolder(folder))
  signatures, distortion = study.sketched(signatures, options.sketch_dimension, seed)
  replayed = study.replay(signatures, questions, seed, truths, options.signature, rows, options.silhouettes)
  # Imported late: figures take longer to load than wrong flags may take to be told.
  from tff_cluster.studies.replay import tables as report

  written = report.write_replay(replayed, parse.command('replay', sys.argv[1:]), folder)
  unasked = [name for name, method in methods.METHODS.items() if method.reads_rows and rows is None]
  if unasked:
    print(f'not asked, because the training rows of the clients are not at hand: {", ".join(unasked)}')
  if distortion is not None:
    print(report.distortion_line(options.sketch_dimension, distortion))
  print(report.replay_table(replayed))
  print(*written, sep='\n')


def of_file(folder: Path, signatures_file: str, options: flags.ReplayOptions) -> Any:
  """Returns the signatures of a file, and makes the folder this process's."""
  if 'signature' in flags.given(flags.ReplayOptions):
    raise InputError('--signature does not apply to --signatures_file; it applies to the signatures of a run')
  run_claim.check_no_run(folder, 'signatures_file')
  # Imported late: it takes longer to load than wrong flags may take to be told.
  from tff_cluster.clustering import signatures as signatures_lib

  signatures = signatures_lib.read_signatures(signatures_file, options.memory_mb * 2**20)
  output_folders.lock(folder)
  return signatures


def of_run(path: Path, options: flags.ReplayOptions) -> tuple[Any, int, dict]:
  """Returns the signatures, the seed and the planted memberships of a run whose Phase 1 is done."""
  if 'seed' in flags.given(flags.VectorsOptions):
    raise InputError('--seed applies to --signatures_file only; a run has its own seed')
  folder = RunFolder(run_claim.resume_output_dir(path))
  experiment = folder.load_config()
  from tff_cluster.phases import client_signatures

  signatures = client_signatures.load(folder, options.signature, options.memory_mb * 2**20)
  if note := study.run_note(folder, options.signature, signatures.client_ids):
    print(note)
  return signatures, experiment.training.seed, study.run_truths(folder, signatures.client_ids)


if __name__ == '__main__':
  program.run(main, define_flags)
