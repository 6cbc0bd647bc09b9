"""The objective of a step as data: listed entries, boxes and a ridge.

    sum_e h_e y_e^2 - 2 v_e y_e + constant          entries
  + sum_t w_t || [[reference_t]] - [[A]] ||^2       boxes, over the upper or over all rows
  + beta sum_n || A^n ||^2                          ridge

Every block of rows minimises a quadratic, given by its normal equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tensortide.arrays import Floats, Positions
from tensortide.core.kernels.boxes import add_boxes, boxes_value, refresh, sum_equations
from tensortide.core.kernels.dense import dot
from tensortide.core.kernels.entries import entries_value, predict_entries, solve_rows
from tensortide.core.objective.equations import NormalEquations
from tensortide.core.tensor.dense_box import AnyEntries, DenseBox
from tensortide.core.tensor.workspace import Block, Workspace

Careful: TypeAlias = Callable[[NormalEquations, float, Block], Floats]


@dataclass(frozen=True, slots=True)
class Listed:
    """Entries with curvatures h and linear weights v, per mode in row order.

    An empty array of curvatures means all ones, None all zeros: the entries then touch the
    right-hand side only, and the Gram matrix comes from a box.
    """

    entries: AnyEntries
    curvatures: list[Floats] | None
    values: list[Floats]
    constant: float

    @classmethod
    def whole(cls, box: DenseBox) -> Listed:
        """Return what a complete box adds to a box of reference zero, ``-2 <x, y> + |x|^2``."""
        return cls(box, None, [], dot(box.values, box.values))

    @classmethod
    def squares(cls, entries: AnyEntries) -> Listed:
        """Return ``sum_e w_e (x_e - y_e)^2``: the squared residual on the observed entries."""
        orders = entries.orders
        if not len(orders[0].weights):
            return cls(entries, [o.weights for o in orders], [o.values for o in orders], 0.0)
        values = [o.weights * o.values for o in orders]
        constant = dot(values[0], orders[0].values)
        return cls(entries, [o.weights for o in orders], values, constant)


@dataclass(frozen=True, slots=True)
class BoxTerm:
    """``weight || [[reference]] - [[A]] ||^2``; no reference stands for zero.

    `every_row` says that the box is data (zeros of absent cells, a model to be matched),
    so that rows without a listed entry are solved too.
    """

    weight: float
    reference: Floats | None
    upper_only: bool
    every_row: bool = False


class Objective:
    """Entries, boxes and ridge over one workspace, with the Gram matrices they need.

    Rows without entries stay untouched, unless a box has data for every row.
    """

    def __init__(
        self, work: Workspace, listed: Listed, boxes: Sequence[BoxTerm], beta: float
    ) -> None:
        self.work, self.listed, self.beta = work, listed, beta
        self._dense = listed.entries if listed.curvatures is None and not listed.values else None
        self._products: dict[int, tuple[tuple[int, ...], Floats]] = {}
        self._moves = [0] * work.order
        self._ridge = beta * np.eye(work.rank)
        self.every_row = self._dense is not None or any(box.every_row for box in boxes)
        given = [box.reference for box in boxes if box.reference is not None]
        places = iter(range(len(given)))
        width = given[0].shape[1] if given else work.rank
        references = np.empty((len(given), len(work.stack), width))
        for place, reference in enumerate(given):
            references[place] = reference
        self._boxes = (
            np.array([box.weight for box in boxes], np.float64),
            np.array([box.upper_only for box in boxes], np.bool_),
            np.array([-1 if box.reference is None else next(places) for box in boxes], np.int64),
            references,
        )
        self._own = np.empty((2, work.order, work.rank, work.rank))
        self._cross = np.empty((2, len(given), work.order, width, work.rank))
        self._stale = np.array([True] * work.order)

    def note_change(self, mode: int) -> None:
        """Take note that rows of a mode have changed."""
        self._stale[mode] = True
        self._moves[mode] += 1

    def settle(self) -> None:
        """Bring the Gram matrices up to date, before threads read them."""
        work = self.work
        refresh(
            self._stale, work.stack, self._boxes[3], work.firsts, work.upper_counts, work.rest,
            self._own, self._cross,
        )  # fmt: skip

    def equations(self, block: Block) -> NormalEquations:
        """Return the equations of a block, ridge included."""
        self.settle()
        gram, rhs = self._sums(block)
        gram += self._ridge
        return NormalEquations(gram[0] if self.listed.curvatures is None else gram, rhs)

    def solve(self, block: Block, careful: Careful) -> Floats:
        """Return the rows of a block that minimise the objective with all other rows fixed.

        Needs settled Gram matrices.  Rows whose equations have no safe solution by Cholesky
        are handed to `careful`, with their equations; the others are not slowed down by them.
        """
        gram, rhs = self._sums(block)
        pointers = self.pointers(block)
        rows = self.work.stack[self.work.stacked(block)].copy()

        def again(row: int) -> Floats:
            at = block.first + row
            one = Block(block.mode, at, at + 1, block.upper)
            return careful(self.equations(one), self.beta, one)

        solve_in_place(gram, rhs, self.beta, rows, pointers, again, every_row=self.every_row)
        return rows

    def pointers(self, block: Block) -> Positions:
        """Return where the entries of each row of a block begin and end."""
        if self._dense is not None:
            return np.zeros(block.last - block.first + 1, np.int64)
        return self.listed.entries.orders[block.mode].pointers[block.first : block.last + 1]

    def _product(self, mode: int) -> Floats:
        """Return the complete box times the other modes' rows, from the first local row on.

        Kept until one of the other modes moves: U and L of a mode, and the value of the
        objective after the last block, share it.
        """
        known = self._products.get(mode)
        if known is None or not _current(self._moves, known[0], mode):
            assert isinstance(self._dense, DenseBox)
            stamp = tuple(n for m, n in enumerate(self._moves) if m != mode)
            box = self._dense
            product = box.mttkrp(box.last_rows(self.work.rows()), mode)
            before = self.work.n_rows[mode] - len(product)  # old rows that the box does not reach
            if before:
                product = np.concatenate([np.zeros((before, product.shape[1])), product])
            known = (stamp, product)
            self._products[mode] = known
        return known[1]

    def _dense_sums(self, block: Block) -> tuple[Floats, Floats]:
        n_rows, rank, work = block.last - block.first, self.work.rank, self.work
        gram, rhs = np.zeros((1, rank, rank)), np.zeros((n_rows, rank))
        first = work.bounds[block.mode] + block.first
        shared = (*self._boxes, self._own, self._cross)
        add_boxes(block.mode, block.upper, first, *shared, gram[0], rhs)
        rhs += self._product(block.mode)[block.first : block.last]
        return gram, rhs

    def _sums(self, block: Block) -> tuple[Floats, Floats]:
        if self._dense is not None:
            return self._dense_sums(block)
        mode, work, listed = block.mode, self.work, self.listed
        order, values = listed.entries.orders[mode], listed.values[mode]
        n_rows, rank = block.last - block.first, work.rank
        curved = listed.curvatures is not None
        gram, rhs = np.empty((n_rows if curved else 1, rank, rank)), np.empty((n_rows, rank))
        sum_equations(
            mode,
            block.upper,
            work.bounds[mode] + block.first,
            order.pointers[block.first : block.last + 1],
            order.others,
            work.other_offsets[mode],
            work.stack,
            curved,
            values if listed.curvatures is None else listed.curvatures[mode],
            values,
            *self._boxes,
            self._own,
            self._cross,
            gram,
            rhs,
        )
        return gram, rhs

    def _data_value(self) -> float:
        work, listed = self.work, self.listed
        if self._dense is not None:
            mode = next(
                (m for m, (stamp, _) in self._products.items() if _current(self._moves, stamp, m)),
                0,
            )
            return -2.0 * dot(self._product(mode), work.stack[work.part(mode)])
        first, values = listed.entries.orders[0], listed.values[0]
        return float(
            entries_value(
                0,
                first.pointers,
                first.others,
                work.other_offsets[0],
                work.stack,
                listed.curvatures is not None,
                values if listed.curvatures is None else listed.curvatures[0],
                values,
            )
        )

    def value(self) -> float:
        """Return the objective at the current rows."""
        self.settle()
        work = self.work
        return (
            self.listed.constant
            + self._data_value()
            + boxes_value(
                *self._boxes,
                work.firsts,
                work.upper_counts,
                work.rest,
                self._own,
                self._cross,
                self.beta,
            )
        )


def _current(moves: Sequence[int], stamp: tuple[int, ...], mode: int) -> bool:
    return stamp == tuple(n for m, n in enumerate(moves) if m != mode)


def solve_in_place(
    gram: Floats,
    rhs: Floats,
    beta: float,
    rows: Floats,
    pointers: Positions,
    again: Callable[[int], Floats],
    *,
    every_row: bool,
) -> None:
    """Replace rows by the solutions of ``a (G + beta I) = q``; `gram` is overwritten.

    Rows without a safe solution by Cholesky are handed to `again`; the others are not
    slowed down by them.
    """
    failed = solve_rows(gram, rhs, beta, pointers, every_row, rows, 0)
    while failed >= 0:
        last = failed + 1
        if len(gram) == 1:  # one matrix for all rows: the others have no better one
            last = len(rows)
        for row in range(failed, last):
            if every_row or pointers[row] < pointers[row + 1]:
                rows[row] = again(row)
        failed = -1
        if last < len(rows):
            failed = solve_rows(gram, rhs, beta, pointers, every_row, rows, last)


def model_values(work: Workspace, entries: AnyEntries, mode: int) -> Floats:
    """Return the model's value at each entry, in the order of `mode`."""
    order = entries.orders[mode]
    out = np.empty(len(order.values))
    predict_entries(
        work.bounds[mode], order.pointers, order.others, work.other_offsets[mode], work.stack, out
    )
    return out
