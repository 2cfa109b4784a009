"""Groups clients by their signatures: of a finished Phase 1, or of a file of vectors.

  python -m phases.clustering --output_dir=runs/demo
  python -m phases.clustering --output_dir=runs/demo --method=kmeans --num_clusters=3 --name=three
  python -m phases.clustering --output_dir=runs/demo --clustering=sklearn.cluster:HDBSCAN,min_cluster_size=3
  python -m phases.clustering --signatures_file=X.npz --method=dynamic_distance --output_dir=D

The first makes the clusterings that the run was started with; the second and the third add one to the run. The last
needs no run: it writes D/clusters.json, which may not be there with other content. A clustering by import path runs the module that it names. Nothing is trained,
but for distance_threshold=validation, which compares several cuts after a round or more each, and for methods of a run that
train and cluster in turn: bipartition (CFL), and those that alternate (ifca, fedsoft and others).
"""

from pathlib import Path

from tff_cluster.base import words
from tff_cluster.base.errors import InputError
from tff_cluster.cli import flags, parse, program
from tff_cluster.clustering import methods
from tff_cluster.experiment import config, phase_files, run_claim, users_code
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.storage import files, output_files, output_folders

# What the installed program calls it.
COMMAND = 'cluster'


def define_flags() -> None:
  flags.define('vectors', 'clustering', 'clusterings', 'output_dir')


def main() -> None:
  added = parse.added_clustering()
  vectors = parse.section_from_flags(flags.VectorsOptions)
  folder = parse.output_dir_from_flags()
  if vectors.signatures_file is not None:
    cluster_file(folder, added or parse.clustering_from_flags(), vectors.signatures_file, vectors.seed)
  elif 'seed' in flags.given(flags.VectorsOptions):
    raise InputError('--seed applies to --signatures_file only; a run has its own seed')
  else:
    cluster_run(folder, added)


def cluster_file(folder: Path, clustering: config.ClusteringConfig, signatures_file: str, seed: int) -> None:
  """Clusters the vectors of a file and writes folder/clusters.json."""
  rule = clustering.rule
  named = {'name': clustering.name} if clustering.name is not None else {}
  for name in named | flags.given(flags.ClusteringFlags) | dict(clustering.given):
    if name == 'name' or name in of_runs(clustering):
      raise InputError(f'--{name} does not apply to --signatures_file; it applies to the clustering of a run')
  if 'seed' in flags.given(flags.VectorsOptions) and not rule.draws:
    drawing = [name for name, method in methods.METHODS.items() if method.draws]
    raise InputError(
      f'--seed does not apply to --method={clustering.method}; it applies to method {" or ".join(drawing)}'
    )
  if reason := rule.needs_run(clustering.options):
    raise InputError(reason)
  run_claim.check_no_run(folder, 'signatures_file')
  # Imported late: scikit-learn takes longer to load than wrong flags may take to be told.
  from tff_cluster.clustering import signatures as signatures_lib
  from tff_cluster.phases import failures

  signatures = signatures_lib.read_signatures(signatures_file)
  rule.check_experiment(clustering.options, signatures.num_clients, 1.0)
  output_folders.lock(folder)
  failed: dict[str, Exception] = {}
  with failures.apart(failed, clustering.label):
    outcome = methods.cluster(clustering, signatures, seed)
  for error in failed.values():
    # What a method of a user raises is told as in a run; of others only what was asked can be wrong.
    if isinstance(error, InputError):
      raise error
    raise InputError(failures.cause(clustering.label, error)) from error
  as_given = int if signatures.id_kind == 'integer' else str
  parameters = clustering.parameters | ({'seed': seed} if rule.draws else {})
  document = {
    'clusters': [[as_given(i) for i in members] for members in outcome.assignment.clusters],
    'num_clusters': outcome.assignment.num_clusters,
    'method': clustering.method,
    'parameters': {name: value for name, value in parameters.items() if name not in of_runs(clustering)},
    'threshold': outcome.threshold,
    **outcome.figures,
    'notes': list(outcome.notes),
    'client_ids': [as_given(i) for i in outcome.assignment.client_ids],
  }
  output_files.check(folder, ['clusters.json'], lambda there: there == files.json_text(document))
  files.save_json(folder / 'clusters.json', document, seal=False)
  clusters = words.plural(outcome.assignment.num_clusters, 'cluster')
  clients = words.plural(signatures.num_clients, 'client')
  print(f'{clustering.label}: {clusters}, {clients}')
  print(folder / 'clusters.json')


def of_runs(clustering: config.ClusteringConfig) -> set[str]:
  """Returns the options of the clustering of a run that a file of vectors has no use for."""
  return {name for name, field in clustering.rule.fields().items() if field.metadata.get('of_runs')}


def cluster_run(path: Path, added: config.ClusteringConfig | None) -> None:
  """Makes the clusterings of a run whose Phase 1 is done, or adds one to them."""
  folder = RunFolder(run_claim.resume_output_dir(path))
  experiment = folder.load_config()
  folder.load_finished(folder.phase1, phase_files.Phase1)
  asked = experiment.clusterings if added is None else (added,)
  users_code.check_clusterings(folder, asked)
  if added is not None and added not in experiment.clusterings:
    # One of its name that was not made, for instance because it cannot be, makes way.
    unmade = [c.label for c in experiment.clusterings if not folder.clusters(c.label).exists()]
    experiment = experiment.without({added.label} & set(unmade)).with_clusterings((added,))
    # What lies there is of a call that was stopped before the run knew of it, perhaps with other flags.
    folder.forget(added.label)
  from tff_cluster.cli import progress
  from tff_cluster.phases import clustering as clustering_lib
  from tff_cluster.phases import failures, session

  clustering_lib.check_signatures(folder, asked)
  failed: dict[str, Exception] = {}
  if any(clustering_lib.needs_training(folder, clustering) for clustering in asked):
    # All of them, in their order: what trains may start from the clusters of one that does not.
    with session.opened(folder, experiment, progress.Progress()) as opened:
      failed = clustering_lib.make_clusterings(opened, asked)
  for clustering in asked:
    if clustering.label not in failed:
      with failures.apart(failed, clustering.label):
        clustering_lib.run_clustering(folder, clustering, experiment.training.seed)
  failures.drop(folder, experiment, failed)
  done = [clustering.label for clustering in asked if clustering.label not in failed]
  if failed:
    others = [
      c.label for c in experiment.clusterings if c.label not in failed and folder.clusters(c.label).exists()
    ]
    raise failures.ClusteringsFailed(failed, others)
  files.save_json(folder.config, experiment.to_json())
  print(f'clustered {", ".join(done)}')
  print(folder.clusters(asked[-1].label))


if __name__ == '__main__':
  program.run(main, define_flags)
