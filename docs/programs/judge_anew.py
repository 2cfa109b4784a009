"""Judges kept results by today's cells and claims: `python -m docs.programs.judge_anew --data_dir=DIR NAME ...`; without names all of them.

Their archives hold what the runs' phases saved, so that the command of a result puts its runs together anew and trains nothing. Every
other kept table must come out as it is kept, and gets the columns that it did not have yet; scorecard.csv and alarms.csv are written anew, digests are
those of today's form of results.json, and provenance.json says by which commit it was judged.
"""

import csv
import dataclasses
import io
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence

from tff_cluster.base.environment import describe_environment
from tff_cluster.base.errors import Fault, InputError
from tff_cluster.storage.tables import csv_text
from tff_cluster.studies.kept import coverage, keep, results

KEPT = pathlib.Path(__file__).parents[1] / 'results/data'
_SCORECARD = 'scorecard'
# Tables of words of ours, which are written anew.
_TOLD = (_SCORECARD, 'alarms')
# Columns that another machine, or a later form of results.json, gives other values.
_OF_MACHINE = ('minutes', 'digest')
# What asks a finished run something, and makes none.
_ASKS = re.compile(r' phases\.(replay|disturb) ')


def main(arguments: Sequence[str]) -> int:
  places = [each.partition('=')[2] for each in arguments if each.startswith('--data_dir=')]
  names = [each for each in arguments if not each.startswith('--data_dir=')]
  kept = results.read_all(KEPT)
  refused, commit = 0, _commit()
  for name in names or [name for name, each in kept.items() if _is_judged(each)]:
    try:
      if name not in kept or not _is_judged(kept[name]):
        raise InputError(f'{name}: nothing kept with {results.RUNS}')
      print(f'{name}: {"; ".join(judge(kept[name], commit, *places[:1])) or "as it was"}', flush=True)
    except (Fault, subprocess.CalledProcessError) as error:
      print(error, file=sys.stderr, flush=True)
      refused += 1
  return 2 if refused else 0


def _commit() -> str:
  """Returns the commit that judges; results that were written by this program do not make it dirty."""
  command = ['git', 'status', '--porcelain', '--', '.', ':!docs/results']
  root = pathlib.Path(__file__).parents[2]
  found = describe_environment().commit
  changed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
  return found if changed else found.removesuffix('-dirty')


def _is_judged(kept: results.Kept) -> bool:
  return kept.provenance.scale != 'toy' and (kept.folder / results.RUNS).is_file()


def judge(kept: results.Kept, commit: str, data_dir: str = '') -> list[str]:
  """Writes the scorecard and the digests of a kept result by today's code, and returns what changed, in words.

  Args:
    kept: A result with its archive.
    commit: Whose claims these are.
    data_dir: Where its data lies, where it is not part of the package.

  Raises:
    InputError: where the command has other settings today, or another table than these comes out otherwise than it is kept.
    CalledProcessError: where a command of the result fails.
  """
  known = kept.provenance
  if coverage.has_other_settings(kept):
    raise InputError(f'{kept.name}: its command has other settings today, and would train')
  with tempfile.TemporaryDirectory() as temporary:
    # Digests are told by the name of the folder.
    root = pathlib.Path(temporary).resolve() / kept.name
    with tarfile.open(kept.folder / results.RUNS) as archive:
      archive.extractall(root, filter='data')
    is_table = all(' phases.reproduce ' in command for command in known.commands)
    for command in known.commands:
      if not _ASKS.search(command):
        words = [each for each in shlex.split(command)[1:] if not each.startswith('--output_dir=')]
        words = [each.replace('=DIR', f'={data_dir}') for each in words]
        subprocess.run(
          [sys.executable, *words, f'--output_dir={root}'], check=True, stdout=subprocess.DEVNULL
        )
    made = keep.of_folder(root / next(iter(known.published)) / known.scale if is_table else root)
  texts = {name: made.texts[name] for name in _TOLD if name in made.texts}
  for name in set(kept.tables) & made.texts.keys() - {*_TOLD}:
    told_before = (kept.folder / f'{name}.csv').read_bytes().decode()
    there = _results(told_before)
    now = [
      {c: cell for c, cell in line.items() if not there or c in there[0]}
      for line in _results(made.texts[name])
    ]
    texts[name] = _renewed(told_before, made.texts[name])
    if now != there:
      pairs = zip(now, there, strict=False)  # Where lines are missing, all that can be said.
      columns = {c for one, other in pairs for c in {*one, *other} if one.get(c) != other.get(c)}
      raise InputError(
        f'{kept.name}/{name}.csv comes out otherwise than it is kept: {", ".join(sorted(columns)) or "other lines"}'
      )
  before = _verdicts(kept)
  for name in {*_TOLD} & set(kept.tables) - texts.keys():
    (kept.folder / f'{name}.csv').unlink()
  told = dataclasses.replace(known, judged=commit, digests=made.provenance.digests)
  results.write(kept.folder, told, texts, ())
  after = _verdicts(results.Kept(kept.folder, told))
  changed = [key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]
  renewed = sum(known.digests.get(name) != digest for name, digest in told.digests.items())
  return [
    *(f'{" / ".join(key)}: {before.get(key, "new")}, now {after.get(key, "gone")}' for key in changed),
    *([f'{renewed} of {len(told.digests)} digests'] if renewed else []),
  ]


def _results(text: str) -> list[dict[str, str]]:
  """Returns the lines of a CSV file without columns of the machine."""
  lines = csv.DictReader(io.StringIO(text))
  return [{name: cell for name, cell in line.items() if not name.startswith(_OF_MACHINE)} for line in lines]


def _renewed(before: str, now: str) -> str:
  """Returns a CSV file with the digests of another one, and the columns that it does not have yet, and with its own cells elsewhere."""
  there, made = (list(csv.DictReader(io.StringIO(text))) for text in (before, now))
  if len(there) != len(made) or not there:
    return before
  taken = [name for name in made[0] if name == 'digest' or name not in there[0]]
  lines = [
    [(new if column in taken else old)[column] for column in new]
    for old, new in zip(there, made, strict=True)
  ]
  return csv_text(list(made[0]), lines) if taken else before


def _verdicts(kept: results.Kept) -> dict[tuple[str, str], str]:
  if _SCORECARD not in kept.tables:
    return {}
  return {
    (line['row'], line['column']): coverage.shown_verdict(kept, line) for line in kept.lines(_SCORECARD)
  }


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
