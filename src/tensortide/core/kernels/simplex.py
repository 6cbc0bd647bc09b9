"""Weights on a simplex that minimise a quadratic: how candidates are mixed."""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Flags, Floats
from tensortide.core.kernels.compiled import compiled

STEPS = 200  # pairwise moves at most


@compiled("void(float64[:,::1], boolean[::1], float64, float64[::1])")
def mix_simplex(errors: Floats, allowed: Flags, ridge: float, weights: Floats) -> None:
    """Write the non-negative weights that add up to one and minimise ``w' (G + ridge) w``.

    The ridge is a share of the mean of the diagonal.  Only `allowed` candidates get weight; where
    no error is known, or one is not finite, the first has it all.  Each move takes weight from the
    worst candidate that has some and gives it to the best.
    """
    n = len(weights)
    size = 0.0
    finite = 0.0
    count = 0
    for i in range(n):
        size += errors[i, i]
        count += 1 if allowed[i] else 0
        for j in range(n):
            finite += 0.0 * errors[i, j]
    if not (size > 0.0 and finite == 0.0):
        for i in range(n):
            weights[i] = 1.0 if i == 0 else 0.0
        return
    for i in range(n):
        weights[i] = 1.0 / count if allowed[i] else 0.0
    more = ridge * size / n
    slope = np.empty(n)
    for _ in range(STEPS):
        best = -1
        worst = -1
        for i in range(n):
            if not allowed[i]:
                continue
            slope[i] = more * weights[i]
            for j in range(n):
                slope[i] += errors[i, j] * weights[j]
            if best < 0 or slope[i] < slope[best]:
                best = i
            if weights[i] > 0.0 and (worst < 0 or slope[i] > slope[worst]):
                worst = i
        gap = slope[worst] - slope[best]
        if not gap > 1e-10 * abs(slope[best]):
            break
        curve = errors[best, best] + errors[worst, worst] - 2.0 * errors[best, worst] + 2.0 * more
        move = weights[worst]
        if curve > 0.0:
            move = min(move, gap / curve)
        weights[best] += move
        weights[worst] -= move
        if weights[worst] < 1e-12:
            weights[worst] = 0.0
    total = 0.0
    for i in range(n):
        total += weights[i]
    for i in range(n):
        weights[i] /= total
