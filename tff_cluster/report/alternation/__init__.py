"""The rounds of a method that alternates between clustering and training in a run’s report."""
