"""What mkdocs.yml can't say: the pages of results are generated, so the site lists them by their folder. mkdocs calls this."""

import pathlib
from typing import Any


def on_config(config: Any) -> Any:
  """Adds docs/results/*.md to the section Results by their titles: pages of several papers, then each paper's, then notes."""
  docs = pathlib.Path(config['docs_dir'])
  (section,) = (entry['Results'] for entry in config['nav'] if 'Results' in entry)
  pages = sorted(
    (path for path in docs.glob('results/*.md') if path.stem != 'index'),
    key=lambda path: (path.stem == 'notes', path.stem[-1].isdigit(), path.stem),
  )
  section[1:1] = [{_title(path): path.relative_to(docs).as_posix()} for path in pages]
  return config


def _title(path: pathlib.Path) -> str:
  # mkdocs would take the file's name, since these pages begin with a comment.
  return next(line[2:] for line in path.read_text(encoding='utf-8').splitlines() if line.startswith('# '))
