"""Factors that grow by appending rows, and their exact running Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Floats, Places, Positions, Shape
from tensortide.core.kernels.boxes import add_exactly
from tensortide.core.tensor.workspace import Workspace

_CHUNK = 1 << 18  # cells whose rows are gathered at once


@dataclass(frozen=True, slots=True)
class RunningGrams:
    """``A' A`` and the column sums of every factor, followed row by row without loss.

    ``A' A`` is kept as an unevaluated sum of two matrices (two-sum).  After n replaced rows
    the error is about ``n u^2`` (u = 1e-16) of the largest matrix ever held, so nothing
    needs to be recomputed.
    """

    total: Floats
    error: Floats
    sums: Floats

    @classmethod
    def of(cls, rows: Sequence[Floats]) -> RunningGrams:
        """Start from all rows of the factors."""
        order, rank = len(rows), rows[0].shape[1]
        work = Workspace([0] * order, [len(r) for r in rows], rank)
        for part, factor in zip(work.rows(), rows, strict=True):
            part[:] = factor
        empty = cls(
            np.zeros((order, rank, rank)), np.zeros((order, rank, rank)), np.zeros((order, rank))
        )
        return empty.plus(work)

    def plus(self, work: Workspace) -> RunningGrams:
        """Return the matrices with the rows of a workspace."""
        return self._changed(work.stack, work.firsts[:-1], work.firsts[1:], 1.0)

    def minus_upper(self, work: Workspace) -> RunningGrams:
        """Return the matrices without the old rows of a workspace."""
        return self._changed(
            work.stack, work.firsts[:-1], work.firsts[:-1] + work.upper_counts, -1.0
        )

    def matrices(self) -> Floats:
        """Return ``A' A`` of each factor."""
        return self.total + self.error

    def _changed(
        self, stack: Floats, firsts: Positions, lasts: Positions, sign: float
    ) -> RunningGrams:
        changed = RunningGrams(self.total.copy(), self.error.copy(), self.sums.copy())
        add_exactly(changed.total, changed.error, changed.sums, stack, firsts, lasts, sign)
        return changed


class Factors:
    """The rows of every mode, each in a buffer with room to grow.

    `load` and `put` are the only ways of a step to the rows; `rows_read` counts what is loaded.
    Rows with learned priors have their precisions beside them, packed; others have none, and
    `width` is zero.
    """

    def __init__(
        self,
        rows: Sequence[Floats],
        grams: RunningGrams | None = None,
        precisions: Sequence[Floats] | None = None,
    ) -> None:
        self.shape: Shape = tuple(len(r) for r in rows)
        self._buffers = [_with_room(r, len(r) + len(r) // 4 + 16) for r in rows]
        told = [np.empty((len(r), 0)) for r in rows] if precisions is None else precisions
        self._precisions = [_with_room(r, len(r) + len(r) // 4 + 16) for r in told]
        self.grams = RunningGrams.of(rows) if grams is None else grams
        self.rows_read = 0

    @property
    def width(self) -> int:
        """How many numbers the precision of a row takes."""
        return int(self._precisions[0].shape[1])

    def precisions(self) -> list[Floats]:
        """Return views of the precisions of all rows, for readers; without any, nothing a row."""
        if not self.width:
            return [np.empty((size, 0)) for size in self.shape]
        return [held[:size] for held, size in zip(self._precisions, self.shape, strict=True)]

    def load_precisions(self, positions: Sequence[Positions | None], work: Workspace) -> Floats:
        """Copy the precisions of the rows of a workspace; those of new rows stay zero."""
        told = np.zeros((len(work.stack), self.width))
        for mode, (where, count) in enumerate(zip(positions, work.n_upper, strict=True)):
            held, upper = self._precisions[mode], work.upper_part(mode)
            if where is None:
                told[upper] = held[:count]
            else:
                held.take(where[:count], axis=0, out=told[upper], mode="clip")
        return told

    def peek(self, mode: int, positions: Positions) -> Floats:
        """Return some rows of a mode, which count as read."""
        self.rows_read += len(positions)
        return self._buffers[mode][positions]

    @property
    def rank(self) -> int:
        """Number of components."""
        return int(self._buffers[0].shape[1])

    def rows(self) -> list[Floats]:
        """Return views of all rows of each mode, for readers."""
        return [buffer[:size] for buffer, size in zip(self._buffers, self.shape, strict=True)]

    def means(self) -> Floats:
        """Return the mean row of each mode, without reading the rows."""
        return np.asarray(self.grams.sums / np.array(self.shape)[:, None])

    def beside(self, mode: int) -> Floats:
        """Return the other modes' mean second moments, multiplied element by element.

        With it ``a' G a`` is the mean square of the values of a row of the mode.
        """
        found = np.ones((self.rank, self.rank))
        for other, gram in enumerate(self.grams.matrices()):
            if other != mode:
                found *= gram / self.shape[other]
        return found

    def load(
        self, positions: Sequence[Positions | None], n_upper: Shape, n_lower: Shape
    ) -> Workspace:
        """Copy the rows at `positions` (None: all) into a workspace; new rows stay zero there."""
        work = Workspace(n_upper, n_lower, self.rank)
        for mode, (where, count) in enumerate(zip(positions, n_upper, strict=True)):
            upper = work.upper_part(mode)
            buffer = self._buffers[mode]
            if where is None:
                work.stack[upper] = buffer[:count]
            else:
                buffer.take(where[:count], axis=0, out=work.stack[upper], mode="clip")
            self.rows_read += count
        return work

    def put(
        self,
        positions: Sequence[Positions | None],
        rows: Sequence[Floats],
        shape: Shape,
        grams: RunningGrams,
        precisions: Sequence[Floats] | None = None,
    ) -> None:
        """Write rows (positions past the end append), and adopt shape and Gram matrices."""
        self._write(self._buffers, positions, rows, shape)
        if precisions is not None:
            self._write(self._precisions, positions, precisions, shape)
        self.shape, self.grams = shape, grams

    def _write(
        self,
        buffers: list[Floats],
        positions: Sequence[Positions | None],
        rows: Sequence[Floats],
        shape: Shape,
    ) -> None:
        for mode, (where, new) in enumerate(zip(positions, rows, strict=True)):
            size = shape[mode]
            if size > len(buffers[mode]):
                known = buffers[mode][: self.shape[mode]]
                buffers[mode] = _with_room(known, max(size, 2 * len(buffers[mode])))
            if where is None:
                buffers[mode][: len(new)] = new
            else:
                buffers[mode][where] = new

    def copy(self) -> Factors:
        """Return independent factors."""
        return Factors(self.rows(), self.grams, self.precisions())


def _with_room(rows: Floats, capacity: int) -> Floats:
    buffer = np.empty((capacity, rows.shape[1]))
    buffer[: len(rows)] = rows
    return buffer


def values_at(rows: Sequence[Floats], positions: Positions | Places) -> Floats:
    """Return the values of the CP model at (n, N) positions, in the order given."""
    out = np.empty(len(positions))
    for first in range(0, len(positions), _CHUNK):
        part = positions[first : first + _CHUNK]
        product = rows[0][part[:, 0]]
        for mode in range(1, len(rows)):
            product = product * rows[mode][part[:, mode]]
        product.sum(axis=1, out=out[first : first + _CHUNK])
    return out


def products_at(rows: Sequence[Floats], positions: Positions | Places, skip: int) -> Floats:
    """Return for each cell the product, by component, of its rows of all modes but one."""
    found = np.ones((len(positions), rows[skip].shape[1]))
    for mode, factor in enumerate(rows):
        if mode != skip:
            found *= factor[positions[:, mode]]
    return found
