"""What Sattler et al. 2019 (CFL) claim, and the page of its toy problems."""
