"""The result of an experiment: results.json, its schema and its digest.

results.json holds `Results` and its parts (tff_cluster/experiment/result_parts.py) as JSON, keys named as the fields are.

Beside it arrays.npz holds, for each signature kind s that was clustered: distances_s float32[clients,
clients] (Euclidean), embedding_s float64[clients, 2] (classical scaling), and for each hierarchical
clustering linkage_LABEL float64[clients - 1, 4] (SciPy's form). For each clustering by bipartition:
similarity_LABEL_NNN float32[members, members], the cosine similarity of the updates of the clients of splits[NNN]
(three digits), in the order of its `cluster`; and client_accuracy_LABEL float32[rounds, clients], test accuracy of every
client after each round, from round 1 to the last, under the model that it uses in that round: before the first split the
common one, in the round of a split still that of the whole cluster. For each clustering that alternated with training:
memberships_LABEL float32[rounds, models, clients], the clients' shares in its models after each round, and first_round_LABEL int64,
the round whose models it started from; a column is 0 while nothing is known of the client. Clients that were not clustered (`excluded`) have NaN
in distances, embedding and similarities, and no leaf in a linkage.
"""

import dataclasses
import pathlib
from collections.abc import Mapping

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import CLIENTS
from tff_cluster.base import digests, records
from tff_cluster.base.environment import Environment
from tff_cluster.base.errors import InputError
from tff_cluster.experiment.config import ExperimentConfig, determinants
from tff_cluster.experiment.measured import Evaluation, OwnValidation, Personalized, Stage, Timing
from tff_cluster.experiment.result_parts import (
  AddedRule,
  Artifacts,
  Candidate,
  Clustering,
  CrossValidation,
  Malicious,
  NewClients,
  Population,
  SummaryLine,
  Training,
)
from tff_cluster.storage import files, sealed_json

SCHEMA = 6
# Of `validation`: digests are older.
_NOT_RESULTS = ('digest', 'artifacts', 'environment', 'timing', 'summary', 'rules', 'validation')


@dataclasses.dataclass(frozen=True)
class Results(records.Record):
  """What an experiment found.

  Attributes:
    config: The experiment.
    population: The clients that took part. All numbers are theirs, but for those of `new_clients`.
    training: What was trained.
    phase1: FedAvg over all clients.
    baseline: The same FedAvg gone on for the rounds of Phase 2, so that a clustering is compared at equal rounds.
    personalized: Baselines without clusters in which every client has a model of its own, those that were asked for.
    new_clients: The clients that took no part; None without.
    clusterings: Empty for FedAvg alone.
    candidates: Clusterings that were not trained.
    cross_validation: None without folds.
    environment: What the run ran on.
    timing: One a phase, for each clustering that trained to find its clusters (bipartition, a threshold by validation),
      and for each fold: together all that was trained; the last one is drawing the report, where that was done.
    rules: Rules of Phase 3 beside those of every run.
    artifacts: What the results stand on.
    schema: Number of this form of the file.
    digest: SHA-256 over everything but itself, `artifacts`, `environment`, `timing`, `summary`, `rules`, `validation` and paths: equal
      between equal runs.
    summary: A line for each contender, in the order FedAvg without clusters, `personalized`, clusterings; the same that a run
      prints at its end. Positions of an overlap dial are left out.
    malicious: Only where some clients are malicious.
    validation: By clustering, where some overlap and do not alternate.
  """

  config: ExperimentConfig = dataclasses.field(metadata=records.about(read=ExperimentConfig.read))
  population: Population
  training: Training
  phase1: Stage
  baseline: Stage
  personalized: list[Personalized]
  new_clients: NewClients | None
  clusterings: list[Clustering]
  candidates: list[Candidate]
  cross_validation: CrossValidation | None
  environment: Environment
  timing: list[Timing]
  rules: list[AddedRule]
  artifacts: Artifacts
  schema: int
  digest: str
  summary: list[SummaryLine]
  malicious: Malicious | None = records.optional(None)
  validation: dict[str, OwnValidation] | None = records.optional(None)

  def clustering(self, label: str) -> Clustering:
    """Returns the clustering of a label, which there must be."""
    return next(found for found in self.clusterings if found.label == label)


def read(path: pathlib.Path) -> Results:
  """Reads a results.json; imports nothing that its configuration names.

  Raises:
    FileNotFoundError: if it is not there.
    InputError: if it has another schema.
    DamagedFile: if it is no JSON, was changed after it was written, or lacks something.
    sealed_json.NewerFile: if a later version wrote it.
  """
  return from_json(files.load_json(path), str(path))


def from_json(found: object, name: str) -> Results:
  """Reads the content of the results.json of this name; raises as `read` does."""
  check_schema(name, found)
  try:
    return Results.from_json(found)
  except records.Mismatch as error:
    raise files.DamagedFile(
      f'{name} is damaged: it {error}; run the experiment again in another folder'
    ) from error


def own(clustering: Clustering) -> Evaluation:
  """Returns the evaluation of the models that clients of a clustering use: its accuracy is theirs."""
  return with_role(clustering, CLIENTS)


def with_role(clustering: Clustering, role: str) -> Evaluation:
  """Returns the evaluation of the rule that has a role (aggregation/rule.py)."""
  return clustering.evaluations[rules.with_role(role).name]


def rule_words(results: Results) -> dict[str, str]:
  """Returns what pages call the rules of Phase 3 that a run has measured, by name and in the order of pages.

  They need not be those that are there now: a rule can have come since, or gone, which leaves its name.
  """
  words = {rule.name: rule.words for rule in rules.mixing_rules()} | {
    rule.name: rule.words for rule in results.rules
  }
  return {name: words.get(name, name) for each in results.clusterings for name in each.evaluations}


def check_not_newer(name: str, found: object) -> None:
  """Raises sealed_json.NewerFile where the content of a results.json is of a later schema than this version writes."""
  schema = found.get('schema') if isinstance(found, Mapping) else None
  if isinstance(schema, int) and schema > SCHEMA:
    raise sealed_json.NewerFile(
      f'{name} has schema {schema}, this version of the software writes {SCHEMA}; use the version that wrote it, or '
      'another folder. It is left as it is'
    )


def check_schema(name: str, found: object) -> None:
  """Raises InputError where the content of a results.json is not of the schema that this version reads and writes."""
  schema = found.get('schema') if isinstance(found, Mapping) else type(found).__name__
  if schema != SCHEMA:
    raise InputError(
      f'{name}: schema {schema!r}, expected {SCHEMA}; read it with the version of the software that wrote it, or run the '
      'experiment again in another folder'
    )


def digest_of(results: Results) -> str:
  """Returns the digest of results."""
  numbers = {key: value for key, value in results.to_json().items() if key not in _NOT_RESULTS}
  # What the population is called follows a file's name, which says nothing about its rows.
  numbers['population'] = {k: v for k, v in results.population.to_json().items() if k != 'name'}
  numbers['config'] = determinants(results.config.to_json())
  return digests.of_json(numbers)
