"""What of the papers was run: by table or figure and scale the rows, their seeds, and what the others would cost."""

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tff_cluster.aggregation import rules
from tff_cluster.aggregation.rule import TrainingRule
from tff_cluster.base.environment import ENGINE
from tff_cluster.base.words import plural, series
from tff_cluster.data.population import cohort_size
from tff_cluster.experiment.config import ClusteringConfig, ExperimentConfig
from tff_cluster.papers import catalogue
from tff_cluster.scorecard import headline
from tff_cluster.scorecard.published import Published
from tff_cluster.scorecard.verdicts import FEWEST_SEEDS
from tff_cluster.studies.kept.results import Kept
from tff_cluster.studies.reproduction import runs as runs_lib

_SCALES = ('paper', 'small')
# What the words of a claim have that the paper does not make.
_OF_OURS = re.compile(r'\((ours\b(?! adds)|our reading)')
# Of a claim that is in no catalogue any more: since it was kept, its words or its rule have changed.
ASKED_OTHERWISE = 'asked otherwise today'
# What verdicts begin with, in words of a count; scorecards say more behind it.
_VERDICTS = {
  'reproduced': 'reproduced', 'differs': 'differ', 'undecided': 'undecided', 'one seed': 'one seed',
  'two seeds': 'two seeds', 'holds': 'hold',
  'fails': 'fail', 'not decidable': 'not decidable', 'within': 'within the margin',
  'not comparable': 'not comparable', 'not verified': 'not verified', ASKED_OTHERWISE: ASKED_OTHERWISE,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Covered:
  """A table or figure at one scale.

  Attributes:
    published: It.
    scale: 'paper' or 'small'; 'toy' for toy problems, which have one size.
    seeds: By row that was run, its seeds; of a toy problem that was computed its own name in place of a row.
    stale: Rows of which nothing is there but what an older engine trained.
    missing: Client-rounds of one seed of the rows that were not run, at least: where a clustering has more than one cluster in a
      client, or trains to find its clusters, it costs more.
    for_verdicts: Client-rounds until all rows have the seeds that a verdict needs, at least in the same way.
    kept: The kept results behind it.
  """

  published: Published
  scale: str
  seeds: Mapping[str, Sequence[int]]
  stale: Collection[str]
  missing: int
  for_verdicts: int
  kept: Sequence[Kept] = ()

  @property
  def rows(self) -> int:
    """How many rows it has, other readings of a printed row included."""
    return len(self.published.rows)

  @property
  def was_run(self) -> bool:
    return bool(self.seeds)

  @property
  def left(self) -> str:
    """Says which rows are missing and what they would cost, what verdicts on all rows would, and what is printed and has no row."""
    count = sum(row.name not in self.seeds for row in self.published.rows)
    what = 'all rows' if count == self.rows else plural(count, 'row')
    told = [f'{what}: at least {self.missing:,} client-rounds a seed'] if count else []
    if self.for_verdicts:
      told.append(f'{FEWEST_SEEDS} seeds of all rows: at least {self.for_verdicts:,} more')
    if self.published.absent:
      told.append(f'no row: {self.published.absent}')
    return '; '.join(told) or 'nothing'

  @property
  def seeds_words(self) -> str:
    """Says which seeds rows have: '0, 1', or by rows where they differ."""
    counted = Counter(tuple(seeds) for seeds in self.seeds.values())
    told = [', '.join(map(str, seeds)) + (f' ({plural(n, "row")})' if len(counted) > 1 else '')
            for seeds, n in counted.items()]  # fmt: skip
    return '; '.join(told) or '–'

  @property
  def verdicts(self) -> str:
    """Counts the verdicts of the kept results by their first words."""
    return verdict_words(self.published.name, self.kept) or '–'


def of_kept(kept: Iterable[Kept]) -> list[Covered]:
  """Returns all tables and figures, at each scale; small only where something was run."""
  found = list(kept)
  covered = []
  for name, published in catalogue.PUBLISHED.items():
    for scale in _scales(published):
      behind = [k for k in found if k.provenance.scale == scale and name in k.provenance.published]
      ran = [
        (row, _seeds_of(each, row), each.stale)
        for each in behind
        for row in (each.provenance.published[name] or [name])
      ]
      if scale != 'small' or behind:
        covered.append(_covered(published, scale, ran, behind))
  return covered


def _seeds_of(kept: Kept, row: str) -> Sequence[int]:
  """Returns under which seeds a row was run: not all rows of a kept result need have the same."""
  lines = kept.lines('runs', row=row) if 'runs' in kept.tables else []
  return [int(line['seed']) for line in lines] or kept.provenance.seeds


def of_folder(root: Path, only: Published | None = None) -> list[Covered]:
  """Returns what lies in a user's own folder of reproductions: of all, small only where something was run, or of one at both scales."""
  covered = []
  for published in [only] if only else catalogue.PUBLISHED.values():
    for scale in _scales(published):
      if scale == 'toy':
        ran = [(published.name, [0], False)] if (root / published.name / 'index.html').exists() else []
      else:
        ran = [
          (row.name, [seed], results.environment.engine < ENGINE)
          for rows, seed, results in runs_lib.stored(published, published.scale(scale), root).values()
          for row in rows
        ]
      if scale != 'small' or ran or only:
        covered.append(_covered(published, scale, ran))
  return covered


def lines(covered: Iterable[Covered], with_rows: bool) -> Iterator[str]:
  """Yields a line for each table and scale, and where asked one for each of its rows."""
  for each in covered:
    name, scale = each.published.name, each.scale
    if scale == 'toy':
      yield f'{name}: a toy problem of seconds, {"computed" if each.was_run else "not computed"}'
      continue
    stale = f' ({len(each.stale)} by an older engine)' if each.stale else ''
    rows = f'{len(each.seeds)} of {plural(each.rows, "row")}{stale}'
    yield f'{name}, scale {scale}: {rows}; seeds {each.seeds_words}; missing {each.left}'
    for row in each.published.rows if with_rows else ():
      seeds = ', '.join(map(str, each.seeds.get(row.name, ())))
      yield f'  {row.name}: {f"seeds {seeds}" if seeds else "not run"}'


def client_rounds(config: ExperimentConfig) -> int:
  """Returns the client-rounds that an experiment asks for at least: FedAvg without clusters for all rounds, for each clustering
  one cluster of everybody in Phase 2, and what all clients train for themselves; all of it once more for each fold.
  """
  training, evaluation, clients = config.training, config.evaluation, config.data.num_clients
  cohort = cohort_size(training.cohort_fraction, clients)
  trained = cohort * (training.phase1_rounds + training.phase2_rounds * (1 + len(config.clusterings)))
  trained += training.last_round * (
    clients * evaluation.local_training + cohort * (evaluation.ditto is not None)
  )
  of_rules = [
    rule.most_rounds for rule in rules.added(evaluation.aggregation) if isinstance(rule, TrainingRule)
  ]
  trained += clients * (evaluation.fine_tuning + len(config.clusterings) * sum(of_rules))
  return trained * (1 + evaluation.num_folds)


def distinct_trainings(covered: Iterable[Covered]) -> int:
  """Returns how many trainings the rows are that were run, at most; a row is a clustering or FedAvg alone, over its seeds.

  Rows are one training where they are the same experiment, in whatever tables and figures they stand, and where a kept result says
  that their clusters came out the same. Toy problems train nothing.
  """
  from scipy.cluster.hierarchy import DisjointSet

  ran = [each for each in covered if each.published.compute is None]
  found = DisjointSet([(each.published.name, each.scale, row) for each in ran for row in each.seeds])
  first: dict[Hashable, tuple[str, str, str]] = {}
  for each in ran:
    for row, training in (*_experiments(each), *_told_trainings(each)):
      mine = (each.published.name, each.scale, row)
      found.merge(first.setdefault(training, mine), mine)
  return int(found.n_subsets)


def _experiments(each: Covered) -> Iterator[tuple[str, Hashable]]:
  """Yields the rows that were run, and what determines their training but for the seed."""
  for job in runs_lib.plan(each.published, each.published.scale(each.scale), (0,), Path()):
    experiment = (job.config.data, job.config.training, job.config.evaluation.num_folds)
    clusterings: Sequence[ClusteringConfig | None] = job.config.clusterings or (None,)
    for row, clustering in zip(job.rows, clusterings, strict=True):
      if row.name in each.seeds:
        yield row.name, (*experiment, clustering and dataclasses.replace(clustering, name=None))


def has_other_settings(kept: Kept) -> bool:
  """Returns whether rows of a published table have other settings today than those that were run, so that its command would train."""
  known = kept.provenance
  if known.scale not in _SCALES or not known.configurations:
    return False
  ran = {each for plain in known.configurations for each in _asked(ExperimentConfig.read(plain))}
  return any(
    asked not in ran
    for name, rows in known.published.items()
    for job in runs_lib.plan(
      catalogue.PUBLISHED[name], catalogue.PUBLISHED[name].scale(known.scale), known.seeds[:1], Path()
    )
    for row, asked in zip(job.rows, _asked(job.config), strict=True)
    if row.name in rows or not rows
  )


def _asked(config: ExperimentConfig) -> Iterator[Hashable]:
  """Yields what an experiment asks for with each of its clusterings, or with none, wherever its data lie."""
  data = dataclasses.replace(config.data, data_dir=None)
  for clustering in config.clusterings or (None,):
    yield data, config.training, config.evaluation, clustering


def _told_trainings(each: Covered) -> Iterator[tuple[str, Hashable]]:
  """Yields rows that were run, and what a kept result calls all that was trained for them, in a column `training`."""
  names = {row.casefold(): row for row in each.seeds}
  for kept in each.kept:
    for table in kept.tables:
      units = kept.table(table).units
      if 'training' in units:
        column = 'row' if 'row' in units else next(iter(units))
        told: dict[str, set[str]] = {}
        for line in kept.lines(table, **({'table': each.published.name} if 'table' in units else {})):
          if line['training']:
            told.setdefault(line[column].casefold(), set()).add(line['training'])
        for row in told.keys() & names.keys():
          yield names[row], (kept.name, table, frozenset(told[row]))


def verdict_words(published: str, kept: Iterable[Kept]) -> str:
  """Counts what the tables of kept results say of the numbers and of the claims of a table or figure; a claim on one seed says so, and one
  that is not the paper's.

  Of several verdicts of a number, or of a claim, the one from the most seeds counts, of as many the one of the newest engine. Numbers
  of one training and column count once, by the worst of their verdicts. Ratios that are judged are numbers, too.
  """
  found: dict[tuple[str, str, bool], tuple[tuple[int, int], str, str, Hashable]] = {}
  for each in kept:
    claims = 'claims on one seed' if on_one_seed(each) else 'claims'
    for name in each.tables:
      if {'verdict', 'table'} <= each.table(name).units.keys():
        for line in each.lines(name, table=published):
          # Rows of a kept result need not have all of its seeds. Claims have 0: their notes tell theirs.
          seeds = int(line.get('seeds') or 0) or len(each.provenance.seeds)
          weight, kind = (seeds, each.provenance.engine), 'numbers'
          if line['row'] == 'claim':
            kind = claims.replace('claims', 'claims of ours') if _OF_OURS.search(line['column']) else claims
          for is_ratio, column in ((False, 'verdict'), (True, 'ratio_verdict')):
            what, verdict = (line['row'], line['column'], is_ratio), shown_verdict(each, line, column)
            if verdict and (what not in found or weight > found[what][0]):
              found[what] = weight, kind, verdict, headline.counted_once(line.get('training', ''), *what)
  told = []
  for kind in ('numbers', 'claims', 'claims of ours', 'claims on one seed', 'claims of ours on one seed'):
    count = Counter(
      headline.worst_of_each(
        (key, verdict) for _, each_kind, verdict, key in found.values() if each_kind == kind
      )
    )
    words = series([f'{count[first]} {words}' for first, words in _VERDICTS.items() if count[first]])
    told += [f'{kind}: {words}'] if count else []
  return '; '.join(told)


def shown_verdict(kept: Kept, line: Mapping[str, str], column: str = 'verdict') -> str:
  """Returns a verdict in its first words.

  A number that one seed gave has the verdict 'one seed', whatever was written then, and a claim in words that the catalogue does not have
  any more 'asked otherwise today'.
  """
  first = next((v for v in _VERDICTS if line.get(column, '').startswith(v)), '')
  about = catalogue.PUBLISHED.get(line.get('table', ''))
  if (
    first
    and about
    and line['row'] == 'claim'
    and all(line['column'] != claim.words for claim in about.claims)
  ):
    return ASKED_OTHERWISE
  is_number = line['row'] != 'claim' and bool(line['published'])
  return 'one seed' if first and is_number and on_one_seed(kept) and not first.startswith('not') else first


def judged_claims(kept: Iterable[Kept]) -> int:
  """Returns how many claims hold, fail or are undecided over several seeds."""
  return sum(
    line['row'] == 'claim' and shown_verdict(each, line) in ('holds', 'fails', 'undecided')
    for each in kept
    if 'scorecard' in each.tables and each.provenance.scale != 'toy' and not on_one_seed(each)
    for line in each.lines('scorecard')
  )


def on_one_seed(kept: Kept) -> bool:
  return len(kept.provenance.seeds) == 1 and kept.provenance.scale != 'toy'


def _scales(published: Published) -> Sequence[str]:
  return ('toy',) if published.compute is not None else _SCALES


def _covered(
  published: Published, scale: str, ran: Sequence[tuple[str, Sequence[int], bool]], kept: Sequence[Kept] = ()
) -> Covered:
  """Args: ran: Row, seeds, and whether an older engine trained them; a row may be there several times."""
  seeds: dict[str, list[int]] = {}
  for row, more, _ in ran:
    seeds[row] = sorted({*seeds.get(row, ()), *more})
  stale = seeds.keys() - {row for row, _, is_stale in ran if not is_stale}
  there = [
    frozenset(row for row, has in seeds.items() if len(has) >= count) for count in range(1, FEWEST_SEEDS + 1)
  ]
  # Often the same: all rows, or none.
  costs = {rows: _missing(published, scale, rows) for rows in dict.fromkeys(there)}
  missing = [costs[rows] for rows in there]
  return Covered(published, scale, seeds, stale, missing[0], sum(missing), kept)


def _missing(published: Published, scale: str, there: Collection[str]) -> int:
  """Returns the client-rounds of one seed of the rows that are not there; FedAvg of rows that share it counts once. Toy problems have none."""
  rows = tuple(row for row in published.rows if row.name not in there)
  if not rows:
    return 0
  asked = dataclasses.replace(published, rows=rows)
  shared, total = set[str](), 0
  for job in runs_lib.plan(asked, published.scale(scale), (0,), Path()):
    training, folds = job.config.training, 1 + job.config.evaluation.num_folds
    # What would be FedAvg's whatever number of its rounds is before the clustering.
    apart = dataclasses.replace(training, phase1_rounds=1, phase2_rounds=training.last_round - 1)
    same = dataclasses.replace(job.config, training=apart, clusterings=()).digest
    fedavg = folds * training.last_round * cohort_size(training.cohort_fraction, job.config.data.num_clients)
    total += client_rounds(job.config) - (fedavg if same in shared else 0)
    shared.add(same)
  return total
