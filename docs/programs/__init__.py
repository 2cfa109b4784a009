"""Programs that write pages and pictures of docs/ from the code; `make docs` runs them all, and nothing that is installed needs them."""
