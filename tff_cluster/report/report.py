"""Writes report.html: one file that needs no network, and every figure beside it."""

import dataclasses
import itertools
import time
from collections.abc import Callable
from pathlib import Path

from tff_cluster.clustering.method import Method
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.experiment.measured import Timing
from tff_cluster.experiment.result_parts import Clustering
from tff_cluster.papers.rohith2020.setting import describe_setting
from tff_cluster.report import (
  cluster_sections,
  first_screen,
  latex,
  lost_training,
  pages,
  run_scorecard,
  sections,
)
from tff_cluster.report.alternation.section import rounds_section
from tff_cluster.report.answer import answer_run, told_alarms
from tff_cluster.report.files import write_records
from tff_cluster.report.finished_run import FinishedRun, read_run
from tff_cluster.report.malicious_section import caution_of, malicious_section
from tff_cluster.report.new_clients_section import new_clients_section
from tff_cluster.report.pictures import Picture, of_run, save_drawn
from tff_cluster.report.splits.section import splits_section
from tff_cluster.scorecard import identical_clusterings, summary
from tff_cluster.storage import files as files_lib
from tff_cluster.storage.files import write_file

_REPORT = 'Report'


def write_report(run_dir: Path, on_drawn: Callable[[], object] = lambda: None) -> Path:
  """Writes report.html, scorecard.json, .csv and .tex and figures/*.svg and *.png into a run's folder.

  What reading and drawing took is added to `timing` in results.json.

  Args:
    run_dir: Folder with results.json and, for the figures that need them, arrays.npz.
    on_drawn: Called after each figure, for instance to move a progress bar.

  Returns:
    The path of report.html.

  Raises:
    InputError: where the folder holds no finished results.
    EnvironmentFault: where a file cannot be written.
  """
  begun, whole = time.monotonic(), read_run(Path(run_dir))
  clusterings: list[Clustering] = [*identical_clusterings.merged(whole.results.clusterings)]
  run = dataclasses.replace(whole, results=dataclasses.replace(whole.results, clusterings=clusterings))
  setting = describe_setting(run.results.config, len(run.client_ids))
  answers, lines = answer_run(run.results), summary.of_run(whole.results)
  seeds, gains = [run.results.config.training.seed], first_screen.drawn(lines)
  beside = run_scorecard.build(whole.results, setting)
  write_records(beside.records(), run.path)
  write_file(run.path / 'scorecard.tex', latex.text(beside.shown()))
  pictures = list[Picture]()
  for drawn in itertools.chain([gains] if gains else [], of_run(run, answers, setting.is_of_paper)):
    pictures.append(save_drawn(drawn, run.path))
    on_drawn()
  whole, run = (_with_own_time(each, time.monotonic() - begun) for each in (whole, run))

  def figures(section: str) -> list[Picture]:
    return [picture for picture in pictures if picture.section == section]

  parts = [
    first_screen.section(
      first_screen.sentence(lines, seeds),
      first_screen.table(lines, seeds),
      first_screen.about(seeds),
      [*filter(None, (caution_of(run.results), lost_training.told([run.results]), *told_alarms(answers)))],
      figures('answer'),
    ),
    sections.words_section(answers, setting),
    sections.figures_section('Who gained and who lost', figures('clients')),
    sections.run_section(whole, clusterings),
    beside.section() if setting.is_of_paper else None,
    sections.figures_section('Accuracy over rounds', figures('rounds')),
    sections.evaluators_section(run.results),
    cluster_sections.recovery_section(run),
    malicious_section(run),
    # New clients are assigned by each method's own rule, also to the same clusters.
    new_clients_section(whole),
  ]
  for clustering in clusterings:
    for part in identical_clusterings.parts(clustering):
      parts += [section(run, part, figures) for section in (splits_section, rounds_section)]
    parts.append(cluster_sections.clustering_section(run, clustering, figures))
  parts += [
    cluster_sections.candidates_section(run, figures),
    sections.data_section(figures('data'), run.results.population),
    sections.repeat_section(run),
    beside.folded() if not setting.is_of_paper and beside.was_run else None,
  ]
  title = f'{run.results.population.name}: clustered federated learning'
  target = run.path / 'report.html'
  approaches = {clustering.approach for clustering in clusterings}
  kind = (
    Method.approach if len(approaches) > 1 else next(iter(approaches), 'Federated averaging, no clustering')
  )
  write_file(target, pages.page(title, f'{kind} · {setting.words}', parts))
  files_lib.save_json(run.path / 'results.json', whole.results)
  return target


def num_figures(config: ExperimentConfig) -> int:
  """Returns about how many figures the report of an experiment draws."""
  return 4 + 6 * len(config.clusterings)


def _with_own_time(run: FinishedRun, seconds: float) -> FinishedRun:
  """Returns the run with what its report took among its times; that of an earlier report is left out."""
  timing = [entry for entry in run.results.timing if entry.name != _REPORT]
  timed = dataclasses.replace(run.results, timing=[*timing, Timing(_REPORT, seconds, 0, 0)])
  return dataclasses.replace(run, results=timed)
