"""The result of an experiment: results.json, its schema and its digest.

results.json holds (all accuracies from 0 to 1, all times in seconds):

  schema        int, SCHEMA
  digest        SHA-256 over everything below but `artifacts`, `environment`, `timing`, `summary`, `rules` and paths: equal between equal runs
  config        ExperimentConfig.to_json()
  population    name, digest, client_ids [clients], num_classes, rows {train, validation, test, global_test},
                label_counts int[clients][classes] (train), truths {name: float[groups][clients]}
  training      parameters (int, of the model), model_bytes (int), sketch (null where clients sent whole
                signatures, else dimension and distortion: relative errors of a few clients' distances)
  phase1        STAGE; FedAvg over all clients
  baseline      STAGE; the same FedAvg gone on for the rounds of Phase 2, so that a clustering is compared
                at equal rounds
  local         null where it was not asked for, or every client alone, from the initial model: client_rounds (nothing
                is sent), history and evaluation as in STAGE, dropped_updates where there are some (a client stays with
                the model that it has).
  new_clients   null, or the clients that took no part: client_ids [new], digest, rows {train, validation, test},
                label_counts int[new][classes], truths {name: float[groups][new]}, fedavg {client_accuracy float[new]}: the
                model of FedAvg without clusters on their test rows. All else in this file is of the clients that took
                part, `population` as well
  malicious     only where some clients are malicious (data/malicious.py): client_ids of those that took part, baseline SIDES
                (dropped updates of both phases) and clusterings {label: SIDES with honest_beside_malicious: share of honest
                clients that share a cluster with a malicious one, null without honest clients; dropped updates of Phase 2,
                for bipartition in the rounds of Phase 2}
  clusterings   list, empty for FedAvg alone, of
    label, method, parameters   as configured, options at their defaults too
    title, approach, basis, one_cluster   what reports say of the method: its name, that of a run of such clusterings, what
                  clusters were found on, and what one cluster of all clients means
    kind          'oracle' (the planted groups), 'overlapping' or 'disjoint'
    told, dial    the number of clusters that the method was told, and the option that the overlap dial turns; null where there
                  is none
    signature     'weights' or 'updates' (bipartition: 'updates')
    clusters      [[client ids]]
    num_clusters, overlapping (bool), memberships (mean number of clusters of a client)
    notes         [text]: what a reader must know (threshold used, cliques found, collapsed, ...)
    excluded      only where there are some: [client ids] that were not clustered, because their updates were not finite.
                  They are members of the largest cluster (bipartition: of the larger halves). `recovery` is over the
                  others, as are the scores of candidates
    dropped_updates  only where there are some: client updates of Phase 2 that were not finite and were left out
    threshold     float or null, the distance threshold that was used
    choice        CHOICE of that threshold, null where it was given
    splits        null where clusters were found in one step; for method bipartition (CFL, recursive) [SPLIT], in order
                  of round and, within a round, of the clusters' first members: one for each time that a cluster
                  was found stationary and tested. `clusters` are the leaves
    recovery      {truth name: {ari, nmi, omega, onmi, bcubed_precision, bcubed_recall, bcubed_f}}, see recovery.py and
                  clustering/overlap_scores.py; ari and nmi are null where either side overlaps.
    ledger        client_rounds, bytes_up, bytes_down of Phase 2, of the round in which clients sent updates to be
                  clustered, of weights that clients outside the last cohort sent, of the local rounds that start
                  clusters with sketches, and of thresholds that were tried and not chosen
    history       HISTORY of Phase 2 (a client in several clusters counts with the mean over their models)
    best_validation  float[clusters], highest validation accuracy that each cluster's model attained
    cluster_scores   {'unblended' | rule: {'members' | 'global': float[clusters]}}: accuracy of each
                  cluster's model, as trained and as each rule with `of_clusters` makes it (blended), on its members' test
                  rows and on the global test set: specialisation kept, generality gained
    evaluations   {rule: EVALUATION} for each mixing rule in aggregation/rules/ (own, average, weighted, blended) and each in
      `rules`; of a mixing rule with `mixing` float[clusters][clients or 1], the matrix that makes the evaluation's models, null
      where it has more than 100,000 numbers; of a rule of predictions without, and with null for every loss
    experts       EXPERTS, null where they were not asked for
    equal_cost    null where the ledger's client_rounds are at most those that FedAvg without clusters spends in
                  Phase 2; else the last round that they pay (of Phase 1, where they pay none), client_rounds spent
                  then, and the evaluation of each client's own model after it
    new_clients   null where all clients took part, else NEW
  rules         [{name, words, kind ('mixing' or 'prediction'), aggregation (what asked for it)}]: the rules of Phase 3 that a run has
                beside those of every run
  candidates    [{method, title, told, parameters, signature, num_clusters, memberships, silhouette, recovery {truth: {...}}, notes}]:
                clusterings of the same signatures that were not trained (k-means for K = 2 .. 10, ...)
  cross_validation  null, or {folds, evaluations {'clustering label/evaluation name': {mean, low, high, recall}}}:
                mean client accuracy over folds with Student's 95% interval, and mean macro recall
  artifacts     what the results stand on: phase1 and baseline CHECKPOINTS, local [CHECKPOINTS], one a client, where it was asked
                for, signatures {kind: folder in the store}, clusterings {label: [CHECKPOINTS]}, the trajectories of Phase 2
  environment   python, packages {name: version}, machine, cores, started (ISO time)
  timing        [{name, seconds, client_rounds_asked, client_rounds_trained}], one a phase, and one for each clustering that
                trained to find its clusters (bipartition, a threshold by validation): together all that was trained; the
                last one is drawing the report, where that was done
  summary       [{label, kind, mean_client_accuracy, difference, interval, num_clusters, ari, omega, client_rounds, bytes}],
                a line for each contender, in the order FedAvg without clusters (kind 'fedavg'), every client alone ('local',
                where it was asked for), clusterings ('oracle', 'disjoint' or 'overlapping'); the same that a run prints at
                its end. After Phase 2, each client with its own model on its own test rows: mean accuracy, its difference to
                FedAvg, client by client, and the 95% interval [low, high] of that over clients; ari and omega against the
                first of `truths`; client-rounds of Phase 2 and bytes up and down together, as in the ledgers. null where
                there is none. Positions of an overlap dial are left out

  CHECKPOINTS artifact (folder in the store), start_round, rounds (kept there), see storage/saved_rounds.py
  STAGE       rounds, ledger {client_rounds, bytes_up, bytes_down}, history (all three from round 1 on, in the
              baseline too), evaluation (EVALUATION),
              dropped_updates (client updates that were not finite and were left out)
  CHOICE      candidates [{threshold, num_clusters, validation_accuracy, test_accuracy, share_at_target}] after one
              round of Phase 2, chosen (position of the best on validation rows), best_on_test (the same on test rows,
              which chose nothing), other_client_rounds (what the cuts that were not chosen cost)
  SPLIT       round (int, tested after this round of training), cluster [client ids that trained together],
              verdict 'split', 'stopped' (no client's update is as long as eps_2) or 'kept' (a guard forbade the split),
              halves [[client ids], [client ids]], the best bi-partition; null for 'stopped',
              cross_similarity (float or null, highest cosine similarity of two updates across the halves: eq. 6),
              similarity_gap (float or null, see clustering/halves.py),
              mean_update_norm (compared with eps_1), max_update_norm (compared with eps_2),
              mean_similarity (of all pairs of different clients of the cluster),
              half_accuracy (null, or for each half its clients' mean test accuracy in the round of the split and in up
              to five rounds after it),
              reason (a sentence: why it was stopped or kept; '' for 'split'),
              two_kinds (only for 'stopped', where the similarities are plainly of two kinds all the same, see
              clustering/methods/bipartition.py: halves, cross_similarity, similarity_gap, norms that would have split it,
              stationary_norm and stopping_norm, and words that say so),
              excluded (only where there are some: [client ids] whose updates were not finite; they were not compared, and
              go with the larger half)
  EXPERTS     the cluster models as experts on the global test set, in its order: accuracy {rule: float} of each rule of
              predictions in aggregation/rules/ (the oracle knows the labels, the gate is trained on validation rows), expert_accuracy,
              expert_loss (cross-entropy) and expert_loss_twice (of the outputs put through a softmax once more, as the
              paper has it) [clusters], agreement {rule: {rule: float}} and order_sensitivity as
              aggregation.expert_comparison.compare gives them, weights float[clusters][classes] (FedEx's last)
  NEW         assigned [new][positions in `clusters`], fallback bool[new] (no cluster took the client by the method's own
              rule, see `join` in clustering/methods), client_accuracy float[new] (each with its own model, the mean of its
              clusters' models, on its test rows), cluster_accuracy float[clusters][new], regret float[new]: accuracy of the
              single cluster model that is best on the client's test rows, known in hindsight only, minus its own, below 0
              where a mean of several models is better; recovery {truth name: scores} of the clusters with the new
              clients in them, all clients together; ledger {client_rounds, bytes_up, bytes_down} of their local updates
  HISTORY     rounds [int], validation_accuracy [float], test_accuracy [float]: means over clients;
              share_at_target [float], clients whose test accuracy is at least the configured target
  EVALUATION  global: metrics on the global test set, or null where clients differ in their model;
              clients: metrics on the clients' own test rows; client_accuracy float[clients]
  SIDES       honest_accuracy and malicious_accuracy: means over these clients, with their own models on their own test
              rows, null without such clients; dropped_updates int: not finite, left out
  metrics     see scores.Scores.summary

Beside it arrays.npz holds, for each signature kind s that was clustered: distances_s float32[clients,
clients] (Euclidean), embedding_s float64[clients, 2] (classical scaling), and for each hierarchical
clustering linkage_LABEL float64[clients - 1, 4] (SciPy's form). For each clustering by bipartition:
similarity_LABEL_NNN float32[members, members], the cosine similarity of the updates of the clients of splits[NNN]
(three digits), in the order of its `cluster`; and client_accuracy_LABEL float32[rounds, clients], test accuracy of every
client after each round, from round 1 to the last, under the model that it uses in that round: before the first split the
common one, in the round of a split still that of the whole cluster. Clients that were not clustered (`excluded`) have NaN
in distances, embedding and similarities, and no leaf in a linkage.
"""

