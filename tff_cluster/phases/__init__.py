"""The three-phase method of Rohith et al. 2020, "Federated Learning through Distance-Based Clustering".

Phase 1   FedAvg over all clients; every device keeps the weights that it sent in the last round.
(between) clustering of those weights; the clusterings all stand on the same Phase 1.
Phase 2   each cluster starts from the plain mean of its members' weights and runs FedAvg on its own.
Phase 3   average, weighted and blended aggregation of the cluster models, beside each client's own model.

Departures and choices: E = 1 and B = 20 are defaults, the paper names neither. A cluster's "highest
attained accuracy" is measured on its members' validation rows, never on test rows. Beside the clusterings
stands a baseline that the paper lacks: the same FedAvg gone on for as many rounds as Phase 2 has.

FL+HC (Briggs et al. 2020, Algorithm 1) is the same phases with signature=updates and cluster_start=global_model. With
a method that alternates, such as CFL's recursion, clustering and Phase 2 are one (phases/recursion.py).
"""
