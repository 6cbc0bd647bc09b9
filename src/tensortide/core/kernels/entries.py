"""Serial compiled loops over entries and rows.

Factors of all modes are stacked in one ``(S, R)`` array, so that the order of the tensor
is a run-time number.  ``others[e, k]`` is the position of entry ``e`` in the k-th of the
other modes and ``offsets[k]`` the first row of that mode in the stack.  With
``z_e = prod_k stack[offsets[k] + others[e, k]]`` (the Khatri-Rao row of an entry), all
loops here are sums over entries in row order; nothing is shared between rows, so callers
may split rows among threads without changing a bit.
"""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Floats, Places, Positions
from tensortide.core.kernels.compiled import compiled

BLOCK = 32  # entries whose outer products are summed at once, in vector registers
SINGULAR = 1e-12  # share of a diagonal element below which a pivot is rounding, not information
FEW = 12  # entries below which a block of mostly zeros costs more than it saves


@compiled(
    "void(float64[:,::1], int32[:,::1], int64[::1], int64, int64, float64[:,::1])", reassociate=True
)
def _products(
    stack: Floats, others: Places, offsets: Positions, first: int, count: int, z: Floats
) -> None:
    """Write ``z_e`` of `count` entries into the first columns of `z`."""
    rank = stack.shape[1]
    n_others = others.shape[1]
    for u in range(count):
        a = offsets[0] + others[first + u, 0]
        if n_others == 1:
            for r in range(rank):
                z[r, u] = stack[a, r]
        else:
            b = offsets[1] + others[first + u, 1]
            for r in range(rank):
                z[r, u] = stack[a, r] * stack[b, r]
            for k in range(2, n_others):
                c = offsets[k] + others[first + u, k]
                for r in range(rank):
                    z[r, u] *= stack[c, r]


@compiled(
    "void(float64[:,::1], float64[:,::1], int64, float64[:,::1], float64[::1])", reassociate=True
)
def _add_block(left: Floats, z: Floats, rank: int, gram: Floats, rhs: Floats) -> None:
    """Add ``left z'`` of one block to gram (lower half) and its last row, the values, to rhs."""
    for i in range(0, rank + 1, 2):
        a = left[i]
        b = left[i + 1]
        for j in range(0, min(i + 2, rank), 2):
            c = z[j]
            d = z[j + 1]
            ac = ad = bc = bd = 0.0
            for u in range(BLOCK):
                ac += a[u] * c[u]
                ad += a[u] * d[u]
                bc += b[u] * c[u]
                bd += b[u] * d[u]
            if i < rank:
                gram[i, j] += ac
                if j + 1 < rank:
                    gram[i, j + 1] += ad
            else:
                rhs[j] += ac
                if j + 1 < rank:
                    rhs[j + 1] += ad
            if i + 1 < rank:
                gram[i + 1, j] += bc
                if j + 1 < rank:
                    gram[i + 1, j + 1] += bd
            elif i + 1 == rank:
                rhs[j] += bc
                if j + 1 < rank:
                    rhs[j + 1] += bd


