"""Compiled small matrices: Cholesky factors, inverses, and the precision of a prior.

Symmetric matrices are packed: the lower triangle row by row, ``R (R + 1) / 2`` numbers, or the
diagonal alone, ``R`` numbers, where the rank is large.
"""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.kernels.compiled import compiled
from tensortide.core.kernels.entries import SINGULAR

LANES = 8  # matrices that are worked on side by side: vector registers hold several of them


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


@compiled("void(float64[:,:,::1], float64[:,:,::1], boolean[::1])")
def factorise_lanes(g: Floats, lower: Floats, failed: Flags) -> None:
    """Write the Cholesky factors of `LANES` matrices, which stand side by side in the last place.

    Of a factor the diagonal is inverted.  A matrix with a pivot that is mere rounding has failed.
    """
    rank = g.shape[0]
    pivot = np.empty(LANES)
    for j in range(rank):
        for s in range(LANES):
            pivot[s] = g[j, j, s]
        for k in range(j):
            for s in range(LANES):
                pivot[s] -= lower[j, k, s] * lower[j, k, s]
        for s in range(LANES):
            bad = not pivot[s] > g[j, j, s] * SINGULAR
            failed[s] |= bad
            pivot[s] = 1.0 / np.sqrt(1.0 if bad else pivot[s])
            lower[j, j, s] = pivot[s]
        for i in range(j + 1, rank):
            for s in range(LANES):
                lower[i, j, s] = g[i, j, s]
            for k in range(j):
                for s in range(LANES):
                    lower[i, j, s] -= lower[i, k, s] * lower[j, k, s]
            for s in range(LANES):
                lower[i, j, s] *= pivot[s]


@compiled("void(float64[:,:,::1], float64[:,:,::1], float64[:,::1])")
def invert_lanes(lower: Floats, inverse: Floats, packed: Floats) -> None:
    """Write the inverses of what `factorise_lanes` took apart, packed; `inverse` is room."""
    rank = lower.shape[0]
    for j in range(rank):
        for s in range(LANES):
            inverse[j, j, s] = lower[j, j, s]
        for i in range(j + 1, rank):
            for s in range(LANES):
                inverse[i, j, s] = 0.0
            for k in range(j, i):
                for s in range(LANES):
                    inverse[i, j, s] -= lower[i, k, s] * inverse[k, j, s]
            for s in range(LANES):
                inverse[i, j, s] *= lower[i, i, s]
    place = 0
    for i in range(rank):
        for j in range(i + 1):
            for s in range(LANES):
                packed[place, s] = 0.0
            for k in range(i, rank):
                for s in range(LANES):
                    packed[place, s] += inverse[k, i, s] * inverse[k, j, s]
            place += 1


@compiled("float64(float64[:,:,::1], int64)")
def log_determinant(lower: Floats, lane: int) -> float:
    """Return the logarithm of a determinant from its factor: few logarithms, which are dear."""
    total, product = 0.0, 1.0
    for r in range(lower.shape[0]):
        product *= lower[r, r, lane]
        if not 1e-150 < product < 1e150:
            total += np.log(product)
            product = 1.0
    return float(-2.0 * (total + np.log(product)))


@compiled("int64(float64[:,::1], int64, float64[:,::1], float64[::1])")
def invert_rows(packed: Floats, rank: int, out: Floats, logs: Floats) -> int:
    """Write the inverse of each packed matrix and the logarithm of its determinant.

    Returns the first matrix that has no safe inverse, or -1.
    """
    width, n_rows = packed.shape[1], packed.shape[0]
    if width == rank > 1:
        for s in range(n_rows):
            logs[s] = 0.0
            for r in range(rank):
                if not packed[s, r] > 0.0:
                    return s
                out[s, r] = 1.0 / packed[s, r]
                logs[s] += np.log(packed[s, r])
        return -1
    g = np.empty((rank, rank, LANES))
    lower, inverse = np.empty_like(g), np.empty_like(g)
    found = np.empty((width, LANES))
    failed = np.zeros(LANES, np.bool_)
    for first in range(0, n_rows, LANES):
        n = min(LANES, n_rows - first)
        for s in range(LANES):
            place = 0
            at = first + min(s, n - 1)  # what is over is the last one again
            for i in range(rank):
                for j in range(i + 1):
                    g[i, j, s] = packed[at, place]
                    place += 1
        factorise_lanes(g, lower, failed)
        for s in range(n):
            if failed[s]:
                return first + s
        invert_lanes(lower, inverse, found)
        for s in range(n):
            for place in range(width):
                out[first + s, place] = found[place, s]
            logs[first + s] = log_determinant(lower, s)
    return -1


@compiled("int64(float64[:,::1], float64[::1], float64, float64, float64[::1])")
def scatter_precision(scatter: Floats, size: Floats, noise: float, flat: float, out: Floats) -> int:
    """Write ``noise S^-1``, packed, by way of the correlation matrix with `flat` on its diagonal.

    `size` is the mean square of the rows: no variance is believed that is far below it.  `scatter`
    is overwritten.  Returns 1 where there is none, else 0.
    """
    rank = scatter.shape[0]
    full = out.shape[0] > rank or rank == 1
    lower, inverse = np.zeros((rank, rank)), np.zeros((rank, rank))
    scale, packed = np.empty(rank), np.empty(rank * (rank + 1) // 2)
    usual = 0.0
    for i in range(rank):
        usual += size[i] / rank
    for i in range(rank):
        floor = 1e-12 * size[i]
        if not floor > 0.0:  # a component that is nothing here yet may become as others are
            floor = usual if usual > 0.0 else 1.0
        scale[i] = np.sqrt(max(scatter[i, i], floor))
    for i in range(rank):
        for j in range(rank):
            scatter[i, j] /= scale[i] * scale[j]
        scatter[i, i] = 1.0 + flat
    if factorise(scatter, lower):
        return 1
    invert_lower(lower, inverse)
    pack_inverse(inverse, packed)
    place = 0
    for i in range(rank):
        for j in range(i + 1):
            value = noise * packed[place] / scale[i] / scale[j]
            if full:
                out[place] = value
            elif i == j:
                out[i] = value
            place += 1
    return 0


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
    known, found = np.zeros((rank, rank)), np.empty((rank, rank))
    size = np.empty(rank)
    for mode in range(squares.shape[0]):
        n = float(n_rows[mode])
        pseudo = 1.0 / n
        unpack(spread[mode], known)
        for i in range(rank):
            for j in range(rank):
                rest = squares[mode, i, j] - sums[mode, i] * sums[mode, j] / n
                found[i, j] = (rest + noise * known[i, j]) / (n - 1.0 + pseudo)
            size[i] = squares[mode, i, i] / n
            found[i, i] += pseudo * size[i] / (n - 1.0 + pseudo)
        if scatter_precision(found, size, noise, flat, out[mode]):
            return mode
    return -1
