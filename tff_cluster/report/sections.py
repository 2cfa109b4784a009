"""The sections of report.html about the experiment as a whole."""

import shlex
from collections.abc import Mapping, Sequence

from tff_cluster.base import cost as cost_lib
from tff_cluster.base import fields as fields_lib
from tff_cluster.base.grouping import by_key
from tff_cluster.base.types import Json
from tff_cluster.base.words import duration, percent, plural, size
from tff_cluster.clustering import methods
from tff_cluster.data.class_counts import Metrics, RowMetrics
from tff_cluster.experiment import config_file
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.measured import Evaluation
from tff_cluster.experiment.result_parts import Clustering, Population
from tff_cluster.experiment.results import Results
from tff_cluster.papers.rohith2020.setting import Setting
from tff_cluster.report import costs
from tff_cluster.report.answer import ClusteringAnswer, cost_ratio
from tff_cluster.report.finished_run import FinishedRun
from tff_cluster.report.pages import Cell, Section, Table
from tff_cluster.report.pictures import Picture
from tff_cluster.scorecard import identical_clusterings

_TEMPLATE = 'report.html'


def words_section(answers: Sequence[ClusteringAnswer], setting: Setting) -> Section | None:
  """Returns what the first screen leaves out of every clustering, in sentences; None where there is none.

  Args:
    answers: See answer.answer_run.
    setting: What was run.
  """
  remarks = []
  if setting.is_of_paper and not setting.is_papers:
    remarks.append(f'Run on {setting.words}: scaled down from Rohith et al. 2020.')
  if any(identical_clusterings.JOINT in answer.label for answer in answers):
    remarks.append(identical_clusterings.WORDS)
  data = {'answers': answers, 'remarks': remarks}
  return Section('Each clustering in words', _TEMPLATE, 'in_words', data) if answers else None


def run_section(run: FinishedRun, merged: Sequence[Clustering]) -> Section:
  """Returns what was run, how long each phase took and what it cost.

  Args:
    run: The run, with every clustering as it was asked for.
    merged: Its clusterings, see identical_clusterings.merged.
  """
  results, population = run.results, run.results.population
  config, training, rows = results.config.data, results.config.training, population.rows
  batch = f'batch {training.batch_size}' if training.batch_size else 'whole-client batches'
  model = (
    f'{training.model}, {results.training.parameters:,} parameters ({size(results.training.model_bytes)})'
  )
  optimization = ', '.join(f'{name} {value}' for name, value in training.optimization.items())
  facts = [
      ('data', f'{population.name}: {plural(len(run.client_ids), "client")}, {population.num_classes} classes'),
      ('rows', ', '.join(f'{count:,} {name.replace("_", " ")}' for name, count in vars(rows).items())),
      (
          'test rows a client', f'{rows.test / len(run.client_ids):,.1f} on average: one row is worth '
          f'{100 * len(run.client_ids) / rows.test:.2g} points of such a client’s accuracy',
      ),
      ('model', model),
      ('rounds', f'{training.phase1_rounds} in Phase 1, {training.phase2_rounds} in each cluster in Phase 2'),
      (
          'client work', f'{plural(training.local_epochs, "local epoch")}, {batch}, learning rate '
          f'{training.learning_rate:g}, {100 * training.cohort_fraction:g}% of the clients a round',
      ),
      *([('optimization', optimization)] if optimization else []),
      ('seeds', f'training {training.seed}, data {config.data_seed}'),
  ]  # fmt: skip
  described = [(c.label, c.method, c.basis, _parameters(c.method, c.parameters)) for c in results.clusterings]
  timing = results.timing
  total = (
      'total', duration(sum(t.seconds for t in timing)), f'{sum(t.client_rounds_asked for t in timing):,}',
      f'{sum(t.client_rounds_trained for t in timing):,}',
  )  # fmt: skip
  phases = [
    (t.name, duration(t.seconds), f'{t.client_rounds_asked:,}', f'{t.client_rounds_trained:,}')
    for t in timing
  ]
  data = {
      'facts': Table(('', 'setting'), facts),
      'clusterings': Table(('clustering', 'method', 'clusters the clients’', 'parameters'), described),
      'dropped': _dropped(results),
      'times': Table(('phase', 'time', 'client-rounds asked', 'client-rounds trained'), [*phases, total], (1, 2, 3)),
      'some_stored': any(t.client_rounds_trained < t.client_rounds_asked for t in timing),
      'costs': _costs(results, merged),
      'about_costs': costs.WORDS,
  }  # fmt: skip
  return Section('What was run', _TEMPLATE, 'run', data)


def _costs(results: Results, merged: Sequence[Clustering]) -> Table:
  """Returns what each stage cost, and how often FedAvg's part of the budget in Phase 2 that is."""
  unit = cost_lib.UNITS[results.config.evaluation.budget]
  rows = [
    (name, *costs.cells([stage.cost]), '–')
    for name, stage in (
      ('Phase 1', results.phase1),
      (f'unclustered, {results.baseline.rounds} rounds', results.baseline),
    )
  ]
  rows += [
    (each.title, *costs.cells([each.cost]), f'{cost_ratio(results, each):.2f}')
    for each in results.personalized
  ]
  for clustering in merged:
    # The same clusters may have been dearer to find.
    parts = identical_clusterings.parts(clustering)
    for same in by_key(parts, lambda part: part.cost).values():
      label = identical_clusterings.joined(part.label for part in same)
      ratio = f'{cost_ratio(results, same[0]):.2f}'
      rows.append((label, *costs.cells([same[0].cost]), ratio))
  header = ('stage', *costs.HEADER, f'FedAvg’s {unit} in Phase 2, times')
  return Table(header, rows, range(1, len(header)))


