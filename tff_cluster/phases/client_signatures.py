"""What Phase 1 keeps of every client for clustering, and what clusters start from.

A signature is a client's own weights of the last round ('weights'), or the update that it would send in the
round after it ('updates'). With `sketch_dimension` clients send a count sketch of it (clustering.sketch), so a
server that clusters 1,000 clients receives kilobytes a client instead of megabytes; the mean of a cluster's
device weights is then added up where the clients are, one model a cluster.

The signature of a client whose training went to NaN or infinity is a row that is not finite. It is kept like that, and the
client is left out of clusterings and of the means that clusters start from (clustering/diverged_clients.py).
"""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tff_cluster.aggregation import mixing
from tff_cluster.base import digests, seeding
from tff_cluster.base.cost import Cost
from tff_cluster.base.errors import InputError, argument
from tff_cluster.base.types import Json, Weights
from tff_cluster.clustering import assignment as assignment_lib
from tff_cluster.clustering import sketch as sketch_lib
from tff_cluster.experiment import config as config_lib
from tff_cluster.experiment import phase_files
from tff_cluster.experiment.measured import Sketch
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import live_experiment as live_experiment_lib
from tff_cluster.storage import artifacts, saved_rounds
from tff_cluster.storage import files as files_lib

if TYPE_CHECKING:
  from tff_cluster.clustering import signatures as signatures_lib
  from tff_cluster.federated import trainer as trainer_lib

_Loaded = TypeVar('_Loaded')
# Clients whose whole vectors are compared with their sketches; their number changes no result but the report's.
_SAMPLE = 8
# Of a number of a sketch.
_NUMBER_BYTES = np.dtype(np.float32).itemsize


def save(experiment: live_experiment_lib.Experiment, kind: str, weights: dict[int, Weights]) -> str:
  """Saves one vector a client and returns the name of the artifact.

  'weights' are the weights that the clients sent in the last round n, so that their n_k / n mean is the
  global model after it; 'updates' are what they would send in round n + 1, minus the global model.

  Args:
    experiment: The experiment.
    kind: 'weights' or 'updates'.
    weights: The global models after rounds n - 1 and n, by round number.
  """
  return _save(experiment, experiment.trainer, kind, weights, cost(experiment, kind).client_rounds)


def check(experiment: live_experiment_lib.Experiment, signatures: dict[str, str]) -> None:
  """Raises InputError if so many clients have diverged that fewer than two can be clustered.

  Args:
    experiment: The experiment.
    signatures: Names of the artifacts by kind.
  """
  from tff_cluster.clustering import diverged_clients

  for kind in signatures:
    _, usable = _rows(experiment.folder, experiment.config.training, signatures, kind)
    diverged_clients.check(usable, experiment.population.client_ids)


def of_new_clients(
  experiment: live_experiment_lib.Experiment, kind: str
) -> 'signatures_lib.Signatures | None':
  """Returns the signatures of the clients that took no part: one local update each, from the model that the others had.

  They are made as `save` makes those of the others, from the same global model with the visit orders of the same round,
  and so kept in the store. New clients whose training diverged are left out; None where it did on all of them.

  Args:
    experiment: The experiment; it has new clients.
    kind: 'weights' or 'updates'.
  """
  from tff_cluster.clustering import diverged_clients
  from tff_cluster.clustering import signatures as signatures_lib

  trainer = experiment.new_client_trainer
  client_ids = trainer.population.client_ids
  name = _save(experiment, trainer, kind, phase1_models(experiment), len(client_ids))
  vectors = files_lib.load_rows(experiment.store.root / name / 'vectors.npy')
  finite = diverged_clients.finite_rows(vectors)
  if finite.all():
    return signatures_lib.Signatures(vectors, client_ids)
  ids = tuple(client_ids[k] for k in np.flatnonzero(finite))
  return signatures_lib.Signatures(vectors[finite], ids) if ids else None


