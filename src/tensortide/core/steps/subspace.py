"""Third-order subspace trackers of Nion and Sidiropoulos (2009), exponential window.

With one column ``x_t = vec(X_t)`` per slice of the growing mode, ``X = H C'`` and ``H = B (.) A``
(Khatri-Rao).  Both methods track ``H`` without its structure, read the new row of ``C`` off it,
and split each column of ``H`` into a rank-one matrix ``a_r b_r'`` by one step of the power
method.  They differ in how ``H`` is tracked:

RLST   ``H = R P^-1`` with ``R <- decay R + x c'``, ``P <- decay P + c c'``
SDT    ``H = U S W`` with ``U S V'`` the truncated singular value decomposition of the window
       and ``C' = W^-1 V'``; ``W`` follows from old rows of ``C`` staying as they were

With `structured` the row of C is least squares on the split factors; the published code reads it
off the unsplit H, which is the same where the data have rank R, and no longer fits the split
factors where they have not.  The published code follows the pseudo-inverse of R and the
decomposition by cheaper approximate updates; here both are computed from their definition at
``O(I J R^2)`` a slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.dense import dot, thin_times, times_thin
from tensortide.core.steps.change import Change
from tensortide.core.steps.method import Memory, Tracking
from tensortide.core.steps.outcome import Outcome, begin_step, finish_step
from tensortide.core.tensor.dense_box import DenseBox, khatri_rao
from tensortide.core.tensor.factors import Factors
from tensortide.core.tensor.workspace import Workspace
from tensortide.core.updates.exact import Run, pseudo_inverse, serially


def begin(method: Tracking, rows: Sequence[Floats], change: Change) -> Memory:
    """Return the start of the tracked matrices, for each mode as if it were the one to grow.

    Which mode grows is not known yet; what belongs to the others is dropped at the first step.
    Matrices with as many rows as a slice has cells are kept transposed.
    """
    memory: dict[str, Floats] = {}
    for mode in range(len(rows)):
        columns = _columns(change, mode, change.new_shape[mode])
        c = rows[mode]
        if method.by_svd:
            ages = np.arange(len(c) - 1, -1, -1, dtype=float)
            window = columns * np.sqrt(method.decay**ages)
            left, sizes, _ = np.linalg.svd(window, full_matrices=False)
            basis, sizes = _pad(left.T, sizes, c.shape[1])
            others = khatri_rao([r for m, r in enumerate(rows) if m != mode])
            mixing = np.linalg.pinv((sizes[:, None] * basis).T) @ others
            parts = {"basis": basis, "sizes": sizes, "mixing": mixing}
        else:
            parts = {"sums": thin_times(c, columns.T), "past": thin_times(c, c)}
        memory |= {f"{name}_{mode}": part for name, part in parts.items()}
    return memory


def step(
    method: Tracking,
    factors: Factors,
    change: Change,
    memory: Memory,
    run: Run = serially,  # noqa: ARG001 - one form for all methods
) -> Outcome:
    """Follow the new slices one by one.  Writes nothing."""
    begun = begin_step(factors, change)
    work, time = begun.work, change.time
    others = [m for m in range(work.order) if m != time]
    new = work.lower_part(time)
    state = {n: memory[f"{n}_{time}"] for n in _NAMES[method.by_svd]}
    columns = _columns(change, time, new.stop - new.start)
    for k in range(columns.shape[1]):
        x = np.ascontiguousarray(columns[:, k])
        if method.by_svd:
            h, state = _follow_svd(state, x, method)
        else:
            c = _fit_row(x, work, others) if method.structured else _row_of(state, x)
            h, state = _follow_sums(state, x, c, method)
        _split(h, work, others)
        if method.structured:
            row = _fit_row(x, work, others)
        else:
            row = state["last"] if method.by_svd else _row_of(state, x)
        work.stack[new.start + k] = row
    value = _residual(columns, work, others, work.stack[new])
    remembered = {f"{name}_{time}": state[name] for name in _NAMES[method.by_svd]}
    return finish_step(begun, change, factors, value, "slices", memory=remembered)


_NAMES = {True: ("basis", "sizes", "mixing"), False: ("sums", "past")}


def _follow_sums(
    state: dict[str, Floats], x: Floats, c: Floats, method: Tracking
) -> tuple[Floats, dict[str, Floats]]:
    """Recursive least squares for H with the row c of the new slice; returns H' and the sums."""
    sums = method.decay * state["sums"] + c[:, None] * x
    past = method.decay * state["past"] + np.outer(c, c)
    return thin_times(pseudo_inverse(past), sums), {"sums": sums, "past": past}


