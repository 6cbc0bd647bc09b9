"""Compiled small matrices: Cholesky factors, inverses, and the precision of a prior.

Symmetric matrices are packed: the lower triangle row by row, ``R (R + 1) / 2`` numbers, or the
diagonal alone, ``R`` numbers, where the rank is large.
"""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.core.kernels.compiled import compiled
from tensortide.core.kernels.entries import SINGULAR


@compiled("int64(float64[:,::1], float64[:,::1])")
def factorise(g: Floats, lower: Floats) -> int:
    """Write the Cholesky factor of g; return 1 where a pivot is mere rounding, else 0."""
    rank = g.shape[0]
    for j in range(rank):
        pivot = g[j, j]
        floor = pivot * SINGULAR
        for k in range(j):
            pivot -= lower[j, k] * lower[j, k]
        if not pivot > floor:
            return 1
        root = np.sqrt(pivot)
        lower[j, j] = root
        for i in range(j + 1, rank):
            dot = g[i, j]
            for k in range(j):
                dot -= lower[i, k] * lower[j, k]
            lower[i, j] = dot / root
    return 0


@compiled("void(float64[:,::1], float64[:,::1])")
def invert_lower(lower: Floats, inverse: Floats) -> None:
    """Write the inverse of a lower triangular matrix; its upper half is not touched."""
    rank = lower.shape[0]
    for j in range(rank):
        inverse[j, j] = 1.0 / lower[j, j]
        for i in range(j + 1, rank):
            dot = 0.0
            for k in range(j, i):
                dot -= lower[i, k] * inverse[k, j]
            inverse[i, j] = dot / lower[i, i]


@compiled("void(float64[:,::1], float64[::1])")
def pack_inverse(inverse: Floats, out: Floats) -> None:
    """Write ``W' W`` packed, with W lower triangular: the inverse of the matrix W factorised."""
    rank = inverse.shape[0]
    place = 0
    for i in range(rank):
        for j in range(i + 1):
            dot = 0.0
            for k in range(i, rank):
                dot += inverse[k, i] * inverse[k, j]
            out[place] = dot
            place += 1


@compiled("void(float64[::1], float64[:,::1])")
def unpack(packed: Floats, out: Floats) -> None:
    """Write a packed matrix in full; a diagonal stands alone."""
    rank = out.shape[0]
    full = packed.shape[0] > rank or rank == 1
    place = 0
    for i in range(rank):
        for j in range(i + 1):
            value = 0.0
            if full:
                value = packed[place]
                place += 1
            elif i == j:
                value = packed[i]
            out[i, j] = value
            out[j, i] = value


@compiled("int64(float64[:,::1], int64, float64[:,::1], float64[::1])")
def invert_rows(packed: Floats, rank: int, out: Floats, logs: Floats) -> int:
    """Write the inverse of each packed matrix and the logarithm of its determinant.

    Returns the first matrix that has no safe inverse, or -1.
    """
    g = np.empty((rank, rank))
    lower = np.zeros((rank, rank))
    inverse = np.zeros((rank, rank))
    for s in range(packed.shape[0]):
        if packed.shape[1] == rank > 1:
            logs[s] = 0.0
            for r in range(rank):
                if not packed[s, r] > 0.0:
                    return s
                out[s, r] = 1.0 / packed[s, r]
                logs[s] += np.log(packed[s, r])
            continue
        unpack(packed[s], g)
        if factorise(g, lower):
            return s
        invert_lower(lower, inverse)
        pack_inverse(inverse, out[s])
        total = 0.0
        for r in range(rank):
            total += 2.0 * np.log(lower[r, r])
        logs[s] = total
    return -1


@compiled(
    "int64(float64[:,:,::1], float64[:,::1], int64[::1], float64[:,::1], float64, float64, "
    "float64[:,::1])"
)
def prior_precisions(
    squares: Floats,
    sums: Floats,
    n_rows: Positions,
    spread: Floats,
    noise: float,
    flat: float,
    out: Floats,
) -> int:
    """Write ``noise S^-1`` of each mode, packed, from sums over its rows.

    `squares` are the sums of ``a a'``, `sums` of ``a``, `spread` of ``T^-1``; see
    `core.steps.hyper`.  Returns the first mode that has none, or -1.
    """
    rank = sums.shape[1]
    full = spread.shape[1] > rank or rank == 1
    known = np.zeros((rank, rank))
    found = np.empty((rank, rank))
    lower = np.zeros((rank, rank))
    inverse = np.zeros((rank, rank))
    scale = np.empty(rank)
    packed = np.empty(rank * (rank + 1) // 2)
    for mode in range(squares.shape[0]):
        n = float(n_rows[mode])
        pseudo = 1.0 / n
        unpack(spread[mode], known)
        for i in range(rank):
            for j in range(rank):
                rest = squares[mode, i, j] - sums[mode, i] * sums[mode, j] / n
                found[i, j] = rest + noise * known[i, j]
            found[i, i] += pseudo * squares[mode, i, i] / n
        usual = 0.0
        for i in range(rank):
            usual += squares[mode, i, i] / n / rank
        for i in range(rank):
            floor = 1e-12 * squares[mode, i, i] / n
            if not floor > 0.0:  # a component that is nothing here yet may become as others are
                floor = usual if usual > 0.0 else 1.0
            scale[i] = np.sqrt(max(found[i, i] / (n - 1.0 + pseudo), floor))
        for i in range(rank):
            for j in range(rank):
                found[i, j] /= (n - 1.0 + pseudo) * scale[i] * scale[j]
            found[i, i] = 1.0 + flat
        if factorise(found, lower):
            return mode
        invert_lower(lower, inverse)
        pack_inverse(inverse, packed)
        place = 0
        for i in range(rank):
            for j in range(i + 1):
                value = noise * packed[place] / scale[i] / scale[j]
                if full:
                    out[mode, place] = value
                elif i == j:
                    out[mode, i] = value
                place += 1
    return -1
