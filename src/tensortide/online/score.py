"""Scores."""

from __future__ import annotations

import math

from tensortide.arrays import Floats


def norm(values: Floats) -> float:
    """Return the root of the sum of squares, added up in the same order everywhere."""
    from tensortide.core.kernels.dense import dot

    return math.sqrt(dot(values, values))


def share_missed(missed: float, size: float) -> float | None:
    """Return the relative error ``|x - y| / |x|`` from its two norms; None where x is zero.

    >>> share_missed(1.0, 4.0), share_missed(1.0, 0.0)
    (0.25, None)
    """
    return missed / size if size > 0.0 else None


def fitness(values: Floats, predicted: Floats) -> float:
    """Return the percentage of fitness (PoF) ``1 - |x - y| / |x|`` as a fraction.

    For values that are all zero: 1 where the prediction is zero too, else minus infinity.

    >>> import numpy as np
    >>> fitness(np.array([3.0, 4.0]), np.array([3.0, 4.0]))
    1.0
    """
    missed = norm(values - predicted)
    share = share_missed(missed, norm(values))
    if share is None:
        return 1.0 if missed == 0.0 else -math.inf
    return 1.0 - share
