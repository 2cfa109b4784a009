"""Writes report.html: one file that needs no network, and every figure beside it."""

import base64
import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tff_cluster.base.words import plural
from tff_cluster.clustering.method import Method
from tff_cluster.experiment.config import ExperimentConfig
from tff_cluster.papers.rohith2020.setting import describe_setting
from tff_cluster.papers.rohith2020.tables import PAPER
from tff_cluster.report import cluster_sections, run_scorecard, sections
from tff_cluster.report.answer import answer_run
from tff_cluster.report.files import write_file, write_records
from tff_cluster.report.finished_run import FinishedRun, read_run
from tff_cluster.report.malicious_section import caution, malicious_section
from tff_cluster.report.markup import Markup, raw, table, tag
from tff_cluster.report.new_clients_section import new_clients_section
from tff_cluster.report.pictures import Picture, draw_pictures
from tff_cluster.report.splits.section import splits_section
from tff_cluster.report.style import CSS
from tff_cluster.scorecard import identical_clusterings
from tff_cluster.storage import files as files_lib

PAPER_HEADING = f'Tables and claims of {PAPER}'
_REPORT = 'Report'


def write_report(run_dir: Path, on_drawn: Callable[[], object] | None = None) -> Path:
  """Writes report.html, scorecard.json, scorecard.csv and figures/*.svg and *.png into a run's folder.

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
  clusterings = identical_clusterings.merged(whole.results['clusterings'])
  run = dataclasses.replace(whole, results={**whole.results, 'clusterings': clusterings})
  setting = describe_setting(run.results['config'], len(run.client_ids))
  headline, answers = answer_run(run.results)
  beside = run_scorecard.build(whole.results, setting)
  write_records(*beside.records(), run.path)
  pictures = draw_pictures(run, answers, setting.is_of_paper, on_drawn)
  whole, run = (_with_own_time(each, time.monotonic() - begun) for each in (whole, run))

  def figures(section: str) -> list[Markup]:
    return [figure(picture) for picture in pictures if picture.section == section]

  warning = (
    [tag('p', tag('strong', 'Take care. '), words, class_='alarm')] if (words := caution(run.results)) else []
  )
  parts: list[tuple[str, list[Markup]]] = [
    ('The answer', [*sections.answer_section(headline, answers, setting), *warning]),
    ('What was run', sections.run_section(whole, clusterings)),
    *([(PAPER_HEADING, beside.section())] if setting.is_of_paper else []),
    ('Who gained and who lost', figures('clients')),
    ('Accuracy over rounds', figures('rounds')),
    ('Models of Phase 3', sections.evaluators_section(run.results)),
    ('Planted groups and found clusters', cluster_sections.recovery_section(run)),
  ]
  if harm := malicious_section(run):
    parts.append(('Malicious clients', harm))
  # New clients are assigned by each method's own rule, also to the same clusters.
  if joining := new_clients_section(whole):
    parts.append(('New clients', joining))
  for clustering in clusterings:
    for part in identical_clusterings.parts(clustering):
      if recursion := splits_section(run, part, figures):
        parts.append((f'Splits of {part["label"]}', recursion))
    content = cluster_sections.clustering_section(run, clustering, figures)
    parts.append((f'Clusters of {clustering["label"]}', content))
  parts += [
    ('Clusterings that were not trained', cluster_sections.candidates_section(run, figures)),
    ('The data', _data_section(pictures, run.results['population'])),
    ('How to repeat this run', sections.repeat_section(run)),
  ]
  if not setting.is_of_paper and beside.was_run:
    parts.append((f'Beside {PAPER}', beside.folded()))
  title = f'{run.results["population"]["name"]}: clustered federated learning'
  target = run.path / 'report.html'
  approaches = {clustering['approach'] for clustering in run.results['clusterings']}
  kind = (
    Method.approach if len(approaches) > 1 else next(iter(approaches), 'Federated averaging, no clustering')
  )
  write_file(target, page(title, f'{kind} · {setting.words}', parts))
  files_lib.save_json(run.path / 'results.json', whole.results)
  return target


def num_figures(config: ExperimentConfig) -> int:
  """Returns about how many figures the report of an experiment draws."""
  return 3 + 6 * len(config.clusterings)


def _with_own_time(run: FinishedRun, seconds: float) -> FinishedRun:
  """Returns the run with what its report took among its times; that of an earlier report is left out."""
  timing = [entry for entry in run.results['timing'] if entry['name'] != _REPORT]
  own = {'name': _REPORT, 'seconds': seconds, 'client_rounds_asked': 0, 'client_rounds_trained': 0}
  return dataclasses.replace(run, results={**run.results, 'timing': [*timing, own]})


def page(title: str, subtitle: str, parts: Sequence[tuple[str, Sequence[Markup]]]) -> str:
  contents = tag(
      'nav', tag('strong', 'Contents'),
      tag('ol', [tag('li', tag('a', heading, href=f'#s{i}')) for i, (heading, _) in enumerate(parts)]),
      class_='card', aria_label='Contents',
  )  # fmt: skip
  body = [
    tag(
      'section', tag('h2', heading), list(content) or tag('p', 'Nothing to show.', class_='soft'), id=f's{i}'
    )
    for i, (heading, content) in enumerate(parts)
  ]
  # The answer comes before the contents: a reader who stops after one screen has read it.
  page = tag(
      'html',
      tag(
          'head', tag('meta', charset='utf-8'), tag('meta', name='viewport', content='width=device-width, initial-scale=1'),
          tag('title', title), tag('style', raw(CSS)),
      ),
      tag('body', tag('main', tag('h1', title), tag('p', subtitle, class_='sub'), body[0], contents, body[1:])),
      lang='en',
  )  # fmt: skip
  return f'<!DOCTYPE html>\n{page}\n'


def figure(picture: Picture) -> Markup:
  source = f'data:image/svg+xml;base64,{base64.b64encode(picture.svg).decode("ascii")}'
  files = f' Files: figures/{picture.name}.svg and .png.'
  return tag(
      'figure', tag('img', src=source, alt=picture.title),
      tag('figcaption', tag('strong', f'{picture.title}. '), picture.caption, files),
  )  # fmt: skip


def _data_section(pictures: Sequence[Picture], population: dict) -> list[Markup]:
  truths = population.get('truths') or {}
  planted = [(name, len(groups)) for name, groups in truths.items()]
  return [
    tag('p', f'{plural(len(population["client_ids"]), "client")}. The label histograms count training rows.'),
    table(('planted', 'groups'), planted, numeric=(1,)) if planted else tag('p', 'No groups were planted.'),
    *(figure(picture) for picture in pictures if picture.section == 'data'),
  ]
