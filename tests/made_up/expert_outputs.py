"""What two experts give for three samples of three classes."""

import numpy as np

# float64[experts, samples, classes].
HAND = np.array([
  [[1 / 2, 1 / 4, 1 / 4], [1 / 5, 3 / 5, 1 / 5], [12 / 20, 1 / 20, 7 / 20]],
  [[1 / 4, 1 / 4, 1 / 2], [2 / 5, 1 / 5, 2 / 5], [2 / 20, 10 / 20, 8 / 20]],
])  # fmt: skip
