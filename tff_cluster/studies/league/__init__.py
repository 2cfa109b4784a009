"""Comparisons in several settings of the data, side by side: which method to take when."""
