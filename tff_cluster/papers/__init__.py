"""What the papers print: a folder each, with its numbers, settings and claims. It is registered by being there.

A paper is a package with PUBLISHED: its tables and figures by name (scorecard.published.by_name).
"""
