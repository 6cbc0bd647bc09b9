"""Compiled loops over rows: Gram matrices of boxes, and the equations they give.

A *box term* is ``w || [[reference]] - [[A]] ||^2`` over the upper rows (box 0) or over all
rows (box 1) of every mode.  The reconstruction regulariser, the imputed cells and the
zeros of absent cells are all of this form; the last two with references ``A^`` and zero.
``own[b, n]`` is the Gram matrix of mode n over box b, ``cross[b, k, n]`` the product of
reference k with the current rows.
"""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Flags, Floats, Places, Positions
from tensortide.core.kernels.compiled import compiled
from tensortide.core.kernels.entries import add_equations, add_rhs


@compiled("void(float64[:,::1], float64[:,::1], int64, int64, float64[:,::1], float64[:,::1])")
def cross_product(
    left: Floats, right: Floats, first: int, last: int, plus: Floats, out: Floats
) -> None:
    """Write ``plus + left' right`` of the rows first:last, summed in row order.

    `plus` is left out where it has another shape (a reference of another rank has no rest).
    """
    add = plus.shape[0] == out.shape[0]
    for r in range(out.shape[0]):
        for s in range(out.shape[1]):
            out[r, s] = plus[r, s] if add else 0.0
    for i in range(first, last):
        for r in range(out.shape[0]):
            a = left[i, r]
            for s in range(out.shape[1]):
                out[r, s] += a * right[i, s]


@compiled(
    "void(boolean[::1], float64[:,::1], float64[:,:,::1], int64[::1], int64[::1], "
    "float64[:,:,::1], float64[:,:,:,::1], float64[:,:,:,:,::1])"
)
def refresh(
    stale: Flags,
    stack: Floats,
    references: Floats,
    bounds: Positions,
    n_upper: Positions,
    rest: Floats,
    own: Floats,
    cross: Floats,
) -> None:
    """Compute the Gram matrices anew for the modes whose rows have moved."""
    for mode in range(stale.shape[0]):
        if not stale[mode]:
            continue
        stale[mode] = False
        first = bounds[mode]
        middle = first + n_upper[mode]
        last = bounds[mode + 1]
        cross_product(stack, stack, first, middle, rest[mode], own[0, mode])
        cross_product(stack, stack, middle, last, own[0, mode], own[1, mode])
        for k in range(references.shape[0]):
            cross_product(references[k], stack, first, middle, rest[mode], cross[0, k, mode])
            cross_product(references[k], stack, middle, last, cross[0, k, mode], cross[1, k, mode])


@compiled("void(float64[:,:,::1], int64, float64[:,::1])")
def hadamard(matrices: Floats, skip: int, out: Floats) -> None:
    """Multiply the matrices of all modes but one element by element (circled asterisk, k != n)."""
    for r in range(out.shape[0]):
        for s in range(out.shape[1]):
            product = 1.0
            for k in range(matrices.shape[0]):
                if k != skip:
                    product *= matrices[k, r, s]
            out[r, s] = product


@compiled(
    "void(int64, boolean, int64, float64[::1], boolean[::1], int64[::1], float64[:,:,::1], "
    "float64[:,:,:,::1], float64[:,:,:,:,::1], float64[:,::1], float64[:,::1])"
)
def add_boxes(
    mode: int,
    upper: bool,
    first: int,
    weights: Floats,
    upper_only: Flags,
    reference: Positions,
    references: Floats,
    own: Floats,
    cross: Floats,
    gram: Floats,
    rhs: Floats,
) -> None:
    """Add the equations of all box terms: one gram for all rows, and the rhs of each row.

    Row i of the rhs belongs to stacked row first + i.
    """
    rank = gram.shape[0]
    width = references.shape[2]
    product = np.empty((rank, rank))
    link = np.empty((width, rank))
    for t in range(weights.shape[0]):
        if upper_only[t] and not upper:
            continue
        box = 0 if upper_only[t] else 1
        hadamard(own[box], mode, product)
        for r in range(rank):
            for s in range(rank):
                gram[r, s] += weights[t] * product[r, s]
        if reference[t] < 0:
            continue
        hadamard(cross[box, reference[t]], mode, link)
        for i in range(rhs.shape[0]):
            for r in range(width):
                a = weights[t] * references[reference[t], first + i, r]
                for s in range(rank):
                    rhs[i, s] += a * link[r, s]