def _save(
  experiment: live_experiment_lib.Experiment,
  trainer: 'trainer_lib.Trainer',
  kind: str,
  weights: dict[int, Weights],
  client_rounds: int,
) -> str:
  """Saves the vectors of the trainer's clients, which cost so many client-rounds; see `save`.

  All of them are trained for it, those too whose training in the last round of Phase 1 it is once more: a round keeps no client's weights,
  which for a client are no other round.
  """
  training, population = experiment.config.training, trainer.population
  base_round = _base_round(training, kind)
  base, dimension = weights[base_round], training.sketch_dimension
  artifact = experiment.store.artifact(
    'signatures',
    _determinants(experiment, base, base_round + 1)
    | {'kind': kind, 'clients': list(population.client_digests)}
    | ({'sketch_dimension': dimension} if dimension else {}),
  )
  features = trainer.computations.model.num_parameters
  origin = experiment.flatten(base) if kind == 'weights' else np.zeros(features, np.float32)
  experiment.asked += client_rounds
  with experiment.store.working_on(artifact):
    path, sketched = artifact / 'vectors.npy', artifact / 'sketch.json'
    if not is_whole(path, artifact / 'clients.json'):
      experiment.trained += client_rounds
      files_lib.save_json(artifact / 'clients.json', list(population.client_ids))
      _save_vectors(experiment, trainer, path, kind, base, base_round + 1, origin)
    # Asked for by itself: a run can be killed between the two.
    if dimension and trainer is experiment.trainer and not sketched.exists():
      distortion = _distortion(experiment, base, base_round + 1, origin, files_lib.load_rows(path))
      files_lib.save_json(sketched, Sketch(dimension, distortion))
  return artifact.name


def _save_vectors(
  experiment: live_experiment_lib.Experiment,
  trainer: 'trainer_lib.Trainer',
  path: pathlib.Path,
  kind: str,
  base: Weights,
  number: int,
  origin: np.ndarray,
) -> None:
  """Saves origin plus what each client would send in a round from the base, or sketches of it."""
  training, clients = experiment.config.training, range(trainer.population.num_clients)
  features, dimension = len(origin), training.sketch_dimension
  whose = "clients'" if trainer is experiment.trainer else "new clients'"
  with experiment.progress.stage(f'{whose} {kind}', len(clients)):

    def fill(rows: np.ndarray) -> None:
      start = sketch_lib.sketch(origin[None], dimension, training.seed)[0] if dimension else origin

      def into(position: int, sent: np.ndarray) -> None:
        with np.errstate(over='ignore'):  # What overflows is left out later, and told then.
          rows[position] = start + sent
        experiment.progress.update()

      if dimension:
        projection = sketch_lib.projection(features, dimension, training.seed)
        trainer.local_sketches(base, clients, number, projection, dimension, into)
      else:
        trainer.local_updates(base, clients, number, into)

    files_lib.save_rows(path, len(clients), dimension or features, fill)


def cost(experiment: live_experiment_lib.Experiment, kind: str) -> Cost:
  """Returns what the signatures cost.

  Updates are a round of all clients. Weights come with the last round of Phase 1, where it has one, and are one local
  training of each client that was not in its cohort; sketches of them are sent by all. Without a Phase 1 weights come of the round of
  the updates: here both are trained, each for itself, and clusters that need both are charged one (equal_cost.of_finding).
  """
  everyone, trainer = experiment.everyone, experiment.trainer
  rounds = experiment.config.training.phase1_rounds
  if kind == 'updates' or rounds == 0:
    return _cost(experiment, trainer, everyone)
  cohort = trainer.cohort(everyone, rounds)
  others = np.setdiff1d(everyone, cohort)
  return _cost(experiment, trainer, others, cohort)


def cost_of_new_clients(experiment: live_experiment_lib.Experiment) -> Cost:
  """Returns what the signatures of the clients that took no part cost; see `of_new_clients`."""
  trainer = experiment.new_client_trainer
  return _cost(experiment, trainer, np.arange(trainer.population.num_clients))


def _cost(
  experiment: live_experiment_lib.Experiment,
  trainer: 'trainer_lib.Trainer',
  train: np.ndarray,
  have_trained: Sequence[int] | np.ndarray = (),
) -> Cost:
  """Returns what it costs that clients train and send their signatures; those who have trained send sketches alone."""
  whole, dimension = trainer.cost(train), experiment.config.training.sketch_dimension
  if dimension is None:
    return whole
  sketches = len(train) + len(have_trained)
  return dataclasses.replace(whole, models_up=sketches, bytes_up=sketches * dimension * _NUMBER_BYTES)


