"""Makes kept results of finished runs: of a reproduction, a comparison, a league, a single run, or a Phase 1 that was asked something."""

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tff_cluster.base import records
from tff_cluster.base.environment import Environment, describe_environment, machines
from tff_cluster.base.errors import InputError
from tff_cluster.base.words import message_of
from tff_cluster.experiment import phase_files
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.config import FEDAVG, PLACES
from tff_cluster.experiment.results import Results
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.papers import catalogue
from tff_cluster.scorecard import headline
from tff_cluster.scorecard.identical_clusterings import JOINT
from tff_cluster.scorecard.paired_statistics import worst_decile
from tff_cluster.scorecard.published import PAPER
from tff_cluster.scorecard.rows import COLUMNS, Ours, Row, Run, gather
from tff_cluster.scorecard.summary import over_clients
from tff_cluster.storage import files, tables
from tff_cluster.storage.tables import csv_lines, csv_text
from tff_cluster.studies.kept import asked, compared
from tff_cluster.studies.kept.results import Provenance
from tff_cluster.studies.kept.rounding import percent, rounded
from tff_cluster.studies.reproduction import runs as runs_lib

ORIGIN = 'written from the runs’ own files'
_STANDINGS = (
  'budget', 'method', 'kind', 'mean rank', 'low', 'high', 'above FedAvg [settings]', 'below FedAvg [settings]', 'unclear [settings]',
  'Omega', 'client-rounds [x FedAvg]', 'bytes [x FedAvg]', 'collapsed [runs]', 'alternating [runs]',
)  # fmt: skip
_RUNS = (
  'row', 'seed', 'digest', 'clusters', 'threshold', 'ARI', 'client-rounds', 'accuracy after [%]', 'accuracy end [%]',
  'clients at target after [%]', 'clients at target end [%]', 'own models end [%]', 'FedAvg end [%]', 'longest update at the first test', 'minutes [min]',
)  # fmt: skip
_SUMMARY = (
  'label', 'kind', 'accuracy [%]', 'difference [points]', 'low [points]', 'high [points]', 'clusters', 'memberships', 'ARI', 'Omega',
  'client-rounds',
)  # fmt: skip
_MODELS = (
  'contender', 'model', 'accuracy [%]', 'difference [points]', 'low [points]', 'high [points]', 'worst tenth [%]', 'better [clients]',
  'worse [clients]', 'global test [%]',
)  # fmt: skip
# All tables that are ever made here.
TABLES = (
  'table', 'models', 'scorecard', 'runs', 'experts', 'comparison', 'gains', 'pairs', 'overlap', 'new_clients', 'trained_on', 'league', 'standings',
  'alarms', 'malicious', 'disturbance', 'best', 'answers',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Made:
  """What is to be kept.

  Attributes:
    provenance: Where it comes from.
    texts: Tables as CSV text by name.
    seeds: Of each row of a reproduction.
    asked: The commands, without folders, that asked something of the run's Phase 1.
  """

  provenance: Provenance
  texts: Mapping[str, str]
  seeds: Mapping[str, Sequence[int]] = dataclasses.field(default_factory=dict)
  asked: Sequence[str] = ()


def of_folder(folder: Path) -> Made:
  """Returns what a folder of finished runs gives; commands are empty where its files do not tell them.

  Args:
    folder: OUTPUT_DIR of a comparison, a league, a run, or a run whose Phase 1 was asked something, or OUTPUT_DIR/TABLE/SCALE of a reproduction (OUTPUT_DIR/FIGURE of a toy
      problem).

  Raises:
    InputError: if it is none of these, or its files are not as the programs write them.
  """
  try:
    if (folder / 'league.json').exists():
      return _of_league(folder)
    if (folder / 'comparison.json').exists():
      return _of_comparison(folder)
    if (folder / 'results.json').exists():
      return _of_run(folder)
    if (folder / 'scorecard.csv').exists():
      return _of_reproduction(folder)
    if (folder / 'phase1.json').exists() and asked.tables_of(folder)[0]:
      return _of_phase1(folder)
  except (LookupError, TypeError, AttributeError, FileNotFoundError, records.Mismatch) as error:
    raise InputError(
      f'{folder} has files that are not as the programs write them, or lacks some ({message_of(error)}); run the command again that made it'
    ) from error
  raise InputError(
    f'{folder} holds no finished run, comparison, league, reproduction or Phase 1 that was asked something (of a table: the folder of its scale, '
    'for instance runs/reproduce/fl_hc/table2/paper)'
  )


def runs_of(folder: Path) -> list[Path]:
  """Returns the folders of the runs that the tables of a folder hold (see of_folder); other seeds that lie beside them are none of these."""
  if (folder / 'league.json').exists():
    found = files.load_json(folder / 'league.json')
    return [folder / setting / f'seed_{seed}' for setting in found['settings'] for seed in found['seeds']]
  if (folder / 'comparison.json').exists():
    return [folder / f'seed_{seed}' for seed in files.load_json(folder / 'comparison.json')['seeds']]
  if (folder / 'results.json').exists():
    return [folder]
  published = catalogue.PUBLISHED.get('/'.join(folder.parts[-3:-1]))
  return (
    []
    if published is None or published.compute is not None
    else list(runs_lib.stored(published, published.scale(folder.name), folder.parents[2]))
  )


def pictures_of(folder: Path) -> dict[str, Path]:
  """Returns the pictures of a folder of finished runs by name."""
  places = folder / 'figures', folder / 'disturbance/figures'
  found = [*(path for place in places for path in place.glob('*.svg')), *folder.glob('replay.svg')]
  return {path.stem: path for path in found}


def _of_league(folder: Path) -> Made:
  found = files.load_json(folder / 'league.json')
  inside = {name: folder / name for name in found['settings']}
  for place in inside.values():
    there = files.load_json(place / 'comparison.json')
    if there['seeds'] != found['seeds']:
      raise InputError(
        f'{place} was compared under the seeds {", ".join(map(str, there["seeds"]))}, and the league under '
        f'{", ".join(map(str, found["seeds"]))}; run the league again'
      )
    if there['digests'] != found.get('digests', {}).get(place.name):
      raise InputError(f'{place} was compared anew since the league was; run the league again')
  standings = [
    (
      budget, each['name'], each['kind'], *(rounded(each[key]) for key in ('rank', 'low', 'high')), each['above'], each['below'],
      each['unclear'], rounded(each['omega']), round(each['client_rounds'], 2), round(each['bytes'], 2), each['collapsed'], each['alternating'],
    )
    for budget, found_at in found['standings'].items()
    for each in found_at
  ]  # fmt: skip
  texts = compared.tables_of(inside)
  texts |= {
    'league': compared.with_units(folder / 'league.csv'),
    'standings': csv_text(_STANDINGS, standings),
  }
  title = f'All methods on {", ".join(inside)}'
  return Made(_of_compared(title, found['command'], folder, inside.values()), texts)


def _of_comparison(folder: Path) -> Made:
  found = files.load_json(folder / 'comparison.json')
  texts = compared.tables_of({'': folder}) | {'comparison': compared.with_units(folder / 'comparison.csv')}
  return Made(_of_compared('Clusterings beside each other', found['command'], folder, [folder]), texts)


def _of_compared(title: str, command: str, folder: Path, compared_in: Iterable[Path]) -> Provenance:
  """Returns the provenance of a comparison or league; raises InputError where its tables are not of the runs that lie there today."""
  runs = runs_of(folder)
  if gone := [run for run in runs if not (run / 'results.json').exists()]:
    raise InputError(f'{gone[0]} is in the tables of {folder} and holds no finished run; compare again')
  found = {run: results_lib.read(run / 'results.json') for run in runs}
  for place in compared_in:
    for seed, digest in files.load_json(place / 'comparison.json')['digests'].items():
      run = place / f'seed_{seed}'
      if found[run].digest != digest:
        raise InputError(f'{run} has other results than the tables of {folder}; compare again')
  named = [(f'{run.parent.name} {run.name}', results) for run, results in found.items()]
  return _provenance(title, named, commands=[command])


def _of_run(folder: Path) -> Made:
  results = results_lib.read(folder / 'results.json')
  lines = [
    (line.label, line.kind, percent(line.mean_client_accuracy), percent(line.difference))
    + (tuple(map(percent, line.interval)) if line.interval else (None, None))
    + (line.num_clusters, _memberships(results, line.label), line.ari, line.omega, line.client_rounds)
    for line in results.summary
  ]
  texts = {'table': csv_text(_SUMMARY, lines), 'models': csv_text(_MODELS, _model_lines(results))}
  if (folder / 'scorecard.csv').exists():
    texts['scorecard'] = tables.text(folder / 'scorecard.csv')
  published, scale = rows_of(results)
  answers, commands = asked.tables_of(folder)
  words = (catalogue.PUBLISHED[name].scale(scale).words for name in published)
  scaled_down = '; '.join(filter(None, dict.fromkeys(words)))
  made = _provenance('One run', [('', results)], published=published, scale=scale, scaled_down=scaled_down)
  return Made(made, texts | answers, asked=commands)


def _of_phase1(folder: Path) -> Made:
  run = RunFolder(folder)
  config = run.load_config()
  where = Environment.from_json(files.load_json(run.environment))
  phase1 = run.load_finished(run.phase1, phase_files.Phase1)
  texts, commands = asked.tables_of(folder)
  made = dataclasses.replace(
    _provenance('Questions to a Phase 1', []),
    seeds=[config.training.seed],
    data_seeds=[config.data.data_seed],
    engine=where.engine,
    commit=where.commit,
    machine=machines([where]),
    date=where.started[:10],
    minutes=round(phase1.timing.seconds / 60, 1),
    configurations=[_without_folders(config)],
  )
  return Made(made, texts, asked=commands)


def rows_of(results: Results) -> tuple[dict[str, list[str]], str]:
  """Returns the rows of tables and figures that a run is, as they are printed, and at which scale; nothing where it is none."""
  runnable = {name: each for name, each in catalogue.PUBLISHED.items() if each.compute is None}
  for scale in (PAPER.name, 'small'):
    rows = {
      name: [row.name for row in runs_lib.rows_of(each, each.scale(scale), results)[0]]
      for name, each in runnable.items()
    }
    if any(rows.values()):
      return {name: names for name, names in rows.items() if names}, scale
  return {}, ''


def _memberships(results: Results, label: str) -> float | None:
  """Returns in how many clusters a client of a clustering is, on average; None for a contender without clusters."""
  # Identical clusterings share a line of the summary, under all their names.
  found = next((c for c in results.clusterings if c.label in label.split(JOINT)), None)
  return None if found is None else found.memberships


def _model_lines(results: Results) -> Iterator[tuple[Any, ...]]:
  """Yields what models are worth to their clients, beside FedAvg without clusters at equal rounds, and on the global test set.

  Intervals are over clients, with the draws of the summary, so that clients' own models have the same interval in both.
  """
  fedavg, seed = np.asarray(results.baseline.evaluation.client_accuracy), results.config.training.seed
  found = [('Phase 1', '', results.phase1.evaluation), (FEDAVG, '', results.baseline.evaluation)]
  found += [(each.title, '', each.evaluation) for each in results.personalized]
  found += [(each.label, name, of) for each in results.clusterings for name, of in each.evaluations.items()]
  for contender, model, evaluation in found:
    accuracy = np.asarray(evaluation.client_accuracy)
    over = None if contender == FEDAVG else over_clients(accuracy - fedavg, seed)
    told = (None, None, None) if over is None else (over.mean, over.low, over.high)
    yield (
      contender,
      model,
      percent(float(accuracy.mean())),
      *map(percent, told),
      percent(worst_decile(accuracy)),
      *(int(each.sum()) for each in (accuracy > fedavg, accuracy < fedavg)),
      percent(None if evaluation.global_test is None else evaluation.global_test.accuracy),
    )


def _of_reproduction(folder: Path) -> Made:
  toy = catalogue.PUBLISHED.get('/'.join(folder.parts[-2:]))
  if toy is not None:
    made = _provenance(toy.title, [], published={toy.name: []}, scale='toy')
    assert toy.compute is not None
    *_, records = headline.scored(toy, {result.name: result for result in toy.compute(0)}, '')
    text = csv_lines(records)
    if text != tables.text(folder / 'scorecard.csv'):
      raise InputError(
        f'{folder} is not what {toy.name} gives today with seed 0; run it again, without another seed'
      )
    # It takes seconds and leaves no environment.json: the checkout that keeps it is taken for the one that ran it.
    here = describe_environment()
    date = here.started[:10]
    told = dataclasses.replace(made, seeds=[0], commit=here.commit, machine=machines([here]), date=date)
    return Made(told, {'scorecard': text})
  published = catalogue.PUBLISHED.get('/'.join(folder.parts[-3:-1]))
  if published is None or folder.name not in (PAPER.name, published.small.name, 'small'):
    raise InputError(f'{folder} is not TABLE/SCALE of a table or figure below the output folder of its runs')
  scale = published.scale(folder.name)
  stored = list(runs_lib.stored(published, scale, folder.parents[2]).values())
  if not stored:
    raise InputError(f'{folder} holds no finished run of {published.name}')
  populations: dict[str, str] = {}
  for _, seed, results in stored:
    partition = json.dumps(_without_folders(results.config)['data'], sort_keys=True)
    if populations.setdefault(partition, results.population.digest) != results.population.digest:
      raise InputError(
        f'{folder} holds runs of seed {seed} on other rows than each other; keep those of one data set'
      )
  lines = {(row, seed): line for row, seed, line in _run_lines(stored)}
  names = [row.name for row in published.rows if any(row.name == name for name, _ in lines)]
  found = [(f'{" and ".join(row.name for row in rows)}, seed {seed}', r) for rows, seed, r in stored]
  # Of all runs that lie there: the last command may have been asked for some seeds or rows only, and its files tell of these.
  rows = gather(stored, runs_lib.window_rounds(published, scale))
  *_, records = headline.scored(published, rows, scale.remark)
  texts = {
    'scorecard': csv_lines(records),
    'runs': csv_text(_RUNS, [lines[key] for key in sorted(lines, key=lambda k: (names.index(k[0]), k[1]))]),
  }
  texts |= _expert_table({name: rows[name] for name in names})
  made = _provenance(
    published.title, found, published={published.name: names}, scale=folder.name, scaled_down=scale.words
  )
  seeds = {name: sorted(seed for row, seed in lines if row == name) for name in names}
  return Made(made, texts, seeds)


def _expert_table(rows: Mapping[str, Ours]) -> dict[str, str]:
  """Returns how much of the global test set experts have right by rule, means over seeds, as CSV text; nothing where no row has any."""
  told = {name: ours for name, ours in rows.items() if ours.expert_accuracies}
  header = ['row', 'seeds', FEDAVG, *next((ours.expert_accuracies for ours in told.values()), ())]
  lines = [
    (name, len(ours.seeds), *(rounded(float(np.mean(found))) for found in (ours.baseline_global, *ours.expert_accuracies.values())))
    for name, ours in told.items()
  ]  # fmt: skip
  units = [name if place < 2 else f'{name} [%]' for place, name in enumerate(header)]
  return {'experts': csv_text(units, lines)} if told else {}


def _run_lines(
  stored: Iterable[tuple[tuple[Row, ...], int, Results]],
) -> Iterator[tuple[str, int, tuple[Any, ...]]]:
  for rows, seed, results in stored:
    minutes = round(sum(each.seconds for each in results.timing) / 60, 1)
    for row, clustering in zip(rows, results.clusterings or (None,), strict=True):
      ours = Ours(row, (Run(seed, results, clustering),))
      columns = {name: values[0] for name, values in ours.columns.items()} or dict.fromkeys(COLUMNS)
      told: tuple[float | None, ...] = (None,) * 4
      own = None
      first = clustering.splits[0].max_update_norm if clustering is not None and clustering.splits else None
      if clustering is not None:
        aris = [values[0] for values in ours.recovery.values()]
        # Identical clusterings share a line of the summary, under all their names.
        named = (each for each in results.summary if clustering.label in each.label.split(JOINT))
        spent = next((each.client_rounds for each in named), None)
        # Of several clusters' models a client uses the mean; the accuracies before are the means of theirs.
        own = percent(results_lib.own(clustering).clients.mean_client_accuracy)
        told = (clustering.num_clusters, clustering.threshold, aris[0] if aris else None, spent)
      numbers = (
        *(rounded(columns[name]) for name in COLUMNS),
        own,
        rounded(ours.baseline_columns['accuracy_end'][0]),
        rounded(first),
      )
      yield row.name, seed, (row.name, seed, results.digest, *told, *numbers, minutes)


def _provenance(
  title: str,
  found: Sequence[tuple[str, Results]],
  commands: Sequence[str] = (),
  published: Mapping[str, list[str]] | None = None,
  scale: str = '',
  scaled_down: str = '',
) -> Provenance:
  """Returns the provenance of runs, which have names."""
  results = [each for _, each in found]
  environments = [each.environment for each in results]
  seeds = sorted({each.config.training.seed for each in results})
  # Each experiment once, under its first seed: not all rows of a table need have the same seeds.
  first: dict[str, Any] = {}
  for each in sorted(results, key=lambda each: each.config.training.seed):
    first.setdefault(_experiment(each.config), each.config)
  return Provenance(
    title=title,
    commands=list(commands),
    published=dict(published or {}),
    scale=scale,
    setting='',
    scaled_down=scaled_down,
    seeds=seeds,
    data_seeds=sorted({each.config.data.data_seed for each in results}),
    engine=min((each.engine for each in environments), default=0),
    origin=ORIGIN,
    commit=', '.join(dict.fromkeys(c for each in environments for c in each.commit.split(', ') if c)),
    machine=machines(environments),
    date=min((each.started[:10] for each in environments), default=''),
    minutes=round(sum(time.seconds for each in results for time in each.timing) / 60, 1) if results else None,
    schema=max((each.schema for each in results), default=None),
    digests={name: each.digest for name, each in found},
    configurations=list(map(_without_folders, first.values())),
  )


def _experiment(config: results_lib.ExperimentConfig) -> str:
  """Returns what an experiment is, whatever its seeds."""
  plain = _without_folders(config)
  data, training = plain['data'] | {'data_seed': None}, plain['training'] | {'seed': None}
  return json.dumps(plain | {'data': data, 'training': training}, sort_keys=True)


def _without_folders(config: results_lib.ExperimentConfig) -> dict[str, Any]:
  plain = config.to_json()
  data = {k: v for k, v in plain['data'].items() if k not in PLACES}
  if config.data.data_file is not None:
    data['data_file'] = os.path.basename(config.data.data_file)
  return plain | {'data': data}
