"""The sections of report.html about the experiment as a whole."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tff_cluster.base.words import duration, percent, plural, size, times
from tff_cluster.experiment import results as results_lib
from tff_cluster.papers.rohith2020.setting import Setting
from tff_cluster.report.answer import ClusteringAnswer, cost_ratio
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.pages import Cell, Section, Table
from tff_cluster.report.pictures import Picture
from tff_cluster.scorecard import identical_clusterings

_TEMPLATE = 'report.html'
_METRICS = (
    ('accuracy', 'accuracy'), ('precision', 'precision'), ('recall', 'recall'), ('mean_client_accuracy', 'mean client'),
    ('highest_client_accuracy', 'highest client'), ('share_at_highest', 'clients at it'),
)  # fmt: skip


def answer_section(
  headline: str, answers: Sequence[ClusteringAnswer], setting: Setting, caution: str
) -> Section:
  """Returns the opening: the headline, one card a clustering, and what must be known of all means (empty: nothing)."""
  remarks = []
  if setting.is_of_paper and not setting.is_papers:
    remarks.append(f'Run on {setting.words}: scaled down from Rohith et al. 2020.')
  if any(identical_clusterings.JOINT in answer.label for answer in answers):
    remarks.append(identical_clusterings.WORDS)
  data = {'headline': headline, 'remarks': remarks, 'answers': answers, 'caution': caution}
  return Section('The answer', _TEMPLATE, 'answer', data)


def run_section(run: FinishedRun, merged: Sequence[Mapping[str, Any]]) -> Section:
  """Returns what was run, how long each phase took and what it cost.

  Args:
    run: The run, with every clustering as it was asked for.
    merged: Its clusterings, see identical.merged.
  """
  results, population = run.results, run.results['population']
  config, training, rows = results['config']['data'], results['config']['training'], population['rows']
  batch = f'batch {training["batch_size"]}' if training['batch_size'] else 'whole-client batches'
  model = results.get('training') or {}
  parameters = f', {model["parameters"]:,} parameters ({size(model["model_bytes"])})' if model else ''
  facts = [
      ('data', f'{population["name"]}: {plural(len(run.client_ids), "client")}, {population["num_classes"]} classes'),
      ('rows', ', '.join(f'{count:,} {name.replace("_", " ")}' for name, count in rows.items())),
      (
          'test rows a client', f'{rows["test"] / len(run.client_ids):,.1f} on average: one row is worth '
          f'{100 * len(run.client_ids) / rows["test"]:.2g} points of such a client’s accuracy',
      ),
      ('model', f'{training["model"]}{parameters}'),
      ('rounds', f'{training["phase1_rounds"]} in Phase 1, {training["phase2_rounds"]} in each cluster in Phase 2'),
      (
          'client work', f'{plural(training["local_epochs"], "local epoch")}, {batch}, learning rate '
          f'{training["learning_rate"]:g}, {percent(training["cohort_fraction"], 0)} of the clients a round',
      ),
      ('seeds', f'training {training["seed"]}, data {config["data_seed"]}'),
  ]  # fmt: skip
  described = [
    (c['label'], c['method'], c['basis'], _parameters(c['parameters'])) for c in results['clusterings']
  ]
  timing = results['timing']
  total = (
      'total', duration(sum(t['seconds'] for t in timing)), f'{sum(t["client_rounds_asked"] for t in timing):,}',
      f'{sum(t["client_rounds_trained"] for t in timing):,}',
  )  # fmt: skip
  ledgers: list[tuple[str, Mapping[str, Any], float | None]]
  ledgers = [
    ('Phase 1', results['phase1']['ledger'], None),
    (f'unclustered, {results["baseline"]["rounds"]} rounds', results['baseline']['ledger'], None),
  ]
  for clustering in merged:
    # The same clusters may have been dearer to find.
    parts = identical_clusterings.parts(clustering)
    for same in identical_clusterings.grouped(
      parts, [tuple(sorted(part['ledger'].items())) for part in parts]
    ):
      label = identical_clusterings.joined(part['label'] for part in same)
      ledgers.append((label, same[0]['ledger'], cost_ratio(results, same[0])))
  phases = [
    (t['name'], duration(t['seconds']), f'{t["client_rounds_asked"]:,}', f'{t["client_rounds_trained"]:,}')
    for t in timing
  ]
  costs = [
      (name, f'{c["client_rounds"]:,}', '–' if cost is None else times(cost), size(c['bytes_up']), size(c['bytes_down']))
      for name, c, cost in ledgers
  ]  # fmt: skip
  data = {
      'facts': Table(('', 'setting'), facts),
      'clusterings': Table(('clustering', 'method', 'clusters the clients’', 'parameters'), described),
      'dropped': _dropped(results),
      'times': Table(('phase', 'time', 'client-rounds asked', 'client-rounds trained'), [*phases, total], (1, 2, 3)),
      'some_stored': any(t['client_rounds_trained'] < t['client_rounds_asked'] for t in timing),
      'costs': Table(('stage', 'client-rounds', 'relative to disjoint', 'bytes up', 'bytes down'), costs, (1, 2, 3, 4)),
  }  # fmt: skip
  return Section('What was run', _TEMPLATE, 'run', data)


def evaluators_section(results: Mapping[str, Any]) -> Section:
  """Returns the Phase 3 comparison: on the global test set, and on the clients' own test rows."""
  stages = [
    ('Phase 1', results['phase1']['evaluation']),
    ('unclustered, equal rounds', results['baseline']['evaluation']),
  ]
  lines: list[tuple[str, str, Mapping[str, Any]]] = [
    (name, 'the global model', evaluation) for name, evaluation in stages
  ]
  if results.get('local'):
    lines.append(
      ('every client alone', 'its own model, from the initial one', results['local']['evaluation'])
    )
  for clustering in results['clusterings']:
    for key, words in results_lib.rule_words(results).items():
      if key in clustering['evaluations']:
        lines.append((clustering['label'], words, clustering['evaluations'][key]))
    if cut := clustering.get('equal_cost'):
      words = f'own, after round {cut["round"]}: FedAvg’s client-rounds'
      lines.append((clustering['label'], words, cut['evaluation']))
  tables = []
  for scope, caption, metrics in (
    ('global', 'On the global test set (one model for all)', _METRICS[:3]),
    ('clients', 'On the clients’ own test rows', _METRICS),
  ):
    body = [
      (name, words, *(percent(e[scope][key]) for key, _ in metrics))
      for name, words, e in lines
      if e[scope] is not None
    ]
    header = ('clustering', 'model', *(words for _, words in metrics))
    tables.append(Table(header, body, range(2, len(header)), caption))
  validated = results.get('cross_validation')
  if validated:
    body = [
        (n, *(percent(v[key]) for key in ('mean', 'low', 'high', 'recall')))
        for n, v in validated['evaluations'].items()
    ]  # fmt: skip
    caption = f'{validated["folds"]}-fold cross-validation: mean client accuracy with its 95% interval over folds, mean recall'
    header = ('clustering / model', 'accuracy', 'low', 'high', 'recall')
    tables.append(Table(header, body, (1, 2, 3, 4), caption))
  return Section('Models of Phase 3', _TEMPLATE, 'evaluators', {'tables': tables})


