"""Results that are kept beside the code: written from finished runs, read by the pages of docs/results/."""