def load(folder: RunFolder, kind: str, block_bytes: int | None = None) -> 'signatures_lib.Signatures':
  """Returns the signatures that Phase 1 of a run saved, of the clients that can be clustered.

  Those are all but clients whose signature is not finite, or, where clusters start from their members' weights, whose
  weights are not. The vectors are memory-mapped; where clients are left out they are a copy.

  Args:
    folder: The run.
    kind: 'weights' or 'updates'.
    block_bytes: Memory that working copies may take; default: see Signatures.

  Raises:
    InputError: if Phase 1 has not finished, saved other signatures only, or fewer than two clients are left.
    MissingArtifact: if its signatures have been pruned.
    DamagedFile: if a file of it is damaged.
  """
  from tff_cluster.clustering import diverged_clients

  saved = folder.load_finished(folder.phase1, phase_files.Phase1).signatures
  if kind not in saved:
    had = f'{", ".join(saved)} only' if saved else 'none'
    raise InputError(
      f'{argument("signature", kind)}: this Phase 1 saved {had}; ask for a clustering of {kind} from the start, in another '
      f'{argument("output_dir")}'
    )
  vectors, usable = _rows(folder, folder.load_config().training, saved, kind)
  found = diverged_clients.finite_only(vectors, client_ids(folder, kind), usable)
  return found if block_bytes is None else dataclasses.replace(found, block_bytes=block_bytes)


def origin(experiment: live_experiment_lib.Experiment, kind: str) -> np.ndarray:
  """Returns float32[features], what a saved signature is beside the update that its client sends.

  For 'weights' the global model of the round before the last (or its sketch), which the server knows; for 'updates' zeros.
  """
  training = experiment.config.training
  if kind == 'updates':
    return np.zeros(
      training.sketch_dimension or experiment.trainer.computations.model.num_parameters, np.float32
    )
  base = experiment.flatten(phase1_models(experiment)[_base_round(training, kind)])
  if training.sketch_dimension is None:
    return base
  return sketch_lib.sketch(base[None], training.sketch_dimension, training.seed)[0]


def client_ids(folder: RunFolder, kind: str) -> tuple[str, ...]:
  """Returns the ids of all clients of a finished Phase 1, whether or not they can be clustered."""
  name = folder.load_finished(folder.phase1, phase_files.Phase1).signatures[kind]
  path = folder.store / name / 'clients.json'
  found = _of_phase1(folder, path, files_lib.load_json)
  if not (isinstance(found, list) and all(isinstance(client_id, str) for client_id in found)):
    raise files_lib.DamagedFile(f'{path} is damaged: it is no list of client ids')
  return tuple(found)


def start_weights(
  experiment: live_experiment_lib.Experiment, assignment: assignment_lib.ClusterAssignment
) -> np.ndarray:
  """Returns float32[clusters, features], what each cluster's first round starts from.

  The plain means of the members' weights (Rohith et al. 2020, section 6.2), or with cluster_start=global_model the
  model of Phase 1 for all of them (Briggs et al. 2020, Algorithm 1). That is where a cluster starts, too, of whose members
  none has finite weights: an oracle can put malicious clients together who send NaN.
  """
  from tff_cluster.clustering import diverged_clients

  folder, training = experiment.folder, experiment.config.training
  models = phase1_models(experiment)
  vector = experiment.flatten(models[training.phase1_rounds])
  starts = np.broadcast_to(vector, (assignment.num_clusters, len(vector)))
  if training.cluster_start == 'global_model':
    return starts
  phase1 = folder.load_finished(folder.phase1, phase_files.Phase1)
  vectors = _vectors(folder, phase1.signatures['weights'])
  shares = mixing.start_weights(assignment, diverged_clients.finite_rows(vectors))
  starts, sent = starts.copy(), shares.any(axis=1)
  if training.sketch_dimension is None:
    starts[sent] = mixing.apply_mixing([vectors], shares[sent].T)[0]
    return starts
  base = models[_base_round(training, 'weights')]
  for row in np.flatnonzero(sent):
    starts[row] = _start_of(experiment, base, np.flatnonzero(shares[row]))
  return starts


def start_cost(experiment: live_experiment_lib.Experiment, members: Sequence[np.ndarray]) -> Cost:
  """Returns what it costs that clusters of these members start: a local training a membership where the weights were never sent."""
  training = experiment.config.training
  if training.sketch_dimension is None or training.cluster_start == 'global_model':
    return Cost()
  return sum(map(experiment.trainer.cost, members), Cost())


def sketch_report(experiment: live_experiment_lib.Experiment, name: str) -> Sketch | None:
  """Returns dimension and measured distortion of an artifact's sketches; None where they are whole vectors."""
  if experiment.config.training.sketch_dimension is None:
    return None
  return Sketch.from_json(files_lib.load_json(experiment.store.root / name / 'sketch.json'))


def _vectors(folder: RunFolder, name: str) -> np.ndarray:
  """Returns the rows of an artifact that Phase 1 named."""
  artifacts.Store(folder.store).use(name)
  return _of_phase1(folder, folder.store / name / 'vectors.npy', files_lib.load_rows)