@compiled(
    "void(int64[::1], int32[:,::1], int64[::1], float64[:,::1], float64[::1], float64[::1], "
    "float64[:,:,::1], float64[:,::1])",
    reassociate=True,
)
def add_equations(
    pointers: Positions,
    others: Places,
    offsets: Positions,
    stack: Floats,
    curvatures: Floats,
    values: Floats,
    gram: Floats,
    rhs: Floats,
) -> None:
    """Add ``sum_e h_e z_e' z_e`` to gram[s] and ``sum_e v_e z_e`` to rhs[s] over row s's entries.

    The sums of `eq:sparse-solution`.  An empty `curvatures` means that all ``h_e`` are one.
    """
    rank = stack.shape[1]
    even = rank + 1 + (rank + 1) % 2
    z = np.zeros((even, BLOCK))
    weighted = np.zeros((even, BLOCK))
    uniform = curvatures.shape[0] == 0
    row = np.empty(rank)
    h = np.zeros(BLOCK)
    n_others = others.shape[1]
    for s in range(pointers.shape[0] - 1):
        e = pointers[s]
        stop = pointers[s + 1]
        while stop - e >= FEW:
            count = min(BLOCK, stop - e)
            _products(stack, others, offsets, e, count, z)
            for u in range(count, BLOCK):
                for r in range(rank):
                    z[r, u] = 0.0
            if uniform:
                for u in range(count):
                    z[rank, u] = values[e + u]
                _add_block(z, z, rank, gram[s], rhs[s])
            else:  # the columns of z beyond count are zero, so those of weighted do not matter
                for u in range(count):
                    h[u] = curvatures[e + u]
                    weighted[rank, u] = values[e + u]
                for r in range(rank):
                    for u in range(BLOCK):
                        weighted[r, u] = h[u] * z[r, u]
                _add_block(weighted, z, rank, gram[s], rhs[s])
            e += count
        while e < stop:
            for r in range(rank):
                row[r] = stack[offsets[0] + others[e, 0], r]
            for k in range(1, n_others):
                p = offsets[k] + others[e, k]
                for r in range(rank):
                    row[r] *= stack[p, r]
            weight = 1.0 if uniform else curvatures[e]
            v = values[e]
            for i in range(rank):
                rhs[s, i] += v * row[i]
                scaled = weight * row[i]
                for j in range(i + 1):
                    gram[s, i, j] += scaled * row[j]
            e += 1
        for i in range(rank):
            for j in range(i + 1, rank):
                gram[s, i, j] = gram[s, j, i]


@compiled(
    "void(int64[::1], int32[:,::1], int64[::1], float64[:,::1], float64[::1], float64[:,::1])"
)
def add_rhs(
    pointers: Positions,
    others: Places,
    offsets: Positions,
    stack: Floats,
    values: Floats,
    rhs: Floats,
) -> None:
    """Add ``sum_e v_e z_e`` to rhs[s]: a sparse MTTKRP, for terms whose gram needs no entries."""
    rank = stack.shape[1]
    n_others = others.shape[1]
    row = np.empty(rank)
    for s in range(pointers.shape[0] - 1):
        for e in range(pointers[s], pointers[s + 1]):
            v = values[e]
            a = offsets[0] + others[e, 0]
            for r in range(rank):
                row[r] = v * stack[a, r]
            for k in range(1, n_others):
                p = offsets[k] + others[e, k]
                for r in range(rank):
                    row[r] *= stack[p, r]
            for r in range(rank):
                rhs[s, r] += row[r]


@compiled(
    "void(float64[:,::1], int64, int32[:,::1], int64[::1], int64, int64, float64[:,::1], "
    "float64[::1])",
    reassociate=True,
)
def _block_values(
    stack: Floats,
    own: int,
    others: Places,
    offsets: Positions,
    first: int,
    count: int,
    z: Floats,
    y: Floats,
) -> None:
    """Write the model's values of up to BLOCK entries of one row."""
    _products(stack, others, offsets, first, count, z)
    for u in range(count):
        y[u] = 0.0
    for r in range(stack.shape[1]):
        a = stack[own, r]
        for u in range(count):
            y[u] += a * z[r, u]


@compiled("void(int64, int64[::1], int32[:,::1], int64[::1], float64[:,::1], float64[::1])")
def predict_entries(
    own: int, pointers: Positions, others: Places, offsets: Positions, stack: Floats, out: Floats
) -> None:
    """Write the model's value of each entry; row s of the order is stacked row own + s."""
    z = np.empty((stack.shape[1], BLOCK))
    y = np.empty(BLOCK)
    for s in range(pointers.shape[0] - 1):
        for e in range(pointers[s], pointers[s + 1], BLOCK):
            count = min(BLOCK, pointers[s + 1] - e)
            _block_values(stack, own + s, others, offsets, e, count, z, y)
            for u in range(count):
                out[e + u] = y[u]


@compiled("void(int32[:,::1], int64[::1], float64[:,::1], float64[::1])")
def predict_cells(cells: Places, bounds: Positions, stack: Floats, out: Floats) -> None:
    """Write the model's value of each cell, given by its positions in all modes."""
    for e in range(cells.shape[0]):
        total = 0.0
        for r in range(stack.shape[1]):
            product = 1.0
            for k in range(cells.shape[1]):
                product *= stack[bounds[k] + cells[e, k], r]
            total += product
        out[e] = total


