"""A comparison as one interactive page: every contender, and every client with its data, neighbours, clusters and accuracies."""
