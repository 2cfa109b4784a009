"""The recursion of a bi-partition in a run's report."""
