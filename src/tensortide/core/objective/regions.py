"""Cells that are not listed and mean zero: what they add, without listing them where possible.

The *region* is the whole box, or all of it outside the old box.  Squared: two box terms.
Poisson: ``f(0, y) = y``, so the region is a sum of products of column sums.  Other losses
have to look at every cell, piece by piece: time like the size of the box, memory of one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Protocol

import numpy as np

from tensortide.arrays import Floats
from tensortide.core.kernels.dense import thin_times
from tensortide.core.losses.standard import Loss, Poisson, Squared, missed
from tensortide.core.objective.squares import BoxTerm
from tensortide.core.tensor.dense_box import khatri_rao
from tensortide.core.tensor.workspace import Workspace
from tensortide.errors import InputError

PIECE = 1 << 20  # cells looked at together
MOST_CELLS = 2e8  # beyond this a sweep over the zeros takes minutes


class Zeros(Protocol):
    """The sum of ``f(0, y)`` over the region."""

    def add(self, mode: int, gram: Floats, rhs: Floats) -> None:
        """Add the equations of all rows of a mode, at the current rows."""

    def row_values(self, mode: int, rows: Floats) -> Floats:
        """Return what each row of a mode would contribute with other rows in its place."""

    def total(self) -> float:
        """Return the sum at the current rows, of rows outside the workspace too."""

    def missed(self) -> float:
        """Return how much is missed in all, which is the same but for some losses of one's own."""


def zeros_for(
    loss: Loss, work: Workspace, rest_sums: Floats, *, outside_old: bool
) -> tuple[Zeros | None, list[BoxTerm]]:
    """Return the term of a loss, or the boxes that stand for it."""
    if isinstance(loss, Squared):
        boxes = [BoxTerm(1.0, None, upper_only=False, every_row=True)]
        return None, [*boxes, BoxTerm(-1.0, None, upper_only=True)] if outside_old else boxes
    if isinstance(loss, Poisson):
        return ZeroSums(work, rest_sums, outside_old=outside_old), []
    return ZeroCells(loss, work, outside_old=outside_old), []


class ZeroSums:
    """Poisson: ``sum y`` over the region, linear in the rows of each mode."""

    def __init__(self, work: Workspace, rest_sums: Floats, *, outside_old: bool) -> None:
        self._work, self._outside_old = work, outside_old
        self._rest = np.maximum(rest_sums, 0.0)  # just below by rounding, a slope would point up

    def _products(self, skip: int | None) -> tuple[Floats, Floats]:
        """Return the products of the column sums of all rows, and of all old rows."""
        work = self._work
        every, old = np.ones(work.rank), np.ones(work.rank)
        for mode, rows in enumerate(work.rows()):
            if mode != skip:
                before = self._rest[mode] + rows[: work.n_upper[mode]].sum(axis=0)
                every *= before + rows[work.n_upper[mode] :].sum(axis=0)
                old *= before
        return every, old

    def slopes(self, mode: int) -> Floats:
        """Return the slope of ``sum y`` in the rows of a mode."""
        work = self._work
        n_upper = work.n_upper[mode]
        every, old = self._products(mode)
        slopes = np.tile(every, (work.n_rows[mode], 1))
        if self._outside_old:
            slopes[:n_upper] -= old
        return slopes

    def add(self, mode: int, gram: Floats, rhs: Floats) -> None:  # noqa: ARG002 - no curvature
        """Add the equations of all rows of a mode: ``c a'`` is ``-2 q a'`` with q = -c / 2."""
        rhs -= 0.5 * self.slopes(mode)

    def row_values(self, mode: int, rows: Floats) -> Floats:
        """Return what each row of a mode would contribute with other rows in its place."""
        return np.asarray((self.slopes(mode) * rows).sum(axis=1))

    def total(self) -> float:
        """Return the sum at the current rows, of rows outside the workspace too."""
        every, old = self._products(None)
        return float((every - old if self._outside_old else every).sum())

    missed = total


