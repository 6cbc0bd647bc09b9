"""Compiled loops for rows that know how sure they are.

A row has a mean ``a`` and a covariance ``C = s2 T^-1``, with ``T`` its precision in units of one
cell, all of them packed (`core.kernels.matrices`).  The second moment of a row is
``B = a a' + C``; with it the sum over cells is ``P_i = sum_c h_c prod_{j != n} B_j``, the product
taken element by element over the other modes.
"""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Floats, Places, Positions
from tensortide.core.kernels.compiled import compiled
from tensortide.core.kernels.matrices import LANES, factorise_lanes, invert_lanes, log_determinant


@compiled("void(float64[:,::1], float64[:,::1], float64, int64, int64, float64[:,::1])")
def second_moments(
    stack: Floats, inverses: Floats, noise: float, first: int, last: int, out: Floats
) -> None:
    """Write ``a a' + noise V`` of the stacked rows first:last, packed as V is."""
    rank = stack.shape[1]
    full = inverses.shape[1] > rank or rank == 1
    for s in range(first, last):
        place = 0
        for i in range(rank):
            if full:
                for j in range(i + 1):
                    out[s, place] = stack[s, i] * stack[s, j] + noise * inverses[s, place]
                    place += 1
            else:
                out[s, i] = stack[s, i] * stack[s, i] + noise * inverses[s, i]


@compiled(
    "void(int64[::1], int32[:,::1], int64[::1], float64[:,::1], float64[:,::1], float64[::1], "
    "float64[:,:,::1])",
    reassociate=True,
)
def add_moments(
    pointers: Positions,
    others: Places,
    offsets: Positions,
    stack: Floats,
    moments: Floats,
    curvatures: Floats,
    gram: Floats,
) -> None:
    """Add ``sum_e h_e prod_k B_k`` to gram[s] over row s's entries.

    An empty `curvatures` means that all ``h_e`` are one.  Of diagonal moments the diagonal is
    used, and the rest is that of the means.
    """
    rank = stack.shape[1]
    width = moments.shape[1]
    full = width > rank or rank == 1
    uniform = curvatures.shape[0] == 0
    n_others = others.shape[1]
    total = np.empty(width)
    product = np.empty(width)
    for s in range(pointers.shape[0] - 1):
        for k in range(width):
            total[k] = 0.0
        for e in range(pointers[s], pointers[s + 1]):  # no views of rows: they cost more than sums
            h = 1.0 if uniform else curvatures[e]
            if n_others == 2:
                p, q = offsets[0] + others[e, 0], offsets[1] + others[e, 1]
                for k in range(width):
                    total[k] += h * moments[p, k] * moments[q, k]
                continue
            for k in range(width):
                product[k] = h
            for m in range(n_others):
                p = offsets[m] + others[e, m]
                for k in range(width):
                    product[k] *= moments[p, k]
            for k in range(width):
                total[k] += product[k]
        place = 0
        for i in range(rank):
            if full:
                for j in range(i + 1):
                    gram[s, i, j] += total[place]
                    if i != j:
                        gram[s, j, i] = gram[s, i, j]
                    place += 1
            else:
                gram[s, i, i] = total[i]


