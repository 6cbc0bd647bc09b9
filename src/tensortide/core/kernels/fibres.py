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

    A fibre has eight numbers: the residual of its newest label, the faded sum of those before with
    its weight, the sum of all others, the count of all, the newest value, the sum of all others,
    and where the newest label stands.  Late cells of older labels count, but are not newest; what
    comes of the newest label again takes its place.
    """
    for k in range(order.shape[0]):
        e = order[k]
        m = numbers[which[e]]
        recalled[e, 0] = 0.0
        recalled[e, 1] = m[0]
        recalled[e, 2] = (m[1] + m[0]) / (m[2] + 1.0)
        recalled[e, 3] = (m[3] + m[0]) / (m[4] + 1.0)
        if m[4] == 0.0:
            m[4] = 1.0
        elif line[e] < m[7]:
            m[3] += residuals[e]
            m[4] += 1.0
            m[6] += values[e]
            continue
        elif line[e] > m[7]:
            m[1] = FADE * (m[1] + m[0])
            m[2] = FADE * (m[2] + 1.0)
            m[3] += m[0]
            m[4] += 1.0
            m[6] += m[5]
        m[0] = residuals[e]
        m[5] = values[e]
        m[7] = line[e]
