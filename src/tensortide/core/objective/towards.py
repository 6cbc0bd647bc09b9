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

from abc import ABC, abstractmethod

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.objective.believed import RowPriors, invert
from tensortide.core.tensor.packed import unpack
from tensortide.core.tensor.workspace import Workspace


class Pulls(ABC):
    """A term ``sum below a - above log a`` over the numbers of the rows of each mode.

    It is what counts of size `above`, seen under an exposure of `below`, would add.
    """

    def __init__(self, work: Workspace) -> None:
        self._work = work

    @abstractmethod
    def parts(self, mode: int) -> tuple[Floats, Floats]:
        """Return `above` and `below` of all rows of a mode."""

    @abstractmethod
    def total(self) -> float:
        """Return the term at the current rows, of rows outside the workspace too."""

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
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(above > 0.0, rows, 1.0))
        return np.asarray((below * rows - above * logs).sum(axis=1))


class Towards(Pulls):
    """``weight sum_r KL(y_old,r | y_new,r)`` over the old box.

    `previous` are the stacked rows of the last model, `rest_sums` the column sums of each mode over
    old rows that do not take part, which stay.
    """

    def __init__(
        self, work: Workspace, previous: Floats, rest_sums: Floats | None, weight: float
    ) -> None:
        super().__init__(work)
        self._weight, self._old = weight, previous
        rest = np.zeros((work.order, work.rank)) if rest_sums is None else rest_sums
        self._rest = np.maximum(rest, 0.0)  # a difference of sums may be just below, by rounding
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

    def total(self) -> float:
        """Return the term at the current rows, of rows outside the workspace too."""
        work = self._work
        total = self._weight * float(
            (self._sums(work.stack).prod(axis=0) - self._old_sums.prod(axis=0)).sum()
        )
        for mode, rows in enumerate(work.rows()):
            above, _ = self.parts(mode)
            old = self._old[work.part(mode)]
            with np.errstate(divide="ignore"):
                logs = np.log(np.where(above > 0.0, old, 1.0))
                logs -= np.log(np.where(above > 0.0, rows, 1.0))
            total += float((above * logs).sum())
        return total


class GammaPriors(Pulls):
    """Priors of the rows of counts: gamma, with the means and variances that are believed.

    With shape k and rate b the term is ``2 s2 (b a - k log a)``: the row that minimises it together
    with counts is the mean of their posterior.  A normal prior would not know that counts have
    sizes of all orders: it would press large rows, and small ones could lie below nothing.  `held`
    is what holds rows besides.
    """

    def __init__(self, work: Workspace, priors: RowPriors, held: Pulls | None) -> None:
        super().__init__(work)
        self._priors, self.held = priors, held

    def _own(self, mode: int) -> tuple[Floats, Floats]:
        means, told = self._priors.means[mode], self._priors.precisions[mode]
        precise = 1.0 / np.diagonal(_variances(told, self._work.rank), axis1=1, axis2=2)
        below = np.where(np.isfinite(precise), 2.0 * precise * means, 0.0)
        shape = (self._work.n_rows[mode], self._work.rank)
        return np.broadcast_to(below * means, shape), np.broadcast_to(below, shape)

    def parts(self, mode: int) -> tuple[Floats, Floats]:
        """Return `above` and `below` of all rows of a mode."""
        above, below = self._own(mode)
        if self.held is None:
            return above, below
        more = self.held.parts(mode)
        return above + more[0], below + more[1]

    def total(self) -> float:
        """Return the term at the current rows, of rows outside the workspace too."""
        total = 0.0 if self.held is None else self.held.total()
        for mode, rows in enumerate(self._work.rows()):
            above, below = self._own(mode)
            with np.errstate(divide="ignore"):
                logs = np.log(np.where(above > 0.0, rows, 1.0))
            total += float((below * rows - above * logs).sum())
        return total


def _variances(told: Floats, rank: int) -> Floats:
    """Return the inverses of precisions; of none, infinity."""
    found = np.full((len(told), rank, rank), np.inf)
    there = np.flatnonzero(told.any(axis=1))
    if len(there):
        found[there] = unpack(invert(np.ascontiguousarray(told[there]), rank)[0], rank)
    return found
