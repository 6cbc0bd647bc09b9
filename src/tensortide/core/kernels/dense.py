"""Products of a large array with a thin factor, on the calling thread.

BLAS would hand arrays of this size to its own threads: on a machine that does something else a
step then waits for them longer than it computes, and the last bits depend on their number.
"""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.compiled import compiled

WIDTH = 1024  # columns whose sums stay in the first cache


@compiled("void(float64[:,:], float64[:,::1], float64[:,::1])", reassociate=True)
def _sum_rows(thin: Floats, wide: Floats, out: Floats) -> None:
    """Write ``thin' wide``: rows of `wide`, weighted; four at a time, so sums move less."""
    out[:] = 0.0
    full = wide.shape[0] - wide.shape[0] % 4
    for first in range(0, wide.shape[1], WIDTH):
        last = min(first + WIDTH, wide.shape[1])
        for i in range(0, full, 4):
            p, q = wide[i, first:last], wide[i + 1, first:last]
            s, t = wide[i + 2, first:last], wide[i + 3, first:last]
            for r in range(thin.shape[1]):
                a, b, c, d = thin[i, r], thin[i + 1, r], thin[i + 2, r], thin[i + 3, r]
                sums = out[r, first:last]
                for j in range(last - first):
                    sums[j] += (a * p[j] + b * q[j]) + (c * s[j] + d * t[j])
        for i in range(full, wide.shape[0]):
            p = wide[i, first:last]
            for r in range(thin.shape[1]):
                a = thin[i, r]
                sums = out[r, first:last]
                for j in range(last - first):
                    sums[j] += a * p[j]


@compiled("void(float64[:,::1], float64[:,::1], float64[:,::1])", reassociate=True)
def _dot_rows(wide: Floats, turned: Floats, out: Floats) -> None:
    """Write ``wide turned'``: each row of one with each row of the other, four at a time."""
    full = turned.shape[0] - turned.shape[0] % 4
    for i in range(wide.shape[0]):
        row = wide[i]
        for r in range(0, full, 4):
            p, q, s, t = turned[r], turned[r + 1], turned[r + 2], turned[r + 3]
            a = b = c = d = 0.0
            for j in range(row.shape[0]):
                a += row[j] * p[j]
                b += row[j] * q[j]
                c += row[j] * s[j]
                d += row[j] * t[j]
            out[i, r], out[i, r + 1], out[i, r + 2], out[i, r + 3] = a, b, c, d
        for r in range(full, turned.shape[0]):
            p = turned[r]
            a = 0.0
            for j in range(row.shape[0]):
                a += row[j] * p[j]
            out[i, r] = a


def thin_times(thin: Floats, wide: Floats) -> Floats:
    """Return ``thin' wide`` for an (n, R) and an (n, m) array.

    >>> thin_times(np.array([[1.0], [10.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[31.0, 42.0]]
    """
    out = np.empty((thin.shape[1], wide.shape[1]))
    _sum_rows(thin, np.ascontiguousarray(wide), out)
    return out


def times_thin(wide: Floats, turned: Floats) -> Floats:
    """Return ``wide turned'`` for an (n, m) and an (R, m) array.

    >>> times_thin(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 10.0]])).tolist()
    [[21.0], [43.0]]
    """
    out = np.empty((len(wide), len(turned)))
    _dot_rows(np.ascontiguousarray(wide), np.ascontiguousarray(turned), out)
    return out


def dot(left: Floats, right: Floats) -> float:
    """Return the sum of products of two arrays, number by number.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(times_thin(left.reshape(1, -1), right.reshape(1, -1))[0, 0])
