"""Scores."""

from __future__ import annotations

import math

import numpy as np

from tensortide.arrays import Floats


def norm(values: Floats) -> float:
    """Return the root of the sum of squares, added up in the same order everywhere."""
    from tensortide.core.kernels.dense import dot

    numbers = np.require(values, np.float64, ["C", "W"])  # kernels take arrays that may be written
    return math.sqrt(dot(numbers, numbers))


def share_missed(missed: float, size: float) -> float | None:
    """Return the relative error ``|x - y| / |x|`` from its two norms; None where x is zero.

    >>> share_missed(1.0, 4.0), share_missed(1.0, 0.0)
    (0.25, None)
    """
    return missed / size if size > 0.0 else None


def fitness(values: Floats, predicted: Floats) -> float:
    """Return the percentage of fitness (PoF) ``1 - |x - y| / |x|`` as a fraction.

    For values that are all zero: 1 where the prediction is zero too, else minus infinity.

    >>> fitness(np.array([3.0, 4.0]), np.array([3.0, 4.0]))
    1.0
    """
    size, missed = norm(values), norm(values - predicted)
    if size == 0.0:
        return 1.0 if missed == 0.0 else -math.inf
    return 1.0 - missed / size
