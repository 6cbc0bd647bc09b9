"""Several records for one cell of a batch become one entry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensortide.arrays import NO_WEIGHTS, Flags, Floats, Places, Positions, Shape
from tensortide.core.kernels.sorting import count_repeats, lexsort, number
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.core.tensor.entries import Entries
from tensortide.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Distinct cells in the order of mode 0, then mode 1, ...; positions may be local."""

    coords: Places
    values: Floats
    weights: Floats
    shape: Shape
    n_duplicates: int

    @classmethod
    def of_block(cls, block: DenseBox) -> Cells:
        """Return the cells of a box without listing them."""
        nothing = np.empty((0, len(block.shape)), np.int32)
        return cls(
            coords=nothing, values=block.values.ravel(), weights=NO_WEIGHTS, shape=block.shape,
            n_duplicates=0,
        )  # fmt: skip

    def fill(self, n_cells: int) -> bool:
        """Tell whether these are as many cells as there are, all with weight one."""
        return len(self.values) == n_cells and not len(self.weights)

    def entries(self) -> Entries:
        """Sort into the order of each mode."""
        return Entries.presorted(
            self.coords, np.arange(len(self.values)), self.values, self.shape, self.weights
        )


def distinct_cells(
    coords: Places, values: Floats, weights: Floats, shape: Shape, rule: str
) -> Cells:
    """Sort the records by cell and combine those of the same cell by the rule.

    >>> cells = distinct_cells(np.array([[1, 0], [0, 0], [1, 0]], np.int32),
    ...                        np.array([1.0, 5.0, 3.0]), np.empty(0), (2, 1), "sum")
    >>> cells.values.tolist(), cells.n_duplicates
    ([5.0, 4.0], 1)
    """
    if rule == "count":
        values = np.ones(len(coords))
    permutation = lexsort(coords, np.array(shape, np.int64))
    coords, values = coords[permutation], values[permutation]
    weights = weights[permutation] if len(weights) else NO_WEIGHTS
    n_repeats = count_repeats(coords)
    if not n_repeats:
        return Cells(coords=coords, values=values, weights=weights, shape=shape, n_duplicates=0)
    new = changes(coords)
    if rule == "error":
        first, second = _repeated_records(permutation, new)
        raise InputError(
            f"records {first} and {second} are for the same cell; pass duplicates='last', 'sum', "
            "'mean' or 'count' to say how to combine them."
        )
    starts = np.flatnonzero(new)
    if rule == "last":
        ends = np.append(starts[1:], len(values)) - 1
        values, weights = values[ends], (weights[ends] if len(weights) else weights)
    else:
        values, weights = _add_up(values, weights, starts, rule)
    return Cells(
        coords=coords[starts], values=values, weights=weights, shape=shape, n_duplicates=n_repeats
    )


def unique_cells(coords: Places, shape: Shape) -> Places:
    """Return each cell once, in the order of mode 0, then mode 1, ...

    >>> unique_cells(np.array([[1, 0], [0, 0], [1, 0]], np.int32), (2, 1)).tolist()
    [[0, 0], [1, 0]]
    """
    ordered = coords[lexsort(coords, np.array(shape, np.int64))]
    return np.ascontiguousarray(ordered[changes(ordered)])


def changes(rows: Places | Positions) -> Flags:
    """Return which rows of a sorted list are not the same as the one before.

    >>> changes(np.array([[0, 1], [0, 1], [0, 2]])).tolist()
    [True, False, True]
    """
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return new


def _repeated_records(permutation: Positions, new: Flags) -> tuple[int, int]:
    at = int(np.flatnonzero(~new)[0])
    return int(permutation[at - 1]), int(permutation[at])


def _add_up(values: Floats, weights: Floats, starts: Positions, rule: str) -> tuple[Floats, Floats]:
    """Sum or average groups of records; a cell's weight is the mean of its records'."""
    counts = np.diff(np.append(starts, len(values)))
    if rule != "mean":
        summed = np.add.reduceat(values, starts)
        return summed, (np.add.reduceat(weights, starts) / counts if len(weights) else weights)
    if not len(weights):
        return np.add.reduceat(values, starts) / counts, weights
    total = np.add.reduceat(weights, starts)
    plain = np.add.reduceat(values, starts) / counts
    weighted = np.add.reduceat(weights * values, starts) / np.where(total > 0.0, total, 1.0)
    return np.where(total > 0.0, weighted, plain), total / counts


def compact(
    coords: Positions, old_shape: Shape, new_shape: Shape, *, whole_but: int | None = None
) -> tuple[tuple[Positions, ...], Places]:
    """Give the rows that a batch touches numbers from zero on, mode by mode.

    Returns the positions of the touched rows (ascending, all new ones among them) and the
    cells in the new numbers.  Cost ``b log b`` for b records, whatever the size of a mode.
    With `whole_but` all rows of the other modes count as touched.

    >>> rows, local = compact(np.array([[7, 0], [3, 2]]), (8, 2), (8, 3))
    >>> [r.tolist() for r in rows], local.tolist()
    ([[3, 7], [0, 2]], [[1, 0], [0, 1]])
    """
    local = np.empty((coords.shape[1], len(coords)), np.int32)
    positions = []
    for mode, (old, new) in enumerate(zip(old_shape, new_shape, strict=True)):
        if whole_but is not None and mode != whole_but:
            local[mode] = coords[:, mode]
            positions.append(np.arange(new))
            continue
        column = coords[:, mode].copy()
        rows = np.empty(len(column), np.int64)
        rows = rows[: number(column, column.argsort(), rows, local[mode])]
        if len(rows) - int(rows.searchsorted(old)) < new - old:
            rows = np.union1d(rows, np.arange(old, new))
            local[mode] = rows.searchsorted(column)
        positions.append(rows)
    return tuple(positions), local.T.copy()
