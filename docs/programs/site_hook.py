"""What mkdocs.yml can't say: the pages of results are generated, so the site lists them by their folder. mkdocs calls this."""

import pathlib
from typing import Any


def on_config(config: Any) -> Any:
  """Adds docs/results/*.md to the section Results."""
  docs = pathlib.Path(config['docs_dir'])
  (section,) = (entry['Results'] for entry in config['nav'] if 'Results' in entry)
  section[1:1] = [
    path.relative_to(docs).as_posix() for path in sorted(docs.glob('results/*.md')) if path.stem != 'index'
  ]
  return config