from collections.abc import Mapping
from typing import Any

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import CLIENTS
from tff_cluster.base import digests
from tff_cluster.base.errors import InputError
from tff_cluster.experiment import config
from tff_cluster.storage import sealed_json

SCHEMA = 5
_NOT_RESULTS = ('digest', 'artifacts', 'environment', 'timing', 'summary', 'rules')


def own(clustering: Mapping[str, Any]) -> Mapping[str, Any]:
  """Returns the EVALUATION of the models that clients of a clustering use: its accuracy is theirs."""
  return with_role(clustering, CLIENTS)


def with_role(clustering: Mapping[str, Any], role: str) -> Mapping[str, Any]:
  """Returns the EVALUATION of the rule that has a role (aggregation/rule.py)."""
  return clustering['evaluations'][rules.with_role(role).name]


def rule_words(results: Mapping[str, Any]) -> dict[str, str]:
  """Returns what pages call the rules of Phase 3 of a run, by name and in the order of pages."""
  return {rule.name: rule.words for rule in rules.mixing_rules()} | {
    rule['name']: rule['words'] for rule in results.get('rules', ())
  }


def check_not_newer(name: str, found: Any) -> None:
  """Raises sealed.NewerFile where the content of a results.json is of a later schema than this version writes."""
  schema = found.get('schema') if isinstance(found, Mapping) else None
  if isinstance(schema, int) and schema > SCHEMA:
    raise sealed_json.NewerFile(
      f'{name} has schema {schema}, this version of the software writes {SCHEMA}; use the version that wrote it, or '
      'another folder. It is left as it is'
    )


def check_schema(name: str, found: Any) -> None:
  """Raises InputError where the content of a results.json is not of the schema that this version reads and writes."""
  schema = found.get('schema') if isinstance(found, Mapping) else type(found).__name__
  if schema != SCHEMA:
    raise InputError(
      f'{name}: schema {schema!r}, expected {SCHEMA}; read it with the version of the software that wrote it, or run the '
      'experiment again in another folder'
    )


def with_digest(results: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the results with `schema` and `digest` set."""
  complete = dict(results) | {'schema': SCHEMA}
  numbers = {key: value for key, value in complete.items() if key not in _NOT_RESULTS}
  # What the population is called follows a file's name, which says nothing about its rows.
  numbers['population'] = {k: v for k, v in numbers['population'].items() if k != 'name'}
  numbers['config'] = config.determinants(numbers['config'])
  return complete | {'digest': digests.of_json(numbers)}
