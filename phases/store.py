"""Lists what a store holds, and prunes it.

  python -m phases.store --store_dir=runs/store
  python -m phases.store --store_dir=runs/store --prune_unused_days=30

An artifact is a trajectory of federated averaging, the rounds of a method that alternates, the signatures of all clients, the start
of a cluster, the similarities of its clients' updates, what models score on a global test set or on clients' rows, or that a model
was compared with Keras, named by a digest of what determines it. What is
pruned is made again when it is asked for.
"""

import time
from pathlib import Path

from tff_cluster.base import words
from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.storage import artifacts as artifacts_lib

SECONDS_A_DAY = 86400.0


def define_flags() -> None:
  flags.define('store')


def main() -> None:
  options = parse.section_from_flags(flags.StoreOptions)
  root = Path(options.store_dir)
  example = 'give the store of a run, for instance --store_dir=runs/demo/store'
  if not options.store_dir:
    raise InputError(f'--store_dir is required; {example}')
  if not root.is_dir():
    raise InputError(f'--store_dir={options.store_dir}: no such folder; {example}')
  kept = artifacts_lib.Store(root)
  if kept.is_other():
    raise InputError(f'--store_dir={options.store_dir} is no store: it has files, and no artifact; {example}')
  artifacts = kept.artifacts()
  if options.prune_unused_days is not None:
    kept.finish_removals()
    limit = time.time() - options.prune_unused_days * SECONDS_A_DAY
    doomed = [artifact for artifact in artifacts if artifact.last_used < limit]
    removed = [artifact for artifact in doomed if kept.remove(artifact)]
    artifacts = kept.artifacts()
    print(
      f'removed {len(removed)} artifacts, {words.size(sum(a.size for a in removed))}; {len(doomed) - len(removed)} in use, or '
      'with files of others in them'
    )
  for artifact in artifacts:
    used = time.strftime('%Y-%m-%d', time.localtime(artifact.last_used))
    print(f'{words.size(artifact.size):>9}  used {used}  {artifact.folder.name}  {artifact.content}')
  print(f'{len(artifacts)} artifacts, {words.size(sum(a.size for a in artifacts))} in {root}')


if __name__ == '__main__':
  program.run(main, define_flags)