def _row_of(state: dict[str, Floats], x: Floats) -> Floats:
    """Return ``c = P R^+ x``: least squares of x on the columns of the unsplit ``H = R P^-1``."""
    sums, past = state["sums"], state["past"]
    return np.asarray(
        past @ (pseudo_inverse(times_thin(sums, sums)) @ times_thin(sums, x[None])[:, 0])
    )


def _fit_row(x: Floats, work: Workspace, others: Sequence[int]) -> Floats:
    """Return least squares of x on the columns of the split ``B (.) A``."""
    gram, rhs = _split_equations(x, work, others)
    return np.asarray(pseudo_inverse(gram) @ rhs)


def _split_equations(x: Floats, work: Workspace, others: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the normal equations of a row of C, with H split, for the slice x."""
    first, second = (work.stack[work.part(m)] for m in others)
    gram = thin_times(first, first) * thin_times(second, second)
    rhs = (thin_times(first, x.reshape(len(first), len(second))) * second.T).sum(axis=1)
    return gram, rhs


def _residual(columns: Floats, work: Workspace, others: Sequence[int], rows: Floats) -> float:
    """Return the squared residual of the new slices: ``|x|^2 - 2 c q' + c G c'`` each."""
    total = 0.0
    for k, row in enumerate(rows):
        x = columns[:, k]
        gram, rhs = _split_equations(x, work, others)
        total += max(0.0, dot(x, x) - float(2.0 * (row @ rhs) - row @ gram @ row))
    return total


def _follow_svd(
    state: dict[str, Floats], x: Floats, method: Tracking
) -> tuple[Floats, dict[str, Floats]]:
    """Append a column to the window, exactly, and cut back to rank R; returns H' and the state."""
    basis, sizes, mixing = state["basis"], state["sizes"], state["mixing"]
    rank = len(sizes)
    inside = times_thin(basis, x[None])[:, 0]
    outside = x - thin_times(inside[:, None], basis)[0]
    length = sqrt(dot(outside, outside))
    if length > 0.0:
        outside /= length
    root = sqrt(method.decay)
    core = np.zeros((rank + 1, rank + 1))
    core[:rank, :rank] = np.diag(root * sizes)
    core[:rank, rank] = inside
    core[rank, rank] = length
    turn, new_sizes, right = np.linalg.svd(core)
    basis = thin_times(turn[:rank, :rank], basis)
    basis += turn[rank, :rank, None] * outside
    sizes = new_sizes[:rank]
    kept, last = right[:rank, :rank].T, right[:rank, rank]  # V+ is V kept, with `last` below
    mixing = kept.T @ mixing / root
    h = thin_times(mixing * sizes[:, None], basis)
    state = {"basis": basis, "sizes": sizes, "mixing": mixing}
    return h, state if method.structured else state | {"last": np.linalg.pinv(mixing) @ last}


def _split(h: Floats, work: Workspace, others: Sequence[int]) -> None:
    """Replace the two other factors: each row of H' as a rank-one matrix ``a b'``."""
    first, second = (work.stack[work.part(m)] for m in others)
    for r, matrix in enumerate(h.reshape(-1, len(first), len(second))):
        length = sqrt(dot(first[:, r], first[:, r]))
        b = thin_times(first[:, r : r + 1], matrix)[0] / (length or 1.0)
        a = times_thin(matrix, b[None])[:, 0]
        length = sqrt(dot(a, a))
        if length > 0.0:  # else the column has turned away from what it was: keep the old one
            first[:, r], second[:, r] = a / length, b


def _columns(change: Change, mode: int, count: int) -> Floats:
    """Return the last `count` slices along a mode as columns; every cell of them is there."""
    assert isinstance(change.entries, DenseBox)  # the limits of the method say so
    return change.entries.columns(mode)[:, -count:]


def _pad(basis: Floats, sizes: Floats, rank: int) -> tuple[Floats, Floats]:
    """Cut to `rank` singular values, or fill up with zeros where there are fewer."""
    lack = max(0, rank - len(sizes))
    return np.pad(basis[:rank], ((0, lack), (0, 0))), np.pad(sizes[:rank], (0, lack))
