"""The start of new rows: `eq:baseline-initialize-lower`, and what to do where it is empty."""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Flags, Floats
from tensortide.core.kernels.dense import thin_times
from tensortide.core.objective.equations import NormalEquations
from tensortide.core.objective.squares import BoxTerm, Listed, Objective
from tensortide.core.tensor.dense_box import AnyEntries, DenseBox
from tensortide.core.tensor.entries import Entries, ModeOrder
from tensortide.core.tensor.workspace import Block, Workspace
from tensortide.core.updates.exact import exact, solve


def start_lower_rows(
    work: Workspace, entries: AnyEntries, beta: float, means: Floats, *, absent_zero: bool
) -> None:
    """Give every new row a start.

    First, per mode, least squares on the intersection box: the entries of the new row
    whose other rows are all old (the paper's start; the ridge is the one of the
    objective).  Then, round by round, rows whose other rows have got a start meanwhile.
    What is left begins at the mean row of its mode, never at zeros.

    With absent cells zero the intersection box is complete: its Gram matrix is that of
    the old rows, and a new row without any entry is known to be zero.
    """
    growing = work.growing
    if isinstance(entries, DenseBox):
        _start_complete(work, entries, beta)
        return
    started = {m: np.arange(work.n_rows[m]) < work.n_upper[m] for m in growing}
    if absent_zero:
        for mode in growing:
            pointers = entries.orders[mode].pointers
            empty = ~started[mode] & (pointers[1:] == pointers[:-1])
            work.stack[work.part(mode)][empty] = 0.0
            started[mode] |= empty
    for _ in range(work.order + 1):
        solved = [
            _solve_from(work, entries, mode, started, beta, absent_zero=absent_zero)
            for mode in growing
            if not started[mode].all()
        ]
        for mode, rows, done in solved:
            work.stack[work.lower_part(mode)] = rows
            started[mode] |= done
        if all(flags.all() for flags in started.values()):
            return
        if not any(done.any() for _, _, done in solved):
            break
    for mode, flags in started.items():
        if not flags.all():
            waiting = np.flatnonzero(~flags) + work.bounds[mode]
            work.stack[waiting] = _mean_row(work, mode, flags, means[mode])


def _start_complete(work: Workspace, box: DenseBox, beta: float) -> None:
    """Least squares for the new rows of the one mode that grows, all its cells known."""
    for mode in work.growing:
        new = work.lower_part(mode)
        others = [r if m != mode else r[:0] for m, r in enumerate(work.rows())]
        gram = np.ones((work.rank, work.rank))
        for m, rows in enumerate(others):
            if m != mode:
                gram *= thin_times(rows, rows)
        local = box.shape[mode] - (new.stop - new.start)
        rhs = box.mttkrp(others, mode, first=local)
        block = Block(mode, work.n_upper[mode], work.n_rows[mode], False)
        work.stack[new] = solve(NormalEquations(gram, rhs), beta, work.stack[new], block)


def _solve_from(
    work: Workspace,
    entries: Entries,
    mode: int,
    started: dict[int, Flags],
    beta: float,
    *,
    absent_zero: bool,
) -> tuple[int, Floats, Flags]:
    """Solve the waiting rows of a mode from those entries whose other rows have started.

    Returns the mode, all its new rows, and which rows were solved now.
    """
    order, n_upper = entries.orders[mode], work.n_upper[mode]
    others = [m for m in range(work.order) if m != mode]
    obstacles = [
        (k, started[m]) for k, m in enumerate(others) if m in started and not started[m].all()
    ]
    if obstacles or started[mode][n_upper:].any():
        usable = np.repeat(~started[mode], np.diff(order.pointers))
        for k, flags in obstacles:
            usable &= flags[order.others[:, k]]
        order = order.kept(usable)
    done = order.pointers[1:] > order.pointers[:-1]
    done[:n_upper] = False
    listed, boxes = Listed.squares(Entries((order,) * work.order, entries.shape)), []
    if absent_zero:
        listed = _beside_zeros(work, mode, order, listed)
        boxes = [BoxTerm(1.0, None, upper_only=True)]
    objective = Objective(work, listed, boxes, beta)
    if boxes:
        objective.settle()
    # The box of the start is that of the old rows: for it a new row counts as if it were old.
    block = Block(mode, n_upper, work.n_rows[mode], absent_zero)
    return mode, exact(objective, block), done


def _beside_zeros(work: Workspace, mode: int, order: ModeOrder, listed: Listed) -> Listed:
    """Return the entries beside a box of zeros, which counts every cell of old rows once."""
    limits = np.array([n for k, n in enumerate(work.n_upper) if k != mode])
    boxed = np.all(order.others < limits, axis=1).astype(np.float64)
    weights = order.weights if len(order.weights) else np.ones(len(boxed))
    curvature = weights - boxed
    curvatures = [curvature] * work.order if curvature.any() else None
    return Listed(listed.entries, curvatures, listed.values, 0.0)


def _mean_row(work: Workspace, mode: int, started: Flags, old_mean: Floats) -> Floats:
    """Return the mean of the new rows that have started, else of all old rows."""
    new = work.stack[work.lower_part(mode)][started[work.n_upper[mode] :]]
    mean = new.mean(axis=0) if len(new) else old_mean
    return mean if mean.any() else np.full(work.rank, 1.0 / np.sqrt(work.rank))