@compiled(
    "void(int64, boolean, int64, int64[::1], int32[:,::1], int64[::1], float64[:,::1], "
    "boolean, float64[::1], float64[::1], float64[::1], boolean[::1], int64[::1], "
    "float64[:,:,::1], float64[:,:,:,::1], float64[:,:,:,:,::1], float64[:,:,::1], "
    "float64[:,::1])"
)
def sum_equations(
    mode: int,
    upper: bool,
    first: int,
    pointers: Positions,
    others: Places,
    offsets: Positions,
    stack: Floats,
    curved: bool,
    curvatures: Floats,
    values: Floats,
    weights: Floats,
    upper_only: Flags,
    reference: Positions,
    references: Floats,
    own: Floats,
    cross: Floats,
    gram: Floats,
    rhs: Floats,
) -> None:
    """Write the equations of the rows from stacked row `first` on: boxes and entries.

    `gram` has one matrix for each row, or a single one where no entry is curved.
    """
    rank = stack.shape[1]
    shared = np.zeros((rank, rank))
    for i in range(rhs.shape[0]):
        for r in range(rank):
            rhs[i, r] = 0.0
    add_boxes(
        mode, upper, first, weights, upper_only, reference, references, own, cross, shared, rhs
    )
    for i in range(gram.shape[0]):
        for r in range(rank):
            for s in range(rank):
                gram[i, r, s] = shared[r, s]
    if curved:
        add_equations(pointers, others, offsets, stack, curvatures, values, gram, rhs)
    else:
        add_rhs(pointers, others, offsets, stack, values, rhs)


@compiled("float64(float64[:,:,::1])")
def grand_total(matrices: Floats) -> float:
    """Return the sum of all elements of the element-wise product of the matrices."""
    total = 0.0
    for r in range(matrices.shape[1]):
        for s in range(matrices.shape[2]):
            product = 1.0
            for k in range(matrices.shape[0]):
                product *= matrices[k, r, s]
            total += product
    return total


@compiled(
    "float64(float64[::1], boolean[::1], int64[::1], float64[:,:,::1], int64[::1], int64[::1], "
    "float64[:,:,::1], float64[:,:,:,::1], float64[:,:,:,:,::1], float64)"
)
def boxes_value(
    weights: Floats,
    upper_only: Flags,
    reference: Positions,
    references: Floats,
    bounds: Positions,
    n_upper: Positions,
    rest: Floats,
    own: Floats,
    cross: Floats,
    beta: float,
) -> float:
    """Return the box terms and the ridge at the current rows."""
    order, rank, width = own.shape[1], own.shape[2], references.shape[2]
    grams = np.empty((order, width, width))
    total = 0.0
    for n in range(order):
        for r in range(rank):
            total += beta * own[1, n, r, r]
    for t in range(weights.shape[0]):
        box = 0 if upper_only[t] else 1
        distance = grand_total(own[box])
        k = reference[t]
        if k >= 0:
            for n in range(order):
                last = bounds[n] + n_upper[n] if upper_only[t] else bounds[n + 1]
                cross_product(references[k], references[k], bounds[n], last, rest[n], grams[n])
            distance += grand_total(grams) - 2.0 * grand_total(cross[box, k])
            distance = max(distance, 0.0)
        total += weights[t] * distance
    return total


@compiled(
    "void(float64[:,:,::1], float64[:,:,::1], float64[:,::1], float64[:,::1], int64[::1], "
    "int64[::1], float64)"
)
def add_exactly(
    total: Floats,
    error: Floats,
    sums: Floats,
    stack: Floats,
    firsts: Positions,
    lasts: Positions,
    sign: float,
) -> None:
    """Add ``sign * rows' rows`` of each mode to the unevaluated sum ``total + error``.

    By two-sum: a row that is added and later taken away leaves nothing behind, since its
    products are rounded the same way both times and the additions lose nothing.  The
    column sums are followed too, plainly.
    """
    rank = stack.shape[1]
    for mode in range(firsts.shape[0]):
        for i in range(firsts[mode], lasts[mode]):
            for r in range(rank):
                sums[mode, r] += sign * stack[i, r]
                for s in range(rank):
                    x = sign * (stack[i, r] * stack[i, s])
                    old = total[mode, r, s]
                    new = old + x
                    back = new - old
                    error[mode, r, s] += (old - (new - back)) + (x - back)
                    total[mode, r, s] = new
