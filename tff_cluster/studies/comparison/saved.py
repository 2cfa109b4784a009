"""comparison.json, which programs read. comparison.csv is in csv_columns.py.

comparison.json holds

  schema       int, SCHEMA
  seeds        [int]
  target       float, the target accuracy
  digests      {seed: digest of results.json}
  planted      'overlapping', 'disjoint', 'one' or 'unknown', see verdicts.planted_form
  answer       {headline: text, sentences: [text]}
  alarms       [text]
  checks       [{words, kind, budgets, verdict, ours, note}], see verdicts.Check and claims.Finding
  contenders   [{name, kind, labels {label: kind}, client_models [int], budgets: {budget: SUMMARY}, recovery: [{truth, planted [int], measure,
               values [float], scores}]}], planted groups, values and scores (see tff_cluster/clustering/recovery.py) one a seed, as
               are client_models, the different models that clients have of their own.
               Clusterings with the same clusters and accuracies are one contender with several labels, joined by ' = ' in
               its name; in comparison.csv each has its lines
  pairs        [{overlapping, other, other_kinds, budget, difference: DIFFERENCE, verdict}]
  trained_on   [{contender, rule, accuracy INTERVAL, over_fedavg and over_fine_tuning (DIFFERENCE or null)}], own models that clients
               trained on by a rule of Phase 3, at equal rounds
  overlap      {budget: null, or {overlapping, disjoint, difference: DIFFERENCE, worst_decile (of the first less that of the second),
               verdict}}, of the two that validation rows choose
  dial         null, or {positions: [{name, quantile (null: threshold 0), thresholds, num_clusters, memberships and
               cost (COST, one a seed), budgets: {budget: SUMMARY}}], chosen_positions ({budget: one a seed}, by validation rows),
               chosen: {budget: SUMMARY}, checks as above}: see dial.py
  lines        the lines of comparison.csv, by column
  new_clients  null, or [{clustering, accuracy and regret (INTERVAL), over_fedavg (DIFFERENCE), seeds}] of the clients that took
               no part (NEW in tff_cluster/experiment/results.py); seeds: for each one clients, accuracy, fedavg, best (of the single
               cluster that is best in hindsight), worst_regret, with_best (share whose clusters hold that one), memberships,
               fallbacks, cost (COST) and recovery
  malicious    null, or, where every seed has malicious and honest clients, [{contender, honest (INTERVAL), malicious (mean
               accuracy), over_fedavg (DIFFERENCE of the honest clients, null for FedAvg), honest_beside_malicious (one a seed, empty for
               FedAvg), dropped_updates (one a seed)}]
  summary      as in tff_cluster/experiment/results.py, at equal rounds: means over seeds, intervals over seeds and clients; ari is null
               where it is undefined for a seed
  command      the command line

  COST         see Cost in tff_cluster/base/cost.py
  SUMMARY      accuracy INTERVAL, worst_decile, at_target, over_fedavg, over_local, over_fine_tuning and over_ditto (DIFFERENCE or null),
               verdict (against FedAvg, see tff_cluster/scorecard/paired_verdicts.py; null for what is no clustering, and on the dial)
  DIFFERENCE   interval INTERVAL, inner (the same at 90%, by which verdicts are 'equivalent'), clients and seeds {better, worse, equal, p_value} (sign tests over all clients of all
               seeds and over the seeds' means), harmed (share of clients), spread (standard deviation of the seeds' means,
               null for one seed), by_seed (the seeds' means), side 'above', 'unclear' or 'below'
  INTERVAL     mean, low, high: 95% over seeds and clients; low and high are null for one client under one seed
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tff_cluster.report import first_screen
from tff_cluster.scorecard import paired_statistics, paired_verdicts, summary
from tff_cluster.scorecard.contenders import ROUNDS, Contender, Runs
from tff_cluster.studies.comparison import alarms, answer, csv_columns, verdicts
from tff_cluster.studies.comparison import dial as dials

SCHEMA = 4


def document(
  runs: Runs,
  contenders: Sequence[Contender],
  found: paired_statistics.Statistics,
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
  of_gains = {budget: verdicts.of_gains(found, budget) for budget in found.summaries}
  return {
    'schema': SCHEMA,
    'seeds': list(found.seeds),
    'target': found.target,
    'digests': {str(seed): results.digest for seed, results in runs},
    'planted': verdicts.planted_form(runs),
    'answer': {
      'headline': first_screen.sentence(
        summary.of_comparison(contenders, found), found.seeds, of_gains[ROUNDS]
      ),
      'sentences': [*filter(None, [answer.enough_seeds(found)]), *answer.sentences(found)],
    },
    'alarms': list(told),
    'checks': [_check(check) for check in checks],
    'contenders': [_contender(contender, found, runs, of_gains) for contender in contenders],
    'pairs': [
      {
        'overlapping': pair.overlapping,
        'other': pair.other,
        'other_kinds': list(pair.other_kinds),
        'budget': pair.budget,
        'difference': pair.difference.to_json(),
        'verdict': of_pairs[pair.overlapping, pair.other],
      }
      for budget in found.summaries
      for of_pairs in [verdicts.of_pairs(found, budget)]
      for pair in found.pairs[budget]
    ],
    'trained_on': [
      {
        'contender': each.name,
        'rule': each.rule,
        'accuracy': dataclasses.asdict(each.mean),
        **{f'over_{kind}': difference and difference.to_json() for kind, difference in each.over.items()},
      }
      for each in found.trained_on
    ],
    'overlap': {budget: _chosen(chosen) for budget, chosen in found.chosen.items()},
    'dial': None if dial is None else _dial(dial),
    'lines': csv_columns.lines([*contenders, *(dial.positions if dial is not None else ())], found.target),
  }


def _check(check: verdicts.Check) -> dict[str, Any]:
  found = {'words': check.words, 'kind': check.kind, 'budgets': list(check.budgets)}
  return found | dataclasses.asdict(check.finding)


def _dial(dial: dials.Dial) -> dict[str, Any]:
  def budgets(contender: Contender) -> dict[str, Any]:
    return {budget: _summary(dial.summary(contender, budget)) for budget in dial.statistics.summaries}

  return {
    'positions': [
      {
        'name': contender.name,
        'quantile': quantile,
        'thresholds': list(thresholds),
        'num_clusters': [run.num_clusters for run in contender.runs],
        'memberships': [run.memberships for run in contender.runs],
        'cost': [run.cost[ROUNDS].to_json() for run in contender.runs],
        'budgets': budgets(contender),
      }
      for contender, quantile, thresholds in zip(dial.positions, dial.quantiles, dial.thresholds, strict=True)
    ],
    'chosen_positions': {budget: list(places) for budget, places in dial.chosen_positions.items()},
    'chosen': budgets(dial.chosen),
    'checks': [_check(check) for check in dials.make_checks(dial)],
  }


def _chosen(found: paired_statistics.OnValidation | None) -> dict[str, Any] | None:
  if found is None:
    return None
  return {
    'overlapping': found.overlapping.name,
    'disjoint': found.disjoint.name,
    'difference': found.difference.to_json(),
    'worst_decile': found.overlapping.worst_decile - found.disjoint.worst_decile,
    'verdict': paired_verdicts.judge([found.difference])[0],
  }


def _contender(
  contender: Contender,
  found: paired_statistics.Statistics,
  runs: Runs,
  of_gains: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
  return {
    'name': contender.name,
    'kind': contender.kind,
    'labels': {part.name: part.kind for part in contender.each},
    'client_models': [run.client_models for run in contender.runs],
    'budgets': {
      budget: _summary(found.summary(contender.name, budget), of_gains[budget].get(contender.name))
      for budget in found.summaries
    },
    'recovery': [
      {
        'truth': scores[0].truth,
        'planted': [score.planted for score in scores],
        'measure': scores[0].measure,
        'values': [score.value for score in scores],
        'scores': [run.recovery[scores[0].truth].to_json() for run in contender.runs],
      }
      for scores in alarms.recoveries(contender, runs)
    ],
  }


def _summary(summary: paired_statistics.Summary, verdict: str | None = None) -> dict[str, Any]:
  return {
    'accuracy': dataclasses.asdict(summary.mean),
    'worst_decile': summary.worst_decile,
    'at_target': summary.at_target,
    **{f'over_{kind}': difference and difference.to_json() for kind, difference in summary.over.items()},
    'verdict': verdict,
  }