@compiled("void(int32[:,::1], int64[::1], float64[:,::1], int64, float64[:,::1])")
def multiply_others(
    cells: Places, bounds: Positions, stack: Floats, skip: int, out: Floats
) -> None:
    """Write for each cell the product, by component, of its rows of all modes but one."""
    for e in range(cells.shape[0]):
        for r in range(stack.shape[1]):
            out[e, r] = 1.0
        for k in range(cells.shape[1]):
            if k != skip:
                p = bounds[k] + cells[e, k]
                for r in range(stack.shape[1]):
                    out[e, r] *= stack[p, r]


@compiled(
    "float64(int64, int64[::1], int32[:,::1], int64[::1], float64[:,::1], boolean, float64[::1], "
    "float64[::1])"
)
def entries_value(
    own: int,
    pointers: Positions,
    others: Places,
    offsets: Positions,
    stack: Floats,
    curved: bool,
    curvatures: Floats,
    values: Floats,
) -> float:
    """Return ``sum_e h_e y_e^2 - 2 v_e y_e``; with unit curvatures ``sum_e (v_e - y_e)^2``.

    `own` is the first stacked row of the mode whose order is given.
    """
    z = np.empty((stack.shape[1], BLOCK))
    y = np.empty(BLOCK)
    unit = curved and curvatures.shape[0] == 0
    total = 0.0
    for s in range(pointers.shape[0] - 1):
        for e in range(pointers[s], pointers[s + 1], BLOCK):
            count = min(BLOCK, pointers[s + 1] - e)
            _block_values(stack, own + s, others, offsets, e, count, z, y)
            for u in range(count):
                v = values[e + u]
                if unit:
                    total += (v - y[u]) * (v - y[u])
                elif curved:
                    total += (curvatures[e + u] * y[u] - 2.0 * v) * y[u]
                else:
                    total -= 2.0 * v * y[u]
    return total


@compiled(
    "int64(float64[:,:,::1], float64[:,::1], float64, int64[::1], boolean, float64[:,::1], int64)"
)
def solve_rows(
    gram: Floats,
    rhs: Floats,
    ridge: float,
    pointers: Positions,
    every_row: bool,
    rows: Floats,
    first: int,
) -> int:
    """Replace rows[s] by the solution of ``a (G + ridge I) = q``, from row `first` on.

    By Cholesky; gram is overwritten, and a single matrix serves all rows.  Rows without
    entries stay as they are unless `every_row`, and so does a row whose G is zero.  Returns
    the first row that has no safe and finite solution, or -1.
    """
    rank = rhs.shape[1]
    shared = gram.shape[0] == 1
    factored = False
    silent = False
    for s in range(first, rhs.shape[0]):
        if not every_row and pointers[s] == pointers[s + 1]:
            continue
        g = gram[0 if shared else s]
        if not factored:
            silent = True
            for j in range(rank):
                silent = silent and g[j, j] == 0.0
                g[j, j] += ridge
        if silent:
            factored = shared
            continue
        if not factored:
            for j in range(rank):
                pivot = g[j, j]
                floor = pivot * SINGULAR
                for k in range(j):
                    pivot -= g[j, k] * g[j, k]
                if not pivot > floor:
                    return s
                root = np.sqrt(pivot)
                g[j, j] = root
                for i in range(j + 1, rank):
                    dot = g[i, j]
                    for k in range(j):
                        dot -= g[i, k] * g[j, k]
                    g[i, j] = dot / root
            factored = shared
        finite = 0.0
        for i in range(rank):
            dot = rhs[s, i]
            for k in range(i):
                dot -= g[i, k] * rows[s, k]
            rows[s, i] = dot / g[i, i]
        for i in range(rank - 1, -1, -1):
            dot = rows[s, i]
            for k in range(i + 1, rank):
                dot -= g[k, i] * rows[s, k]
            rows[s, i] = dot / g[i, i]
            finite += 0.0 * rows[s, i]
        if finite != 0.0:  # zero times a number is zero unless it is infinite or none
            return s
    return -1