@compiled(
    "int64(float64[:,:,::1], float64[:,::1], float64[:,:,::1], float64[:,::1], float64[:,::1], "
    "int64[::1], boolean, float64[:,::1], float64[:,::1], float64[:,::1], float64[::1])"
)
def solve_believed(
    gram: Floats,
    rhs: Floats,
    counted: Floats,
    prior: Floats,
    means: Floats,
    pointers: Positions,
    every_row: bool,
    rows: Floats,
    gained: Floats,
    inverses: Floats,
    logs: Floats,
) -> int:
    """Replace rows by the solutions of ``(G + L) a = q + L m``, with what each now knows.

    `prior` holds L, packed, and `means` m: one for each row or a single one for all; so may
    `gram`.  `counted` is what the cells are worth as knowledge: G, or without imputed cells less
    of it (none: G itself).  `gained` gets it packed, `inverses` ``(counted + L)^-1`` and `logs`
    the logarithm of the determinant of ``counted + L``.  A row without entries gains nothing and
    is its mean, unless `every_row`.  Returns the first row that has no safe solution, or -1.
    """
    rank, width, n_rows = rhs.shape[1], prior.shape[1], rhs.shape[0]
    full = width > rank or rank == 1
    own = counted.shape[0] > 0
    g = np.empty((rank, rank, LANES))
    lower, inverse = np.empty_like(g), np.empty_like(g)
    told, centre = np.zeros_like(g), np.empty((rank, LANES))
    right, found = np.empty((rank, LANES)), np.empty((width, LANES))
    failed = np.zeros(LANES, np.bool_)
    silent = np.empty(LANES, np.bool_)
    for first in range(0, n_rows, LANES):
        n = min(LANES, n_rows - first)
        for lane in range(LANES):
            s = first + min(lane, n - 1)  # what is over is the last row again
            silent[lane] = not every_row and pointers[s] == pointers[s + 1]
            one = s if prior.shape[0] > 1 else 0
            sums = s if gram.shape[0] > 1 else 0
            middle = s if means.shape[0] > 1 else 0
            share = 0.0 if silent[lane] else 1.0
            place = 0
            for i in range(rank):
                centre[i, lane] = means[middle, i]
                right[i, lane] = rhs[s, i]
                for j in range(i + 1):
                    if full:
                        told[i, j, lane] = prior[one, place]
                        place += 1
                    elif i == j:
                        told[i, i, lane] = prior[one, i]
                    g[i, j, lane] = told[i, j, lane] + share * gram[sums, i, j]
        for i in range(rank):
            for j in range(i + 1):
                for lane in range(LANES):
                    right[i, lane] += told[i, j, lane] * centre[j, lane]
                if i != j:
                    for lane in range(LANES):
                        right[j, lane] += told[i, j, lane] * centre[i, lane]
        factorise_lanes(g, lower, failed)
        for i in range(rank):
            for k in range(i):
                for lane in range(LANES):
                    right[i, lane] -= lower[i, k, lane] * right[k, lane]
            for lane in range(LANES):
                right[i, lane] *= lower[i, i, lane]
        for i in range(rank - 1, -1, -1):
            for k in range(i + 1, rank):
                for lane in range(LANES):
                    right[i, lane] -= lower[k, i, lane] * right[k, lane]
            for lane in range(LANES):
                right[i, lane] *= lower[i, i, lane]
        for lane in range(n):
            s = first + lane
            finite = 0.0
            for i in range(rank):
                finite += 0.0 * right[i, lane]
                rows[s, i] = centre[i, lane] if silent[lane] else right[i, lane]
            if failed[lane] or (finite != 0.0 and not silent[lane]):
                return s
            worth = (
                counted[s if counted.shape[0] > 1 else 0]
                if own
                else gram[s if gram.shape[0] > 1 else 0]
            )
            share = 0.0 if silent[lane] else 1.0
            place = 0
            for i in range(rank):
                if not full:
                    gained[s, i] = share * worth[i, i]
                    continue
                for j in range(i + 1):
                    gained[s, place] = share * worth[i, j]
                    if own:
                        g[i, j, lane] = told[i, j, lane] + gained[s, place]
                    place += 1
        if not full:
            for lane in range(n):
                s = first + lane
                logs[s] = 0.0
                for r in range(rank):
                    sure = told[r, r, lane] + gained[s, r]
                    if not sure > 0.0:
                        return s
                    inverses[s, r] = 1.0 / sure
                    logs[s] += np.log(sure)
            continue
        if own:
            factorise_lanes(g, lower, failed)
            for lane in range(n):
                if failed[lane]:
                    return first + lane
        invert_lanes(lower, inverse, found)
        for lane in range(n):
            for place in range(width):
                inverses[first + lane, place] = found[place, lane]
            logs[first + lane] = log_determinant(lower, lane)
    return -1


