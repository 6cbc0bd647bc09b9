"""The objective of rows that have priors and know how sure they are.

    sum_c h_c E (x_c - y_c)^2                                  cells and boxes, as in `squares`
  + sum_i (a_i - m_i)' L_i (a_i - m_i) + tr L_i C_i            prior of each row
  - s2 sum_i log |C_i|                                         entropy

with the expectation over rows that have mean ``a`` and covariance ``C``.  It is the variational
bound of a Gaussian model, times ``2 s2``: a row and its covariance minimise it together,

    (P_i + L_i) a_i = q_i + L_i m_i,      C_i = s2 (P_i + L_i)^-1.

L and C are packed; above `core.tensor.packed.FULL_RANK` components they are diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.boxes import add_boxes
from tensortide.core.kernels.coordinates import descend_rows
from tensortide.core.kernels.dense import dot
from tensortide.core.kernels.entries import add_equations, add_rhs
from tensortide.core.kernels.matrices import invert_rows
from tensortide.core.kernels.moments import (
    add_moments,
    own_variance,
    prior_value,
    second_moments,
    solve_believed,
)
from tensortide.core.objective.squares import BoxTerm, Careful, Listed, Objective
from tensortide.core.tensor.packed import diagonal_places, unpack
from tensortide.core.tensor.workspace import Block, Workspace
from tensortide.errors import SolveError

NONE = np.empty((0, 1, 1))
HELD = 1e-9  # share of their diagonal that is added to matrices which rounding makes singular
PASSES = 300  # of coordinate descent for a row that may not be negative, at most
TOL = 1e-10  # share of the largest number that a pass may move and be the last


def invert(packed: Floats, rank: int, mode: int = 0) -> tuple[Floats, Floats]:
    """Return the inverses of packed matrices and the logarithms of their determinants.

    >>> nearly = np.array([[1.0, 1.0 - 1e-15, 1.0]])  # 1 and 1 beside the diagonal, to rounding
    >>> bool(np.isfinite(invert(nearly, 2)[0]).all())
    True
    """
    inverse, logs = np.empty_like(packed), np.empty(len(packed))
    failed = invert_rows(packed, rank, inverse, logs)
    if failed >= 0:
        held = packed.copy()
        held[:, diagonal_places(rank, packed.shape[1])] *= 1.0 + HELD
        failed = invert_rows(held, rank, inverse, logs)
    if failed >= 0:
        raise SolveError(
            "its precision has no inverse: values or factors are too large or too small; "
            "scale the values",
            mode=mode,
            position=failed,
        )
    return inverse, logs


class RowPriors:
    """What is believed of the stacked rows of a step before it: means m, precisions L.

    `means` and `precisions` are given by mode, row by row or once for all rows.  Rows of a mode
    that is `nonnegative` are sought among those; they are as sure as if they were free.  `certain`
    is what rows know, where something else than that pulls at them.
    """

    def __init__(
        self,
        means: list[Floats],
        precisions: list[Floats],
        *,
        nonnegative: Sequence[bool] = (),
        certain: list[Floats] | None = None,
    ) -> None:
        self.means, self.precisions = means, precisions
        self.nonnegative = nonnegative or (False,) * len(means)
        self.certain = precisions if certain is None else certain

    def part(self, block: Block) -> tuple[Floats, Floats]:
        """Return means and precisions of a block: one for each row, or a single one."""
        means, told = self.means[block.mode], self.precisions[block.mode]
        rows = slice(block.first, block.last)
        return (means if len(means) == 1 else means[rows], told if len(told) == 1 else told[rows])


class Believed(Objective):
    """Entries, boxes and row priors over one workspace, with covariances in all sums.

    `inverses` are the ``V = T^-1`` of the stacked rows, ``C = s2 V``, and `logs` the ``log |T|``;
    both are renewed as rows are solved.  `outside` is the sum of V
    over old rows of each mode that do not take part.  `imputed` says that a box stands for cells
    that nobody has seen: they move rows and add no certainty.
    """

    def __init__(
        self,
        work: Workspace,
        listed: Listed,
        boxes: Sequence[BoxTerm],
        priors: RowPriors,
        noise: float,
        inverses: Floats,
        logs: Floats,
        outside: Floats,
        *,
        imputed: Listed | None = None,
    ) -> None:
        super().__init__(work, listed, boxes, 0.0)
        self.priors, self.noise, self.inverses, self.outside = priors, noise, inverses, outside
        self.gained = np.zeros_like(inverses)
        self._rhs = np.zeros_like(work.stack)
        self._solved = [0] * work.order  # rows of a mode whose equations are those of now
        self.logs = logs
        self.moments = np.empty_like(inverses)
        self._imputed, self.boxes = imputed, list(boxes)
        self._own[:] = 0.0  # without boxes they are never computed
        second_moments(work.stack, inverses, noise, 0, len(inverses), self.moments)

    @property
    def all_cells(self) -> bool:
        """Whether boxes stand for cells that are not listed."""
        return bool(self.boxes)

    @property
    def exact(self) -> bool:
        """Whether rows are where the equations of the listed cells want them, as sure as known."""
        full = self.inverses.shape[1] > self.work.rank or self.work.rank == 1
        return full and self._imputed is None and not any(self.priors.nonnegative)

    def settle(self) -> None:
        """Bring Gram matrices up to date: those of second moments, where boxes need them."""
        if not len(self._boxes[0]):
            return
        stale = self._stale.copy()
        super().settle()
        for mode in np.flatnonzero(stale).tolist():
            upper, every = self.work.upper_part(mode), self.work.part(mode)
            beyond = self.outside[mode] + self.inverses[upper].sum(axis=0)
            self._own[0, mode] += self.noise * unpack(beyond, self.work.rank)
            beyond = self.outside[mode] + self.inverses[every].sum(axis=0)
            self._own[1, mode] += self.noise * unpack(beyond, self.work.rank)

    def note_change(self, mode: int) -> None:
        """Take note that rows of a mode have changed, and how sure they are."""
        super().note_change(mode)
        self._solved = [n if m == mode else 0 for m, n in enumerate(self._solved)]
        work = self.work
        second_moments(
            work.stack, self.inverses, self.noise, work.bounds[mode], work.bounds[mode + 1],
            self.moments,
        )  # fmt: skip

    def solve(self, block: Block, careful: Careful) -> Floats:  # noqa: ARG002 - priors are proper
        """Return the rows of a block that minimise the objective; note how sure they are."""
        work, at = self.work, self.work.stacked(block)
        gram, rhs = self._sums(block)
        counted = NONE if self._imputed is None else self._observed(block, self._imputed)
        means, told = self.priors.part(block)
        rows = work.stack[at].copy()
        found = rows, self.gained[at], self.inverses[at], self.logs[at]
        entries = self.pointers(block), self.every_row
        failed = solve_believed(gram, rhs, counted, told, means, *entries, *found)
        if failed >= 0:  # components that cannot be told apart: the priors hold a little more
            told = np.repeat(told, len(rows) // len(told), axis=0)
            places = diagonal_places(work.rank, told.shape[1])
            told[:, places] += HELD * (told[:, places] + np.einsum("irr->ir", gram))
            failed = solve_believed(gram, rhs, counted, told, means, *entries, *found)
        self._rhs[at] = rhs
        self._solved[block.mode] += len(rows)
        if failed >= 0:
            raise SolveError(
                "its equations have no finite solution: values or factors are too large or "
                "too small; scale the values",
                mode=block.mode,
                position=block.first + failed,
            )
        if self.priors.nonnegative[block.mode] and (rows < 0.0).any():
            self._press_up(rows, gram, rhs, means, told)
        return rows

    def _press_up(
        self, rows: Floats, gram: Floats, rhs: Floats, means: Floats, told: Floats
    ) -> None:
        """Replace rows that have negative numbers by the best ones without."""
        below = np.flatnonzero((rows < 0.0).any(axis=1))
        gram, rhs, means, told = (
            one if len(one) == 1 else one[below] for one in (gram, rhs, means, told)
        )
        prior = unpack(told, self.work.rank)
        shape = (len(below), *prior.shape[1:])
        full = np.array(np.broadcast_to(gram + prior, shape), order="C")
        right = rhs + np.einsum("irs,is->ir", prior, means)
        found = np.maximum(rows[below], 0.0)
        nobody = np.zeros(len(below) + 1, np.int64), np.empty(0, np.int64), np.empty(0)
        rank = self.work.rank
        descend_rows(
            full, np.ascontiguousarray(right), 0.0, np.zeros(rank), True,
            np.zeros(len(below), bool), *nobody, np.ones(rank), PASSES, TOL, found,
        )  # fmt: skip
        rows[below] = found

    def _sums(self, block: Block) -> tuple[Floats, Floats]:
        """Return the sums of cells and boxes: P with second moments, q with means."""
        if self._dense is not None:
            return self._dense_sums(block)
        mode, work, listed = block.mode, self.work, self.listed
        order, n_rows, rank = listed.entries.orders[mode], block.last - block.first, work.rank
        shared, rhs = np.zeros((1, rank, rank)), np.zeros((n_rows, rank))
        first = work.bounds[mode] + block.first
        add_boxes(mode, block.upper, first, *self._boxes, self._own, self._cross, shared[0], rhs)
        pointers = self.pointers(block)
        add_rhs(
            pointers, order.others, work.other_offsets[mode], work.stack, listed.values[mode], rhs
        )
        if listed.curvatures is None:
            return shared, rhs
        gram = np.zeros((n_rows, rank, rank))
        if self.boxes:
            gram += shared
        self._add_cells(block, listed, gram)
        return gram, rhs

    def _observed(self, block: Block, listed: Listed) -> Floats:
        gram = np.zeros((block.last - block.first, self.work.rank, self.work.rank))
        self._add_cells(block, listed, gram)
        return gram

    def _add_cells(self, block: Block, listed: Listed, gram: Floats) -> None:
        order, work = listed.entries.orders[block.mode], self.work
        assert listed.curvatures is not None
        where = (
            order.pointers[block.first : block.last + 1], order.others,
            work.other_offsets[block.mode], work.stack,
        )  # fmt: skip
        curvatures = listed.curvatures[block.mode]
        if self.moments.shape[1] == work.rank > 1:  # the means, then the diagonal in their place
            shared = gram.diagonal(axis1=1, axis2=2).copy()
            nothing = np.zeros((len(gram), work.rank))
            add_equations(*where, curvatures, listed.values[block.mode], gram, nothing)
            add_moments(*where, self.moments, curvatures, gram)
            gram[:, np.arange(work.rank), np.arange(work.rank)] += shared
            return
        add_moments(*where, self.moments, curvatures, gram)

    def own_variance(self, listed: Listed | None = None) -> float:
        """Return the variance that the model itself has at the listed cells, added up."""
        listed = self.listed if listed is None else listed
        if listed.curvatures is None:
            return 0.0
        order, work = listed.entries.orders[0], self.work
        return float(
            own_variance(
                0, order.pointers, order.others, work.other_offsets[0], work.stack, self.moments,
                listed.curvatures[0],
            )
        )  # fmt: skip

    def misses(self) -> float:
        """Return the expected squared misses of cells and boxes.

        From the equations of the mode that was solved last, where they say it all:
        ``sum x^2 - 2 sum_i q_i a_i + sum_i <P_i, a_i a_i' + C_i>``.
        """
        work = self.work
        solved = [m for m, n in enumerate(self._solved) if n == work.n_rows[m]]
        full = self.moments.shape[1] > work.rank or work.rank == 1
        anchored = any(box.reference is not None for box in self.boxes)
        beyond = bool(self.boxes) and not work.whole  # cells of rows that are not here
        if not solved or not full or anchored or beyond or self._imputed is not None:
            return super().value() + self.own_variance()
        part = work.part(solved[0])
        twice = np.full(self.moments.shape[1], 2.0)
        twice[diagonal_places(work.rank, len(twice))] = 1.0
        found = dot(self.gained[part] * twice, self.moments[part])
        found += self._sum_of_squares() - 2.0 * dot(self._rhs[part], work.stack[part])
        return max(found, 0.0)

    def _sum_of_squares(self) -> float:
        """Return the weighted sum of squared values."""
        curvatures, values = self.listed.curvatures, self.listed.values
        if curvatures is not None and not len(curvatures[0]):
            return dot(values[0], values[0])
        return self.listed.constant

    def fit(self) -> float:
        """Return the squared misses of the rows as they are, boxes included."""
        return super().value()

    def value(self, misses: float | None = None) -> float:
        """Return the objective at the current rows and covariances; `misses` if they are known."""
        work = self.work
        total = self.misses() if misses is None else misses
        for mode, rows in enumerate(work.rows()):
            means, told = self.priors.means[mode], self.priors.precisions[mode]
            total += prior_value(rows, means, told, self.inverses[work.part(mode)], self.noise)
        constant = len(self.logs) * work.rank * np.log(self.noise) if self.noise > 0.0 else 0.0
        return total + self.noise * (float(self.logs.sum()) - constant)
