"""Compiled look-up of fibres by their positions, and what they remember."""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Floats, Places, Positions
from tensortide.core.kernels.compiled import compiled

FADE = 0.7  # of a residual in the faded mean, for each later one


@compiled("int64(int32[:,::1], int64, int64)")
def _hash(keys: Places, at: int, mask: int) -> int:
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for k in range(keys.shape[1]):
        mixed = (mixed ^ np.uint64(keys[at, k])) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(mask))  # type: ignore


@compiled("void(int32[:,::1], int64[::1], int32[:,::1], int64[::1])")
def find_fibres(wanted: Places, slots: Positions, keys: Places, out: Positions) -> None:
    """Write where each wanted key stands among the keys, -1 where it does not."""
    mask = slots.shape[0] - 1
    for i in range(wanted.shape[0]):
        slot = _hash(wanted, i, mask)
        out[i] = -1
        while slots[slot] >= 0:
            at = slots[slot]
            same = True
            for k in range(keys.shape[1]):
                same = same and keys[at, k] == wanted[i, k]
            if same:
                out[i] = at
                break
            slot = (slot + 1) & mask


@compiled("void(int32[:,::1], int64, int64, int64[::1])")
def insert_fibres(keys: Places, first: int, last: int, slots: Positions) -> None:
    """Enter the keys first:last, none of which is there yet."""
    mask = slots.shape[0] - 1
    for i in range(first, last):
        slot = _hash(keys, i, mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = i


@compiled(
    "void(int64[::1], int64[::1], float64[::1], float64[::1], int64[::1], float64[:,::1],"
    " float64[:,::1])"
)
def recall_and_learn(
    order: Positions,
    which: Positions,
    residuals: Floats,
    values: Floats,
    line: Positions,
    numbers: Floats,
    recalled: Floats,
) -> None:
    """Go through cells in an order; write what their fibre remembers, then let it learn.

    A fibre has eight numbers: the last residual, its faded sum and weight, its sum and count, the
    last value, the sum of values, and where the last ones stand on the line of labels.  Late cells
    of older labels count, but are not last; what comes of the newest label again corrects it.
    """
    for k in range(order.shape[0]):
        e = order[k]
        m = numbers[which[e]]
        recalled[e, 0] = 0.0
        recalled[e, 1] = m[0]
        recalled[e, 2] = m[1] / m[2] if m[2] > 0.0 else 0.0
        recalled[e, 3] = m[3] / (m[4] + 1.0)
        r = residuals[e]
        known = m[4] > 0.0
        if known and line[e] == m[7]:
            m[1] += r - m[0]
            m[3] += r - m[0]
            m[6] += values[e] - m[5]
        else:
            m[3] += r
            m[4] += 1.0
            m[6] += values[e]
            if known and line[e] < m[7]:
                continue
            m[1] = FADE * m[1] + r
            m[2] = FADE * m[2] + 1.0
        m[0] = r
        m[5] = values[e]
        m[7] = line[e]
