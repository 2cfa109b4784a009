"""The scorecard: every published number and claim beside ours, with a verdict."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tff_cluster.reporting import claims, evidence, published
from tff_cluster.reporting.files import csv_text, write_file
from tff_cluster.reporting.setting import Setting, describe_setting


@dataclasses.dataclass(frozen=True)
class Row:
  """One line of the scorecard.

  Attributes:
    table: 'Table 1' .. 'Table 3' or 'Claim'.
    cell: What is compared.
    published: From 0 to 1; for a claim the paper's numbers in words.
    ours: From 0 to 1, None where not run; for a claim our numbers in words.
    difference: Ours minus published, in percentage points; None for claims and where not run.
    verdict: In words; it names what was run wherever that is not the paper's setting.
    note: What a reader must know, with the source.
  """

  table: str
  cell: str
  published: float | str
  ours: float | str | None
  difference: float | None
  verdict: str
  note: str


def build_scorecard(results: Mapping[str, Any]) -> list[Row]:
  """Returns the rows: the cells of tables 1 to 3 (one row for every clustering of the method), then claims.

  Args:
    results: results.json, see tff_cluster/results.py.
  """
  setting = describe_setting(results['config'], len(results['population']['client_ids']))
  rows: list[Row] = []
  for number in published.PUBLISHED:
    rows.extend(_cells(number, results, setting))
  facts = evidence.gather(results)
  rows.extend(_claim(claim, facts, setting) for claim in claims.CLAIMS)
  return rows


def write_scorecard(rows: Sequence[Row], folder: Path) -> tuple[Path, Path]:
  """Writes scorecard.json and scorecard.csv into the folder and returns their paths.

  Raises:
    EnvironmentFault: where a file cannot be written.
  """
  plain = [dataclasses.asdict(row) for row in rows]
  as_json, as_csv = folder / 'scorecard.json', folder / 'scorecard.csv'
  write_file(as_json, json.dumps(plain, indent=2, ensure_ascii=False) + '\n')
  header = [field.name for field in dataclasses.fields(Row)]
  write_file(as_csv, csv_text(header, ([row[name] for name in header] for row in plain)))
  return as_json, as_csv


def _cells(number: published.PublishedNumber, results: Mapping[str, Any], setting: Setting) -> list[Row]:
  found = [c for c in results['clusterings'] if c['method'] == number.method]
  if number.table == 'Table 1':
    # Another metric or linkage is another experiment than the one table 1 reports.
    missing = 'this run has no hierarchical clustering with l2 and single linkage'
    found = [
      c for c in found if (c['parameters'].get('metric'), c['parameters'].get('linkage')) == ('l2', 'single')
    ]
  else:
    missing = f'this run has no {number.method} clustering'
  if not found:
    return [
      Row(number.table, number.cell, number.value, None, None, 'not run', f'{missing}; {number.source}')
    ]
  rows = []
  for clustering in found:
    ours = evidence.quantities(results, clustering)[number.quantity]
    differs = evidence.paper_differences(clustering)
    cell = number.cell if len(found) == 1 else f'{number.cell} [{clustering["label"]}]'
    rows.append(
        Row(
            number.table, cell, number.value, ours, round(100.0 * (ours - number.value), 6),
            published.verdict(number.value, ours, setting), '; '.join([*differs, *_remarks(number), number.source]),
        )
    )  # fmt: skip
  return rows


def _remarks(number: published.PublishedNumber) -> list[str]:
  if number.table == 'Table 1':
    return ['ours starts the clusters from their members’ mean and not from the global model as FL+HC does']
  if number.table == 'Table 2':
    return ['clients use the blended cluster models (section 7.2)']
  return []


def _claim(claim: claims.Claim, facts: evidence.Evidence, setting: Setting) -> Row:
  finding = claim.check(facts)
  ran = finding.verdict != 'not run'
  verdict = f'{finding.verdict} ({setting.remark})' if ran and not setting.is_papers else finding.verdict
  labels = [facts.labels[m] for m in claim.needs if ran and facts.labels[m] != m]
  called = f'checked on {", ".join(labels)}' if labels else ''
  departures = [phrase for m in claim.needs if ran for phrase in facts.departures[m]]
  note = '; '.join(part for part in (finding.note, called, *departures, claim.source) if part)
  return Row('Claim', claim.words, claim.published, finding.ours if ran else None, None, verdict, note)
