"""The pages of docs/results/: rendered from templates and kept results, and held to them."""
