"""Toy problems of Sattler et al. 2019, figures 1 and 2: exact, and without TensorFlow."""
