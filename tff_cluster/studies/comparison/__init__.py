"""One experiment, several seeds: overlapping clusterings against disjoint ones, and both against FedAvg and local training."""
