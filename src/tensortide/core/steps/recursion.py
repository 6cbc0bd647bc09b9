"""Methods that remember the past as sums: OnlineCPD, OLSTEC, and the gradient step.

A step sees the new slices only.  With the other factors fixed it solves the new rows of the
growing mode; then, mode by mode and with what has just been computed, it adds the slices'
normal equations to the faded equations of the past and solves:

    G_n <- decay G_n + G_n(batch),   q_n <- decay q_n + q_n(batch),   A_n = q_n (G_n + beta I)^-1

For complete slices ``G_n(batch)`` is one matrix for all rows, a Hadamard product of Gram
matrices (OnlineCPD's Q, with P = q); else every row has its own (OLSTEC).  The equations of
the past hold the factors as they were then: that is what makes a step cheap, and why these
methods cannot take a value back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.dense import dot
from tensortide.core.objective.data_terms import ZeroFilled, observed_rows
from tensortide.core.objective.equations import NormalEquations
from tensortide.core.objective.squares import Objective
from tensortide.core.steps.change import Change
from tensortide.core.steps.method import Memory, Recursion
from tensortide.core.steps.outcome import Outcome, begin_step, finish_step
from tensortide.core.steps.start import start_lower_rows
from tensortide.core.tensor.factors import Factors
from tensortide.core.tensor.workspace import Block, Workspace
from tensortide.core.updates.exact import Run, serially, solve


def begin(method: Recursion, rows: Sequence[Floats], change: Change) -> Memory:
    """Return the sums of the preparation data at the prepared factors, for every mode.

    Which mode grows is not known yet; its sums are dropped at the first step.
    """
    if method.step is not None:
        return {}
    work = Workspace([len(r) for r in rows], [0] * len(rows), rows[0].shape[1])
    for part, factor in zip(work.rows(), rows, strict=True):
        part[:] = factor
    objective = _slices(method, work, change)
    return _pack({b.mode: objective.equations(b) for b in work.blocks()})


def step(
    method: Recursion,
    factors: Factors,
    change: Change,
    memory: Memory,
    run: Run = serially,  # noqa: ARG001 - a slice is small; one form for all methods
) -> Outcome:
    """Compute one step.  Writes nothing."""
    begun = begin_step(factors, change)
    work = begun.work
    work.rest = np.zeros_like(work.rest)  # the box of this step is the new slices alone
    full = change.complete or change.absent_zero
    start_lower_rows(work, change.entries, method.beta, begun.means, absent_zero=full)
    objective = _slices(method, work, change)
    blocks = [block for block in work.blocks() if block.mode != change.time]
    sums: dict[int, NormalEquations] = {}
    if method.step is None:
        for block in blocks:
            sums[block.mode] = method.decay * _unpack(memory, block.mode) + objective.equations(
                block
            )
            _put(work, block, solve(sums[block.mode], method.beta, _rows(work, block), block))
            objective.note_change(block.mode)
    else:
        _descend(objective, blocks, method)
    if method.resolve:
        start_lower_rows(work, change.entries, method.beta, begun.means, absent_zero=full)
        objective.note_change(change.time)
    value = objective.value()
    value += method.beta * dot(work.stack, work.stack)
    strategy = "slices" if full else "rows"
    return finish_step(begun, change, factors, value, strategy, memory=_pack(sums))


def _slices(method: Recursion, work: Workspace, change: Change) -> Objective:
    """Return the squared residual of the cells that have come."""
    complete = change.absent_zero or change.complete or method.limits.complete
    terms = ZeroFilled(outside_old=False) if complete else observed_rows
    listed, boxes = terms(work, change.entries)
    return Objective(work, listed, boxes, 0.0)


def _descend(objective: Objective, blocks: Sequence[Block], method: Recursion) -> None:
    """Move all blocks at once along their gradients.

    The step is `method.step` times the inverse of the largest curvature of the batch in the
    block, so that it means the same for data of any scale; below 2 a block cannot overshoot.
    """
    work = objective.work
    moved = []
    for block in blocks:
        equations = objective.equations(block)
        rows = _rows(work, block)
        slope = 0.5 * equations.gradient(rows) + method.beta * rows
        largest = float(np.linalg.eigvalsh(equations.gram).max()) + method.beta
        moved.append(rows - (method.step or 0.0) / largest * slope if largest > 0.0 else rows)
    for block, rows in zip(blocks, moved, strict=True):
        _put(work, block, rows)
        objective.note_change(block.mode)


def _rows(work: Workspace, block: Block) -> Floats:
    return work.stack[work.stacked(block)]


def _put(work: Workspace, block: Block, rows: Floats) -> None:
    work.stack[work.stacked(block)] = rows


def _pack(sums: dict[int, NormalEquations]) -> Memory:
    return {
        f"{kind}_{mode}": array
        for mode, equations in sums.items()
        for kind, array in (("gram", equations.gram), ("rhs", equations.rhs))
    }


def _unpack(memory: Memory, mode: int) -> NormalEquations:
    return NormalEquations(memory[f"gram_{mode}"], memory[f"rhs_{mode}"])