class ZeroCells:
    """Any loss: every cell of the region, piece by piece."""

    def __init__(self, loss: Loss, work: Workspace, *, outside_old: bool) -> None:
        cells = prod(map(float, work.n_rows))
        if outside_old:
            cells -= prod(map(float, work.n_upper))
        if cells > MOST_CELLS:
            raise InputError(
                f"loss {loss.name!r} with absent='zero' has to look at every zero, {cells:.1e} "
                "cells here; use loss='poisson' or 'squared', whose zeros cost nothing, or "
                "absent='missing' with a sample of zeros listed."
            )
        self._loss, self._work, self._outside_old = loss, work, outside_old

    def _pieces(self, mode: int) -> Iterator[tuple[slice, Floats]]:
        """Yield rows of a mode and Khatri-Rao rows of the others: together the region."""
        work = self._work
        others = [m for m in range(work.order) if m != mode]
        first = max(others, key=lambda m: work.n_rows[m])  # cut the longest, hold the others
        later = [m for m in others if m != first]
        tail = khatri_rao([work.stack[work.part(m)] for m in later]) if later else None
        tail_old = np.ones(1, bool)
        for m in later:
            old = np.arange(work.n_rows[m]) < work.n_upper[m]
            tail_old = (tail_old[:, None] & old).ravel()
        if not self._outside_old:
            yield from self._cut(mode, first, tail, slice(None), slice(None))
            return
        n_old = work.n_upper[first]
        parts = [None, None] if tail is None else [tail[tail_old], tail[~tail_old]]
        if work.n_rows[mode] > work.n_upper[mode]:  # old in all others: new rows alone
            new_rows = slice(work.n_upper[mode], None)
            yield from self._cut(mode, first, parts[0], slice(0, n_old), new_rows)
        yield from self._cut(mode, first, parts[0], slice(n_old, None), slice(None))
        if tail is not None:
            yield from self._cut(mode, first, parts[1], slice(None), slice(None))

    def _cut(
        self, mode: int, first: int, tail: Floats | None, heads: slice, rows: slice
    ) -> Iterator[tuple[slice, Floats]]:
        """Yield pieces of the rows `heads` of one mode with all of `tail`."""
        head = self._work.stack[self._work.part(first)][heads]
        size = 1 if tail is None else len(tail)
        n_rows = len(range(*rows.indices(self._work.n_rows[mode])))
        step = max(1, PIECE // max(size * n_rows, 1))
        for start in range(0, len(head) if size else 0, step):
            some = head[start : start + step]
            yield rows, some if tail is None else khatri_rao([some, tail])

    def add(self, mode: int, gram: Floats, rhs: Floats) -> None:
        """Add the equations of all rows of a mode, at the current rows."""
        every = self._work.stack[self._work.part(mode)]
        zero = np.zeros(1)
        for which, z in self._pieces(mode):
            y = _values(every[which], z)
            h, g = self._loss.weight(zero, y), self._loss.slope(zero, y)
            rhs[which] += 0.5 * thin_times(np.ascontiguousarray((h * y - g).T), z)
            squares = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)
            flat = 0.5 * thin_times(np.ascontiguousarray(h.T), squares)
            gram[which] += flat.reshape(gram[which].shape)

    def row_values(self, mode: int, rows: Floats) -> Floats:
        """Return what each row of a mode would contribute with other rows in its place."""
        return self._added_up(mode, rows, self._loss.value)

    def _added_up(self, mode: int, rows: Floats, each: Callable[..., Floats]) -> Floats:
        """Return the sum of something over the cells of each row of a mode."""
        total = np.zeros(len(rows))
        zero = np.zeros(1)
        for which, z in self._pieces(mode):
            total[which] += each(zero, _values(rows[which], z)).sum(axis=1)
        return total

    def total(self) -> float:
        """Return the sum at the current rows: all of them are in the workspace."""
        return float(self.row_values(0, self._work.stack[self._work.part(0)]).sum())

    def missed(self) -> float:
        """Return how much is missed in all."""
        rows = self._work.stack[self._work.part(0)]
        return float(self._added_up(0, rows, partial(missed, self._loss)).sum())


def _values(rows: Floats, z: Floats) -> Floats:
    """Return ``rows z'``: the model's values of all rows with all others."""
    return thin_times(np.ascontiguousarray(rows.T), np.ascontiguousarray(z.T))
