"""Penalised and constrained factors: the alternating direction method of multipliers.

For every factor ``f(A) + r(Z)`` with ``A = Z``; f is the quadratic of its normal equations.

Two ways, both as published.  *Within a block* (CP-stream, AO-ADMM): the equations of one mode
are held fixed while A, Z and the multipliers are iterated until they move little, from where
they were left in the sweep before.  *Across the sweep*
(MAST): one update of every A, all Z and all multipliers per sweep, with a growing weight.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.dense import dot
from tensortide.core.objective.equations import NormalEquations
from tensortide.core.objective.squares import Objective
from tensortide.core.penalties.prox import Penalty, Prox
from tensortide.core.tensor.workspace import Block, Workspace
from tensortide.core.updates.exact import solve


class Admm:
    """The copies Z and the multipliers Y of all factors, during one step."""

    def __init__(self, penalty: Penalty, work: Workspace) -> None:
        self._penalty = penalty
        self._work = work
        self._weight = penalty.weight or 0.0
        self._copies = work.stack.copy()
        self._multipliers = np.zeros_like(work.stack)

    def begin_sweep(self) -> None:
        """Raise the weight and shrink the copies (MAST, across the sweep)."""
        if self._penalty.weight is None:
            return
        self._weight *= self._penalty.growth
        for mode in range(self._work.order):
            part = self._work.part(mode)
            self._copies[part] = self._penalty.prox.apply(
                self._work.stack[part] - self._multipliers[part] / self._weight, 1.0 / self._weight
            )

    def update(self, objective: Objective, block: Block) -> None:
        """Move the rows of a block."""
        where = self._work.stacked(block)
        equations = objective.equations(block)
        if self._penalty.weight is None:
            rows = self._within(equations, self._work.stack[where], block)
        else:
            # f is a G a' - 2 q a', without the usual half: so the weight enters by half.
            pull = 0.5 * (self._weight * self._copies[where] + self._multipliers[where])
            rows = _solve_ridge(equations, 0.5 * self._weight, pull, self._work.stack[where], block)
        if not block.upper and objective.listed.curvatures is not None:
            # a new row without entries stays at its start: the penalty alone would make it zero
            empty = np.diff(objective.pointers(block)) == 0
            start = self._work.stack[where][empty]
            # a constraint holds for it, too; a penalty waits for its first entries
            rows[empty] = (
                self._penalty.prox.apply(start, 0.0) if self._penalty.weight is None else start
            )
        self._work.stack[where] = rows
        objective.note_change(block.mode)

    def end_sweep(self) -> None:
        """Move the multipliers (MAST, across the sweep)."""
        if self._penalty.weight is not None:
            self._multipliers += self._weight * (self._copies - self._work.stack)

    def _within(self, equations: NormalEquations, rows: Floats, block: Block) -> Floats:
        """Iterate one block until it moves little, with the mean curvature as weight."""
        penalty = self._penalty
        gram = equations.gram
        weight = float(np.trace(gram, axis1=-2, axis2=-1).mean()) / gram.shape[-1]
        where = self._work.stacked(block)

        def free(weight: float, pull: Floats, start: Floats) -> Floats:
            return _solve_ridge(equations, weight, pull, start, block)

        # go on from the sweep before
        shifts = self._multipliers[where]
        rows, self._multipliers[where] = alternate(
            penalty.prox, weight, free, rows, shifts, penalty.inner, penalty.tol
        )
        return rows


def alternate(
    prox: Prox,
    weight: float,
    free: Callable[[float, Floats, Floats], Floats],
    rows: Floats,
    shifts: Floats,
    inner: int = 100,
    tol: float = 1e-10,
) -> tuple[Floats, Floats]:
    """Iterate rows, copies and multipliers until they move little; return copies, multipliers.

    ``free(weight, pull, start)`` minimises the quadratic with `weight` more on the diagonal and
    `pull` more on the right.
    """
    if weight == 0.0:
        return prox.apply(rows, 0.0), shifts
    for _ in range(inner):
        before = rows
        loose = free(weight, weight * (rows + shifts), rows)
        rows = prox.apply(loose - shifts, 0.5 / weight)
        shifts = shifts + rows - loose
        apart, moved = rows - loose, rows - before
        if dot(apart, apart) <= tol * dot(rows, rows) and (
            dot(moved, moved) <= tol * dot(shifts, shifts)
        ):
            break
    return rows, shifts


def _solve_ridge(
    equations: NormalEquations, weight: float, pull: Floats, rows: Floats, block: Block
) -> Floats:
    """Solve the equations with ``weight`` on the diagonal and `pull` on the right."""
    pulled = NormalEquations(equations.gram, equations.rhs + pull)
    return solve(pulled, weight, rows, block)
