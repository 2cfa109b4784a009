"""The files of a comparison that programs read.

comparison.csv has one line for each contender, seed and budget (accuracies and shares from 0 to 1, empty where there is none):

  contender, kind, seed, budget   kind as in contenders.KINDS, budget 'equal_rounds' or 'equal_client_rounds'
  clients                         number of clients
  accuracy, worst_decile          mean over clients with their own models, and over the lowest tenth of them
  at_target                       share of clients at the target accuracy
  harmed_fedavg, harmed_local     share of clients worse off than with FedAvg, than alone
  global_RULE                     for each rule of Phase 3 that has one, such as average: accuracy on the global test set, at
                                  equal rounds only; for a rule that makes a model for each cluster: mean over clusters
  clients_RULE                    for each rule but each client's own model: mean over clients, at equal rounds only
  num_clusters, singletons, memberships
                                  clusters, those with one client, and mean number of clusters of a client
  client_rounds, bytes_up, bytes_down
                                  of Phase 2

comparison.json holds

  schema       int, SCHEMA
  seeds        [int]
  target       float, the target accuracy
  digests      {seed: digest of results.json}
  planted      'overlapping', 'disjoint', 'one' or 'unknown', see verdicts.planted_form
  answer       {headline: text, sentences: [text]}
  alarms       [text]
  checks       [{words, kind, budgets, verdict, ours, note}], see verdicts.Check and claims.Finding
  contenders   [{name, kind, labels {label: kind}, budgets: {budget: SUMMARY}, recovery: [{truth, planted [int], measure,
               values [float], scores}]}], planted groups, values and scores (see tff_cluster/recovery.py) one a seed.
               Clusterings with the same clusters and accuracies are one contender with several labels, joined by ' = ' in
               its name; in comparison.csv each has its lines
  pairs        [{overlapping, other, other_kinds, budget, difference: DIFFERENCE}]
  dial         null, or {positions: [{name, quantile (null: threshold 0), thresholds, num_clusters, memberships and
               client_rounds (one a seed), budgets: {budget: SUMMARY}}], chosen_positions (one a seed, by validation rows),
               chosen: {budget: SUMMARY}, checks as above}: see dial.py
  lines        the lines of comparison.csv, by column
  new_clients  null, or [{clustering, accuracy and regret (INTERVAL), over_fedavg (DIFFERENCE), seeds}] of the clients that took
               no part (NEW in tff_cluster/results.py); seeds: for each one clients, accuracy, fedavg, best (of the single
               cluster that is best in hindsight), worst_regret, with_best (share whose clusters hold that one), memberships,
               fallbacks, client_rounds and recovery
  malicious    null, or, where every seed has malicious and honest clients, [{contender, honest (INTERVAL), malicious (mean
               accuracy), over_fedavg (DIFFERENCE of the honest clients, null for FedAvg), honest_beside_malicious (one a seed, empty for
               FedAvg), dropped_updates (one a seed)}]
  summary      as in tff_cluster/results.py, at equal rounds: means over seeds, intervals over seeds and clients; ari is null
               where it is undefined for a seed

  SUMMARY      accuracy INTERVAL, worst_decile, at_target, over_fedavg and over_local (DIFFERENCE or null)
  DIFFERENCE   interval INTERVAL, clients and seeds {better, worse, equal, p_value} (sign tests over all clients of all
               seeds and over the seeds' means), harmed (share of clients), spread (standard deviation of the seeds' means,
               null for one seed), side 'above', 'unclear' or 'below'
  INTERVAL     mean, low, high: 95% over seeds and clients; low and high are null for one client under one seed
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_cluster.reporting.comparison import alarms, answer, statistics, verdicts
from tff_cluster.reporting.comparison import dial as dials
from tff_cluster.reporting.comparison.contenders import BUDGETS, ROUNDS, Contender, Measured, Runs
from tff_cluster.scorecard.intervals import SAME

SCHEMA = 1


def lines(contenders: Sequence[Contender], target: float) -> list[dict[str, Any]]:
  """Returns the lines of comparison.csv, by column; all lines have the same columns.

  Args:
    contenders: The rows of the comparison.
    target: Test accuracy that clients are to reach.
  """
  references = {
    c.kind: {run.seed: run for run in c.runs} for c in contenders if c.kind in ('fedavg', 'local')
  }
  everybodys, of_clients = (
    dict.fromkeys(name for c in contenders for run in c.runs for name in getattr(run, of_rules))
    for of_rules in ('global_accuracy', 'rule_accuracy')
  )
  found = []
  for contender in itertools.chain.from_iterable(c.each for c in contenders):
    for run, budget in itertools.product(contender.runs, BUDGETS):
      own = run.accuracy[budget]
      harmed = {kind: _harmed(run, of_kind[run.seed], budget) for kind, of_kind in references.items()}
      found.append({
            'contender': contender.name, 'kind': contender.kind, 'seed': run.seed, 'budget': budget, 'clients': len(own),
            'accuracy': float(own.mean()), 'worst_decile': statistics.worst_decile(own),
            'at_target': statistics.at_target(own, target), 'harmed_fedavg': harmed.get('fedavg'), 'harmed_local': harmed.get('local'),
            **{f'global_{name}': run.global_accuracy.get(name) if budget == ROUNDS else None for name in everybodys},
            **{f'clients_{name}': run.rule_accuracy.get(name) if budget == ROUNDS else None for name in of_clients},
            'num_clusters': run.num_clusters, 'singletons': run.singletons, 'memberships': run.memberships,
            'client_rounds': run.client_rounds[budget], 'bytes_up': run.bytes_up[budget], 'bytes_down': run.bytes_down[budget],
        })  # fmt: skip
  return found


def document(
  runs: Runs,
  contenders: Sequence[Contender],
  found: statistics.Statistics,
  checks: Sequence[verdicts.Check],
  told: Sequence[str],
  dial: dials.Dial | None = None,
) -> dict[str, Any]:
  """Returns comparison.json.

  Args:
    runs: The runs, by ascending seed.
    contenders: The rows of the comparison.
    found: Its numbers.
    checks: Its checks.
    told: Its alarms.
    dial: Its overlap dial, where there is one.
  """
  return {
    'schema': SCHEMA,
    'seeds': list(found.seeds),
    'target': found.target,
    'digests': {str(seed): results.get('digest') for seed, results in runs},
    'planted': verdicts.planted_form(runs),
    'answer': {'headline': answer.headline(found), 'sentences': answer.sentences(found)},
    'alarms': list(told),
    'checks': [_check(check) for check in checks],
    'contenders': [_contender(contender, found, runs) for contender in contenders],
    'pairs': [
      {
        'overlapping': pair.overlapping,
        'other': pair.other,
        'other_kinds': list(pair.other_kinds),
        'budget': pair.budget,
        'difference': _difference(pair.difference),
      }
      for budget in BUDGETS
      for pair in found.pairs[budget]
    ],
    'dial': None if dial is None else _dial(dial),
    'lines': lines([*contenders, *(dial.positions if dial is not None else ())], found.target),
  }


def _check(check: verdicts.Check) -> dict[str, Any]:
  found = {'words': check.words, 'kind': check.kind, 'budgets': list(check.budgets)}
  return found | dataclasses.asdict(check.finding)


def _dial(dial: dials.Dial) -> dict[str, Any]:
  def budgets(contender: Contender) -> dict[str, Any]:
    return {budget: _summary(dial.summary(contender, budget)) for budget in BUDGETS}

  plain = dials.to_json(dial)
  for entry, contender in zip(plain['positions'], dial.positions, strict=True):
    entry['budgets'] = budgets(contender)
  return plain | {
    'chosen': budgets(dial.chosen),
    'checks': [_check(check) for check in dials.make_checks(dial)],
  }


def _harmed(run: Measured, reference: Measured, budget: str) -> float | None:
  """Returns the share of clients that are worse off than with the reference; None for itself."""
  if run is reference:
    return None
  return float(np.mean(run.accuracy[budget] - reference.accuracy[budget] < -SAME))


def _contender(contender: Contender, found: statistics.Statistics, runs: Runs) -> dict[str, Any]:
  return {
    'name': contender.name,
    'kind': contender.kind,
    'labels': {part.name: part.kind for part in contender.each},
    'budgets': {budget: _summary(found.summary(contender.name, budget)) for budget in BUDGETS},
    'recovery': [
      {
        'truth': scores[0].truth,
        'planted': [score.planted for score in scores],
        'measure': scores[0].measure,
        'values': [score.value for score in scores],
        'scores': [run.recovery[scores[0].truth] for run in contender.runs],
      }
      for scores in alarms.recoveries(contender, runs)
    ],
  }


def _summary(summary: statistics.Summary) -> dict[str, Any]:
  return {
    'accuracy': dataclasses.asdict(summary.mean),
    'worst_decile': summary.worst_decile,
    'at_target': summary.at_target,
    'over_fedavg': _difference(summary.over_fedavg),
    'over_local': _difference(summary.over_local),
  }


def _difference(difference: statistics.Difference | None) -> Mapping[str, Any] | None:
  return None if difference is None else dataclasses.asdict(difference) | {'side': difference.side}
