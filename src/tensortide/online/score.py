"""Scores."""

from __future__ import annotations

import math

from tensortide.arrays import Floats


def fitness(values: Floats, predicted: Floats) -> float:
    """Return the percentage of fitness (PoF) ``1 - |x - y| / |x|`` as a fraction.

    For values that are all zero: 1 where the prediction is zero too, else minus infinity.

    >>> import numpy as np
    >>> fitness(np.array([3.0, 4.0]), np.array([3.0, 4.0]))
    1.0
    """
    gap = values - predicted
    size, error = math.sqrt(values @ values), math.sqrt(gap @ gap)
    if size == 0.0:
        return 1.0 if error == 0.0 else -math.inf
    return 1.0 - error / size
