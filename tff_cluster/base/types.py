"""Names of types that several rooms speak of."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

# The trainable weights of a model, float32 arrays in the order in which Keras has them.
Weights: TypeAlias = tuple[np.ndarray, ...]
# What JSON can say.
Json: TypeAlias = bool | int | float | str | Sequence['Json'] | Mapping[str, 'Json'] | None
