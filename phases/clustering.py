"""Groups clients by their signatures: of a finished Phase 1, or of a file of vectors.

  python -m phases.clustering --output_dir=runs/demo
  python -m phases.clustering --output_dir=runs/demo --method=kmeans --num_clusters=3 --name=three
  python -m phases.clustering --signatures_file=X.npz --method=dynamic_distance --output_dir=D

The first makes the clusterings that the run was started with; the second adds one to the run. The third
needs no run: it writes D/clusters.json. Nothing is trained, but for distance_threshold=validation, which compares
several cuts after a round each, and for a run's method=bipartition (CFL), which trains and splits in turn.
"""

from pathlib import Path

from tff_cluster import config, options, store
from tff_cluster.cli import flags, output, parse, program
from tff_cluster.errors import InputError
from tff_cluster.run_folder import RunFolder

# Options of the clustering of a run that a file of vectors has no use for.
OF_RUNS = ('name', 'signature', 'stationary_norm', 'stopping_norm', 'rounds_before_split')


def define_flags() -> None:
  flags.define('vectors', 'clustering', 'output_dir')


def main() -> None:
  clustering = parse.section_from_flags(config.ClusteringConfig)
  vectors = parse.section_from_flags(flags.VectorsOptions)
  folder = parse.output_dir_from_flags()
  if vectors.signatures_file is not None:
    cluster_file(folder, clustering, vectors.signatures_file, vectors.seed)
  elif 'seed' in flags.given(flags.VectorsOptions):
    raise InputError('--seed applies to --signatures_file only; a run has its own seed')
  else:
    cluster_run(folder, clustering if flags.given(config.ClusteringConfig) else None)


def cluster_file(folder: Path, clustering: config.ClusteringConfig, signatures_file: str, seed: int) -> None:
  """Clusters the vectors of a file and writes folder/clusters.json."""
  for name in OF_RUNS:
    if name in flags.given(config.ClusteringConfig):
      raise InputError(f'--{name} does not apply to --signatures_file; it applies to the clustering of a run')
  draws = clustering.method in config.COUNTED
  if 'seed' in flags.given(flags.VectorsOptions) and not draws:
    raise InputError(
      f'--seed does not apply to --method={clustering.method}; it applies to method {" or ".join(config.COUNTED)}'
    )
  if clustering.distance_threshold == config.VALIDATION:
    raise InputError(config.VALIDATION_NEEDS_A_RUN)
  if clustering.method == 'planted':
    raise InputError(config.PLANTED_NEEDS_A_RUN)
  if RunFolder(folder).config.exists():
    raise InputError(f'--output_dir={folder} holds a run; choose another folder for --signatures_file')
  # Imported late: scikit-learn takes longer to load than wrong flags may take to be told.
  from tff_cluster.clustering import signatures as signatures_lib

  signatures = signatures_lib.read_signatures(signatures_file)
  output.lock_output_dir(folder)
  from tff_cluster.clustering import methods

  outcome = methods.cluster(clustering, signatures, seed)
  as_given = int if signatures.id_kind == 'integer' else str
  parameters = options.applicable(clustering) | ({'seed': seed} if draws else {})
  document = {
    'clusters': [[as_given(i) for i in members] for members in outcome.assignment.clusters],
    'num_clusters': outcome.assignment.num_clusters,
    'method': clustering.method,
    'parameters': {name: value for name, value in parameters.items() if name not in OF_RUNS},
    'threshold': outcome.threshold,
    **outcome.figures,
    'notes': list(outcome.notes),
    'client_ids': [as_given(i) for i in outcome.assignment.client_ids],
  }
  store.save_json(folder / 'clusters.json', document, seal=False)
  clusters = f'{document["num_clusters"]} cluster{"" if document["num_clusters"] == 1 else "s"}'
  clients = f'{signatures.num_clients} client{"" if signatures.num_clients == 1 else "s"}'
  print(f'{clustering.method}: {clusters}, {clients}')
  print(folder / 'clusters.json')


def cluster_run(path: Path, added: config.ClusteringConfig | None) -> None:
  """Makes the clusterings of a run whose Phase 1 is done, or adds one to them."""
  folder = RunFolder(output.resume_output_dir(path))
  experiment = folder.load_config()
  folder.load_finished(folder.phase1, 'phase1')
  asked = experiment.clusterings if added is None else (added,)
  if added is not None and added not in experiment.clusterings:
    # One of its name that was not made, for instance because it cannot be, makes way.
    unmade = [c.label for c in experiment.clusterings if not folder.clusters(c.label).exists()]
    experiment = experiment.without_clusterings({added.label} & set(unmade)).with_clusterings((added,))
    # What lies there is of a call that was stopped before the run knew of it, perhaps with other flags.
    folder.forget(added.label)
  from tff_cluster.algorithms import session, three_phase
  from tff_cluster.reporting import progress

  training = [c for c in asked if three_phase.needs_training(folder, c)]
  three_phase.check_signatures(folder, asked)
  failed: dict[str, Exception] = {}
  if training:
    with session.opened(folder, experiment, progress.Progress()) as opened:
      failed = three_phase.make_clusterings(opened, training)
  for clustering in asked:
    if clustering.label not in failed:
      with three_phase.apart(failed, clustering.label):
        three_phase.run_clustering(folder, clustering, experiment.training.seed)
  three_phase.drop(folder, experiment, failed)
  done = [clustering.label for clustering in asked if clustering.label not in failed]
  if failed:
    raise three_phase.ClusteringsFailed(failed, done)
  store.save_json(folder.config, experiment.to_json())
  print(f'clustered {", ".join(done)}')
  print(folder.clusters(asked[-1].label))


if __name__ == '__main__':
  program.run(main, define_flags)
