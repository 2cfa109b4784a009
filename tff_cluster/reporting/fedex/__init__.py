"""Claims and scorecard of Miles et al. 2024 (FedEx)."""