def evaluators_section(results: Results) -> Section:
  """Returns the Phase 3 comparison: on the global test set, and on the clients' own test rows."""
  stages = [
    ('Phase 1', results.phase1.evaluation),
    ('unclustered, equal rounds', results.baseline.evaluation),
  ]
  lines: list[tuple[str, str, Evaluation]] = [
    (name, 'the global model', evaluation) for name, evaluation in stages
  ]
  lines += [(each.title, each.model, each.evaluation) for each in results.personalized]
  for clustering in results.clusterings:
    for key, words in results_lib.rule_words(results).items():
      if (found := clustering.evaluations.get(key)) is not None:
        told = words if found.own_rounds is None else f'{words}, {plural(found.own_rounds, "round")}'
        lines.append((clustering.label, told, found))
    # The same clusters may have been dearer to find, and have fewer rounds then.
    parts = identical_clusterings.parts(clustering)
    for same in by_key(parts, lambda part: part.equal_cost and part.equal_cost.round).values():
      if (cut := same[0].equal_cost) is not None:
        words = f'own, after round {cut.round}: FedAvg’s {cost_lib.UNITS[results.config.evaluation.budget]}'
        lines.append((identical_clusterings.joined(part.label for part in same), words, cut.evaluation))
  of_rows = ('clustering', 'model', 'accuracy', 'precision', 'recall')
  of_clients = (*of_rows, 'mean client', 'highest client', 'clients at it')
  on_global = [(*words, *_measured(e.global_test)) for *words, e in lines if e.global_test is not None]
  on_clients = [(*words, *_measured(e.clients)) for *words, e in lines]
  tables = [
    Table(of_rows, on_global, range(2, len(of_rows)), 'On the global test set (one model for all)'),
    Table(of_clients, on_clients, range(2, len(of_clients)), 'On the clients’ own test rows'),
  ]
  if (validated := results.cross_validation) is not None:
    body = [
        (name, percent(of.mean), percent(of.low), percent(of.high), percent(of.precision), percent(of.recall))
        for name, of in validated.evaluations.items()
    ]  # fmt: skip
    caption = f'{validated.folds}-fold cross-validation: mean client accuracy with its 95% interval over folds, mean precision and recall'
    header = ('clustering / model', 'accuracy', 'low', 'high', 'precision', 'recall')
    tables.append(Table(header, body, range(1, len(header)), caption))
  return Section('Models of Phase 3', _TEMPLATE, 'evaluators', {'tables': tables})


def figures_section(heading: str, pictures: Sequence[Picture]) -> Section:
  """Returns a section of nothing but figures."""
  return Section(heading, _TEMPLATE, 'only_figures', {'pictures': pictures})


def data_section(pictures: Sequence[Picture], population: Population) -> Section:
  """Returns how many clients and planted groups there are, and their labels."""
  groups = [(name, len(groups)) for name, groups in population.truths.items()]
  planted = Table(('planted', 'groups'), groups, (1,))
  data = {'clients': len(population.client_ids), 'planted': planted, 'pictures': pictures}
  return Section('The data', _TEMPLATE, 'data', data)


def repeat_section(run: FinishedRun) -> Section:
  """Returns the command that repeats the run, its digest and its environment."""
  environment = run.results.environment
  path = run.path / 'config.json'
  allowing = ' --allow_imports' if config_file.names_code(path) else ''
  given = f'--config_file={shlex.quote(str(path))}{allowing} --output_dir=NEW_FOLDER'
  facts = [
    ('digest of the results', Cell(run.results.digest, look='digest', element='code')),
    ('started', environment.started),
    ('python', environment.python),
    ('machine', environment.machine),
    ('cores', environment.cores),
  ]
  data = {
    'words': f'python -m phases.run_all {given}',
    'facts': Table(('', 'this run'), facts),
    'packages': Table(('package', 'version'), sorted(environment.packages.items())),
  }
  return Section('How to repeat this run', _TEMPLATE, 'repeat', data)


def _measured(found: RowMetrics) -> list[str]:
  shares = [found.accuracy, found.precision, found.recall]
  if isinstance(found, Metrics):
    shares += [found.mean_client_accuracy, found.highest_client_accuracy, found.share_at_highest]
  return [percent(share) for share in shares]


def _parameters(method: str, parameters: Mapping[str, Json]) -> str:
  """Returns a clustering's parameters in a line, without those that do not apply to the others."""
  # A user's own method is not imported for a report.
  options = methods.METHODS[method].fields() if method in methods.METHODS else {}

  skip = {'method', 'name', 'signature'} | {
    name for name, option in options.items() if not fields_lib.applies(option, parameters.get)
  }
  return ', '.join(f'{k}={v}' for k, v in parameters.items() if k not in skip and v is not None) or 'none'


def _dropped(results: Results) -> list[str]:
  """Returns which stages left out updates that were not finite, and how many."""
  counts = {
    'Phase 1': results.phase1.dropped_updates,
    'the unclustered model in Phase 2': results.baseline.dropped_updates - results.phase1.dropped_updates,
    **{each.title: each.dropped_updates for each in results.personalized},
    **{f'Phase 2 of {c.label}': c.dropped_updates for c in results.clusterings},
  }
  return [f'{plural(count, "update")} of {name}' for name, count in counts.items() if count]