def _of_phase1(folder: RunFolder, path: pathlib.Path, load: Callable[[pathlib.Path], _Loaded]) -> _Loaded:
  """Returns what a file of a finished Phase 1 holds; MissingArtifact where it is gone or not whole."""
  try:
    return load(path)
  except FileNotFoundError as error:
    raise artifacts.MissingArtifact(
      f'{argument("output_dir", folder.root)}: the signatures of its Phase 1 are not in the store any more (no whole '
      f'{path.relative_to(folder.root)}): run {folder.command("phase1")}, which makes them again'
    ) from error


def is_whole(path: pathlib.Path, *beside: pathlib.Path) -> bool:
  """Tells whether saved rows, and the JSON files that belong to them, can be used; damaged ones are set aside."""
  whole = True
  for file in (path, *beside):
    try:
      files_lib.load_rows(file) if file == path else files_lib.load_json(file)
    except FileNotFoundError:
      whole = False
    except files_lib.DamagedFile as damage:
      files_lib.set_aside(file, damage)
      whole = False
  return whole


def phase1_is_whole(folder: RunFolder) -> bool:
  """Tells whether Phase 1 has finished, and its models and signatures can be used."""
  if not folder.phase1.exists():
    return False
  phase1 = folder.load_finished(folder.phase1, phase_files.Phase1)
  places = [folder.store / name for name in phase1.signatures.values()]
  return saved_rounds.are_whole(artifacts.Store(folder.store), phase1.trajectory) and all(
    [is_whole(place / 'vectors.npy', place / 'clients.json') for place in places]
  )


def _rows(
  folder: RunFolder, training: config_lib.TrainingConfig, signatures: dict[str, str], kind: str
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the rows of a kind, memory-mapped, and bool[clients], who can be clustered by them; see `load`."""
  from tff_cluster.clustering import diverged_clients

  vectors = _vectors(folder, signatures[kind])
  usable = diverged_clients.finite_rows(vectors)
  if training.cluster_start == 'members_mean' and kind != 'weights':
    # Every cluster then has a member whose weights it can start from.
    weights = _vectors(folder, signatures['weights'])
    usable &= diverged_clients.finite_rows(weights)
  return vectors, usable


def phase1_models(experiment: live_experiment_lib.Experiment) -> dict[int, Weights]:
  """Returns the global models after the last two rounds of Phase 1, by round number."""
  folder = experiment.folder
  loaded = experiment.load(folder.load_finished(folder.phase1, phase_files.Phase1).trajectory, 'phase1')
  # Of a Phase 1 of one round, or of none, the initial model is among them.
  return {0: experiment.trainer.computations.model.weights} | loaded


def _start_of(experiment: live_experiment_lib.Experiment, base: Weights, members: np.ndarray) -> np.ndarray:
  number = _base_round(experiment.config.training, 'weights') + 1
  clients = [experiment.population.client_digests[k] for k in members]
  artifact = experiment.store.artifact(
    'start', _determinants(experiment, base, number) | {'clients': clients}
  )
  path = artifact / 'vectors.npy'
  with experiment.store.working_on(artifact):
    if not is_whole(path):
      experiment.trained += len(members)
      mean = experiment.flatten(base) + experiment.trainer.mean_update(base, members, number)
      files_lib.save_rows(path, 1, len(mean), lambda rows: np.copyto(rows, mean[None]))
    return np.array(files_lib.load_rows(path)[0])


def _base_round(training: config_lib.TrainingConfig, kind: str) -> int:
  """Returns the round whose model clients train from for a signature; where there is no Phase 1, they make both in round 1."""
  return max(training.phase1_rounds - 1, 0) if kind == 'weights' else training.phase1_rounds


def _distortion(
  experiment: live_experiment_lib.Experiment,
  base: Weights,
  number: int,
  origin: np.ndarray,
  sketches: np.ndarray,
) -> sketch_lib.Distortion | None:
  """Returns how far the sketches' distances are off for a few clients; None where there are no two."""
  from tff_cluster.clustering import diverged_clients

  clients = experiment.population.num_clients
  if clients < 2:
    return None
  generator = seeding.generator(experiment.config.training.seed, 'sketch sample')
  sample = np.sort(generator.choice(clients, min(_SAMPLE, clients), replace=False))
  sample = sample[diverged_clients.finite_rows(sketches[sample])]
  if len(sample) < 2:
    return None
  vectors = origin + experiment.trainer.update_matrix(base, sample, number)
  return sketch_lib.distortion(vectors, sketches[sample])


def _determinants(experiment: live_experiment_lib.Experiment, base: Weights, number: int) -> dict[str, Json]:
  return {'base': digests.of_arrays(base), 'round': number, 'settings': experiment.settings}
