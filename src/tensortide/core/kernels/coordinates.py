"""Rows under elementwise penalties and ties to other rows: coordinate descent."""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.kernels.compiled import compiled


@compiled(
    "void(float64[:,:,::1], float64[:,::1], float64, float64[::1], boolean, boolean[::1], "
    "int64[::1], int64[::1], float64[::1], float64[::1], int64, float64, float64[:,::1])"
)
def descend_rows(
    gram: Floats,
    rhs: Floats,
    ridge: float,
    l1: Floats,
    nonnegative: bool,
    still: Flags,
    pointers: Positions,
    neighbours: Positions,
    ties: Floats,
    scale: Floats,
    passes: int,
    tol: float,
    rows: Floats,
) -> None:
    """Lower ``a G a' - 2 q a' + ridge |a|^2 + l1 |a| + sum_j tie_j |a - a_j|_s^2`` of all rows.

    ``|a|_s^2 = sum_r scale_r a_r^2``.
    Every step is the exact minimum along one coordinate, so nothing ever rises.  A single
    matrix serves all rows.  Rows that are `still` stay; row s is tied to the rows
    ``neighbours[pointers[s]:pointers[s + 1]]``.  Ends after `passes`, or when a pass moves no
    number by more than `tol` of the largest.
    """
    n_rows, rank = rows.shape
    shared = gram.shape[0] == 1
    pull = np.empty(rank)
    tied = ties.shape[0] > 0
    inner = 1 if tied else passes
    for _ in range(passes if tied else 1):
        farthest = 0.0
        largest = 0.0
        for s in range(n_rows):
            if still[s]:
                continue
            g = gram[0 if shared else s]
            tie = 0.0
            for r in range(rank):
                pull[r] = rhs[s, r]
            for k in range(pointers[s], pointers[s + 1]):
                tie += ties[k]
                for r in range(rank):
                    pull[r] += ties[k] * scale[r] * rows[neighbours[k], r]
            for _inner in range(inner):
                moved = 0.0
                size = 0.0
                for r in range(rank):
                    curvature = g[r, r] + ridge + tie * scale[r]
                    if not curvature > 0.0:
                        continue
                    slope = pull[r]
                    for c in range(rank):
                        if c != r:
                            slope -= g[r, c] * rows[s, c]
                    if slope > 0.5 * l1[r]:
                        target = (slope - 0.5 * l1[r]) / curvature
                    elif slope < -0.5 * l1[r] and not nonnegative:
                        target = (slope + 0.5 * l1[r]) / curvature
                    else:
                        target = 0.0
                    moved = max(moved, abs(target - rows[s, r]))
                    size = max(size, abs(target))
                    rows[s, r] = target
                farthest = max(farthest, moved)
                largest = max(largest, size)
                if moved <= tol * size:
                    break
        if farthest <= tol * largest:
            break