def figures_section(heading: str, pictures: Sequence[Picture]) -> Section:
  """Returns a section of nothing but figures."""
  return Section(heading, _TEMPLATE, 'only_figures', {'pictures': pictures})


def data_section(pictures: Sequence[Picture], population: Mapping[str, Any]) -> Section:
  """Returns how many clients and planted groups there are, and their labels."""
  truths = population.get('truths') or {}
  planted = Table(('planted', 'groups'), [(name, len(groups)) for name, groups in truths.items()], (1,))
  data = {'clients': len(population['client_ids']), 'planted': planted, 'pictures': pictures}
  return Section('The data', _TEMPLATE, 'data', data)


def repeat_section(run: FinishedRun) -> Section:
  """Returns the command that repeats the run, its digest and its environment."""
  environment = run.results['environment']
  command = f'python -m phases.run_all --config_file={shlex.quote(str(run.path / "config.json"))} --output_dir=NEW_FOLDER'
  packages = environment.get('packages') or {}
  facts = [
    ('digest of the results', Cell(run.results['digest'], look='digest', element='code')),
    *(
      (name, str(environment[name]))
      for name in ('started', 'python', 'machine', 'cores')
      if name in environment
    ),
  ]
  data = {
    'words': command,
    'facts': Table(('', 'this run'), facts),
    'packages': Table(('package', 'version'), sorted(packages.items())),
  }
  return Section('How to repeat this run', _TEMPLATE, 'repeat', data)


def _parameters(parameters: Mapping[str, Any]) -> str:
  skip = ('method', 'name', 'signature')
  return ', '.join(f'{k}={v}' for k, v in parameters.items() if k not in skip and v is not None) or 'none'


def _dropped(results: Mapping[str, Any]) -> list[str]:
  """Returns which stages left out updates that were not finite, and how many."""
  stages = [('Phase 1', results['phase1']), ('the unclustered model', results['baseline'])]
  stages += [('every client alone', results['local'])] if results.get('local') else []
  stages += [(f'Phase 2 of {clustering["label"]}', clustering) for clustering in results['clusterings']]
  return [
    f'{plural(s["dropped_updates"], "update")} of {name}' for name, s in stages if s.get('dropped_updates')
  ]