@compiled(
    "float64(int64, int64[::1], int32[:,::1], int64[::1], float64[:,::1], float64[:,::1], "
    "float64[::1])"
)
def own_variance(
    own: int,
    pointers: Positions,
    others: Places,
    offsets: Positions,
    stack: Floats,
    moments: Floats,
    curvatures: Floats,
) -> float:
    """Return ``sum_e h_e (E y_e^2 - (E y_e)^2)``: the variance that the model itself has there.

    `own` is the first stacked row of the mode whose order is given.
    """
    rank = stack.shape[1]
    width = moments.shape[1]
    full = width > rank or rank == 1
    uniform = curvatures.shape[0] == 0
    n_others = others.shape[1]
    product = np.empty(width)
    row = np.empty(rank)
    twice = np.full(width, 2.0)
    if full:
        for r in range(rank):
            twice[r * (r + 1) // 2 + r] = 1.0
    else:
        twice[:] = 1.0
    total = 0.0
    for s in range(pointers.shape[0] - 1):
        for e in range(pointers[s], pointers[s + 1]):
            for k in range(width):
                product[k] = moments[own + s, k]
            for r in range(rank):
                row[r] = stack[own + s, r]
            for m in range(n_others):
                p = offsets[m] + others[e, m]
                for k in range(width):
                    product[k] *= moments[p, k]
                for r in range(rank):
                    row[r] *= stack[p, r]
            square = 0.0
            for k in range(width):
                square += twice[k] * product[k]
            mean = 0.0
            if full:
                for r in range(rank):
                    mean += row[r]
                mean *= mean
            else:
                for r in range(rank):
                    mean += row[r] * row[r]
            total += (1.0 if uniform else curvatures[e]) * max(square - mean, 0.0)
    return total


@compiled("float64(float64[:,::1], float64[:,::1], float64[:,::1], float64[:,::1], float64)")
def prior_value(rows: Floats, means: Floats, told: Floats, inverses: Floats, noise: float) -> float:
    """Return ``sum_i (a_i - m_i)' L_i (a_i - m_i) + noise tr L_i V_i`` over the rows of a mode.

    `means` and `told` have one row for each, or a single one for all.
    """
    rank = rows.shape[1]
    width = told.shape[1]
    full = width > rank or rank == 1
    gap = np.empty(rank)
    total = 0.0
    for s in range(rows.shape[0]):
        m = s if means.shape[0] > 1 else 0
        t = s if told.shape[0] > 1 else 0
        for r in range(rank):
            gap[r] = rows[s, r] - means[m, r]
        place = 0
        for i in range(rank):
            if not full:
                total += told[t, i] * (gap[i] * gap[i] + noise * inverses[s, i])
                continue
            for j in range(i + 1):
                twice = 1.0 if i == j else 2.0
                total += twice * told[t, place] * (gap[i] * gap[j] + noise * inverses[s, place])
                place += 1
    return total


@compiled("void(float64[:,::1], int64[::1], int64[::1], float64, float64[:,::1])")
def add_parts(
    stack: Floats, firsts: Positions, counts: Positions, sign: float, out: Floats
) -> None:
    """Add to ``out[m]``, or take from it, the stacked rows from ``firsts[m]`` on, so many."""
    for m in range(out.shape[0]):
        for s in range(firsts[m], firsts[m] + counts[m]):
            for k in range(stack.shape[1]):
                out[m, k] += sign * stack[s, k]


@compiled("void(float64[:,::1], int32[::1], float64[::1], float64[:,::1], float64[::1])")
def leverages(z: Floats, which: Places, weights: Floats, inverses: Floats, out: Floats) -> None:
    """Write ``w_e z_e' V z_e`` with V that of row ``which[e]``: a cell's share of its own row.

    Of a diagonal each component has its share h, beside what else is known of it, ``h / (1 - h)``
    in units of that; the cell has ``s / (1 + s)`` with s their sum: less than one, as it should be.
    """
    rank = z.shape[1]
    full = inverses.shape[1] > rank or rank == 1
    for e in range(z.shape[0]):
        v = inverses[which[e]]
        total = 0.0
        place = 0
        for i in range(rank):
            if not full:
                share = min(weights[e] * v[i] * z[e, i] * z[e, i], 1.0 - 1e-12)
                total += share / (1.0 - share)
                continue
            for j in range(i + 1):
                total += (1.0 if i == j else 2.0) * v[place] * z[e, i] * z[e, j]
                place += 1
        out[e] = weights[e] * total if full else total / (1.0 + total)


@compiled("void(float64[:,::1], int32[::1], float64[::1], float64[:,::1])")
def add_outer(z: Floats, which: Places, weights: Floats, out: Floats) -> None:
    """Add ``w_e z_e z_e'``, packed, to row ``which[e]``."""
    rank = z.shape[1]
    full = out.shape[1] > rank or rank == 1
    for e in range(z.shape[0]):
        row = out[which[e]]
        place = 0
        for i in range(rank):
            if not full:
                row[i] += weights[e] * z[e, i] * z[e, i]
                continue
            for j in range(i + 1):
                row[place] += weights[e] * z[e, i] * z[e, j]
                place += 1
