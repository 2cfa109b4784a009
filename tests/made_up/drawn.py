"""Draws a section alone, as it stands on its page."""

from tff_cluster.report import pages


def drawn(section: pages.Section | None) -> str:
  """Returns the HTML below the heading of a section; empty where there is none."""
  return '' if section is None else str(pages.draw(section))
