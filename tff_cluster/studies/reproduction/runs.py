"""Runs the experiments behind a published table or figure, as far as they have not been run.

Rows that differ in their clustering only are one run, on one Phase 1; all runs share one store, so that whatever
rows, tables and seeds have in common is trained once.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tff_cluster.base.errors import InputError, argument
from tff_cluster.experiment import preset
from tff_cluster.experiment import results as results_lib
from tff_cluster.experiment.config import ClusteringConfig, DataConfig, ExperimentConfig
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.experiment.run_folder import RunFolder
from tff_cluster.phases import cost_estimates
from tff_cluster.scorecard.published import Published, Scale
from tff_cluster.scorecard.rows import WINDOW, Row
from tff_cluster.storage import files


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Job(cost_estimates.Run):
  """The run of the rows that share everything but their clustering, under a seed.

  Its clustering i is that of row i; a row of FedAvg alone is a run of its own, which has none.

  Attributes:
    rows: The rows, in the table's order; their clusterings are those of the scale.
    seed: Seed of data and training.
  """

  rows: tuple[Row, ...]
  seed: int


def plan(
  published: Published,
  scale: Scale,
  seeds: Sequence[int],
  root: Path,
  data_dir: str | None = None,
  only: str | None = None,
) -> list[Job]:
  """Returns the runs behind a table or figure.

  Args:
    published: The table or figure.
    scale: At which size.
    seeds: One run of everything for each of them.
    root: The folder below which the runs lie.
    data_dir: Where data lies; it is no part of an experiment's identity.
    only: Take the row of this name, or where there is none the rows whose name contains this text.

  Raises:
    InputError: if no row is left.
  """
  named = [row for row in published.rows if row.name == only]
  rows = named or [row for row in published.rows if only is None or only in row.name]
  if not rows:
    names = '; '.join(row.name for row in published.rows)
    raise InputError(f'{argument("rows", only)}: {published.name} has no such row; its rows are: {names}')
  groups: dict[str, list[Row]] = {}
  for row in rows:
    if row.clustering:
      changed = scale.clustering.get(row.clustering['method'], {})
      row = dataclasses.replace(row, clustering={**row.clustering, **changed})
    groups.setdefault(f'{row.preset} {_words(row.settings)}', []).append(row)
  jobs = []
  for members in groups.values():
    for seed in seeds:
      changes = _scaled(members[0].settings, scale) | {'seed': seed, 'data_seed': seed}
      if data_dir is not None:
        changes['data_dir'] = data_dir
      clusterings = tuple(ClusteringConfig(**row.clustering) for row in members if row.clustering)
      base = scale.preset or members[0].preset or published.preset
      config = preset.read_preset(base, changes, clusterings)
      # The folder is the experiment's: another choice of rows is another run, which shares the store.
      told = _words({field: changes[field] for field in members[0].settings})
      place = '_'.join(filter(None, (told, f'seed{seed}', config.digest[:8])))
      folder = RunFolder(root / published.name / scale.name / place)
      more = f' and {len(members) - 1} more' if len(members) > 1 else ''
      name = f'{members[0].name}{more}, seed {seed}'
      jobs.append(Job(name, config, folder, rows=tuple(members), seed=seed))
  return jobs


def finished(
  published: Published, scale: Scale, root: Path, ran: Sequence[tuple[Job, results_lib.Results]]
) -> list[tuple[tuple[Row, ...], int, results_lib.Results]]:
  """Returns all runs of a table that its page can show: those of this call, and what earlier calls ran of other rows.

  Args:
    published: The table or figure.
    scale: At which size.
    root: The folder below which the runs lie.
    ran: This call's jobs, with their results. Earlier ones count where their seed is one of these, and their clients
      hold the same rows; where this call has no run of the same partition, the data has to lie in the same place.

  Returns:
    The rows, in the order of the results' clusterings, the seed and the results of each run.
  """
  own = [(job.seed, results, *rows_of(published, scale, results)) for job, results in ran]
  runs = [_run(rows, seed, results, clusterings) for seed, results, rows, clusterings in own if rows]
  seeds = {job.seed for job, _ in ran}
  places = {_place(results.config) for _, results in ran}
  populations = {_partition(results.config): results.population.digest for _, results in ran}
  have = {(row.name, seed) for rows, seed, _ in runs for row in rows}
  for rows, seed, results in stored(published, scale, root).values():
    known = populations.get(_partition(results.config))
    same = _place(results.config) in places if known is None else known == results.population.digest
    new = [i for i, row in enumerate(rows) if (row.name, seed) not in have]
    if seed not in seeds or not same or not new:
      continue
    have |= {(rows[i].name, seed) for i in new}
    # FedAvg alone has one row and no clustering.
    clusterings = [results.clusterings[i] for i in new] if results.clusterings else []
    runs.append(_run([rows[i] for i in new], seed, results, clusterings))
  return runs


def stored(
  published: Published, scale: Scale, root: Path
) -> dict[Path, tuple[tuple[Row, ...], int, results_lib.Results]]:
  """Returns the finished runs of a table that lie below a folder, by their own folders: the rows, in the order of the results'
  clusterings, seed and results. Runs that cannot be read, those of other experiments, and those whose folds are not done are passed over.
  """
  found = {}
  for path in sorted((root / published.name / scale.name).glob('*/results.json')):
    try:
      results = results_lib.read(path)
    except (InputError, files.DamagedFile):
      continue
    if results.config.evaluation.num_folds and results.cross_validation is None:
      continue
    rows, clusterings = rows_of(published, scale, results)
    if rows:
      found[path.parent] = _run(rows, results.config.training.seed, results, clusterings)
  return found


def _run(
  rows: Sequence[Row], seed: int, results: results_lib.Results, clusterings: list[Clustering]
) -> tuple[tuple[Row, ...], int, results_lib.Results]:
  return tuple(rows), seed, dataclasses.replace(results, clusterings=clusterings)


def rows_of(
  published: Published, scale: Scale, results: results_lib.Results
) -> tuple[list[Row], list[Clustering]]:
  """Returns which rows of a table a run is, in the table's order, and its clusterings of these; FedAvg alone has a row and no clustering.

  A clustering is found by what it is, wherever it stands among those of the run: one that failed and was run again is the last. What
  was added to a run, clusterings and rules of Phase 3, makes it no other one.
  """
  config = results.config
  by_label = {clustering.label: clustering for clustering in results.clusterings}
  ran = [clustering for clustering in config.clusterings if clustering.label in by_label]
  rows, clusterings = [], []
  for job in plan(published, scale, (config.training.seed,), Path()):
    if _shared(job.config) != _shared(config) or not _rules(job.config) <= _rules(config):
      continue
    planned: Sequence[ClusteringConfig | None] = job.config.clusterings or (None,)
    for row, clustering in zip(job.rows, planned, strict=True):
      if clustering is None:
        rows.append(row)
      elif clustering in ran:
        rows.append(row)
        clusterings.append(by_label[clustering.label])
  return rows, clusterings


def window_rounds(published: Published, scale: Scale) -> int:
  """Returns over how many rounds the end is judged: as many as the clusters of each row of the table have, WINDOW at most, and at most
  a quarter of all rounds, since what still rises would be judged by models that are worse.
  """
  jobs = plan(published, scale, (0,), Path())
  totals = (job.config.training.phase1_rounds + job.config.training.phase2_rounds for job in jobs)
  of_clusters = (job.config.training.phase2_rounds for job in jobs if job.config.clusterings)
  return max(1, min([WINDOW, *of_clusters, *(total // 4 for total in totals)]))


def _scaled(settings: Mapping[str, Any], scale: Scale) -> dict[str, Any]:
  changed = dict(settings) | dict(scale.changes)
  for name, factor in scale.factors.items():
    changed[name] = max(1, round(factor * changed[name]))
  if scale.rounds is not None:
    if 'phase1_rounds' not in changed:
      raise InputError(
        f'scale {scale.name}: its rounds are those of both phases, and a row does not say its phase1_rounds'
      )
    if changed['phase1_rounds'] >= scale.rounds:
      raise InputError(
        f'scale {scale.name}: {scale.rounds} rounds leave none after a row’s phase1_rounds={changed["phase1_rounds"]}'
      )
    changed['phase2_rounds'] = scale.rounds - changed['phase1_rounds']
  return changed


def _partition(config: ExperimentConfig) -> DataConfig:
  """Returns what names the rows of all clients, as far as a configuration does: not where the data lies."""
  return dataclasses.replace(config.data, data_dir=None, data_file=None)


def _shared(config: ExperimentConfig) -> ExperimentConfig:
  """Returns the part of an experiment that all that can be added to it stands on."""
  evaluation = dataclasses.replace(config.evaluation, aggregation=())
  return dataclasses.replace(config, data=_partition(config), clusterings=(), evaluation=evaluation)


def _rules(config: ExperimentConfig) -> set[str]:
  return set(config.evaluation.aggregation)


def _place(config: ExperimentConfig) -> tuple[str | None, str | None]:
  return config.data.data_dir, config.data.data_file


def _words(settings: Mapping[str, Any]) -> str:
  """Returns a folder's name for the settings that tell runs of one table apart."""
  short = {'cohort_fraction': 'cf', 'phase1_rounds': 'n', 'batch_size': 'B', 'local_epochs': 'E'}
  told = {name: value for name, value in settings.items() if name != 'phase2_rounds'}
  return '_'.join(
    value if isinstance(value, str) else f'{short.get(name, name)}{value:g}' for name, value in told.items()
  )
