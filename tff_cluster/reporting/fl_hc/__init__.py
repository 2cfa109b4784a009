"""Claims of Briggs et al. 2020 (FL+HC), by section of the paper."""
