"""A published number or claim beside ours: cells, claims, verdicts and intervals, for whatever paper."""
