"""The last model as a prior of a positive one: the divergence from it, component by component.

The paper's reconstruction term with the loss of counts is ``sum KL(y_old | y_new)`` over the old
box.  By the log-sum inequality it is at most the divergence of the rank-one parts,

    sum_r KL(y_old,r | y_new,r)
      = sum_r [ prod_n s_n,r - prod_n t_n,r + sum_n c_n,r sum_i b_ir log(b_ir / a_ir) ]

with old rows b and their column sums t, the rows a and sums s of now, and c_n,r the product of
t_m,r over the other modes m.  Both are zero at the old model.  That costs rows, not cells, and is
a gamma prior of each number around its old value: in a mode it is
``above log(b / a) + below a`` with ``above = c b`` and ``below = prod of s over the other modes``.
"""

from __future__ import annotations

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.tensor.workspace import Workspace


class Towards:
    """``weight sum_r KL(y_old,r | y_new,r)`` over the old box.

    `previous` are the stacked rows of the last model, `rest_sums` the column sums of each mode over
    old rows that do not take part, which stay.
    """

    def __init__(
        self, work: Workspace, previous: Floats, rest_sums: Floats | None, weight: float
    ) -> None:
        self._work, self._weight, self._old = work, weight, previous
        self._rest = np.zeros((work.order, work.rank)) if rest_sums is None else rest_sums
        self._old_sums = self._sums(previous)

    def _sums(self, stack: Floats) -> Floats:
        """Return the column sums of each mode over all old rows."""
        work = self._work
        inside = [stack[work.upper_part(mode)].sum(axis=0) for mode in range(work.order)]
        return np.asarray(self._rest + np.array(inside))

    def parts(self, mode: int) -> tuple[Floats, Floats]:
        """Return `above` and `below` of all rows of a mode; new ones have none."""
        n_upper, shape = self._work.n_upper[mode], (self._work.n_rows[mode], self._work.rank)
        above, below = np.zeros(shape), np.zeros(shape)
        others = np.arange(self._work.order) != mode
        share = self._weight * self._old_sums[others].prod(axis=0)
        above[:n_upper] = share * self._old[self._work.upper_part(mode)]
        below[:n_upper] = self._weight * self._sums(self._work.stack)[others].prod(axis=0)
        return above, below

    def add(self, mode: int, gram: Floats, rhs: Floats) -> None:
        """Add the parabola that touches the term at the current rows to their equations."""
        above, below = self.parts(mode)
        rows = self._work.stack[self._work.part(mode)]
        there = above > 0.0
        ratio = np.divide(above, rows, out=np.zeros_like(rows), where=there & (rows > 0.0))
        bend = np.divide(ratio, rows, out=np.zeros_like(rows), where=ratio > 0.0)
        gram[:, np.arange(gram.shape[1]), np.arange(gram.shape[1])] += 0.5 * bend
        rhs += 0.5 * (2.0 * ratio - below)

    def row_values(self, mode: int, rows: Floats) -> Floats:
        """Return what each row of a mode would contribute with other rows in its place."""
        above, below = self.parts(mode)
        old = self._old[self._work.part(mode)]
        there = above > 0.0
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(there, old, 1.0)) - np.log(np.where(there, rows, 1.0))
        return np.asarray((above * logs + below * rows).sum(axis=1))

    def total(self) -> float:
        """Return the term at the current rows, of rows outside the workspace too."""
        work = self._work
        total = self._weight * float(
            (self._sums(work.stack).prod(axis=0) - self._old_sums.prod(axis=0)).sum()
        )
        for mode, rows in enumerate(work.rows()):
            _, below = self.parts(mode)
            total += float(self.row_values(mode, rows).sum() - (below * rows).sum())
        return total
