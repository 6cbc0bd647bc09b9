"""Growth after the maximum delay: the tail that the triangle cannot see."""

from __future__ import annotations

import numpy as np

from tensortide.nowcast.triangle import Triangle

WINDOW = 120  # complete dates from which the tail is read
SLOWEST = 0.7  # decline from one block of delays to the next, at most
DOUBT = 0.5  # share of the tail that is its standard deviation


def tail_share(triangle: Triangle) -> float:
    """Return the expected growth after the maximum delay, as a share of the count until then.

    The last half of the delays, in three blocks, declines by a factor from block to block; the
    blocks after the maximum go on with it.  Uses reports until the as-of date only.
    """
    block = max((triangle.max_delay + 1) // 6, 1)
    complete = triangle.n_dates - triangle.max_delay
    first = max(0, complete - WINDOW)
    inside = triangle.within() & (triangle.dates >= first) & (triangle.dates < complete)
    if complete <= 0 or not inside.any():
        return 0.0
    sums = np.bincount(triangle.delays[inside], triangle.counts[inside], triangle.max_delay + 1)
    total = float(sums.sum())
    parts = [sums[-(k + 1) * block : len(sums) - k * block].sum() for k in (2, 1, 0)]
    if total <= 0.0 or parts[0] <= 0.0 or parts[2] <= 0.0:
        return 0.0
    decline = min(float(np.sqrt(parts[2] / parts[0])), SLOWEST)
    return float(parts[2] / total * decline / (1.0 - decline))
