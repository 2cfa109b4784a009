"""How clear a bi-partition must be where it is guarded, as chosen on other seeds than results are told of."""

# No two clients across the halves may be more similar than CROSS, and every client must be more similar to its own half
# than that, by GAP. Chosen on seeds 0 to 4 (GAP) and 0 to 9 (CROSS).
GAP, CROSS = 0.1, 0.05
