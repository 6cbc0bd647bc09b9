"""Observed entries, listed once per mode in the order of that mode's rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tensortide.arrays import NO_WEIGHTS, Flags, Floats, Places, Positions, Shape
from tensortide.core.kernels.sorting import group, lexsort


@dataclass(frozen=True, slots=True)
class ModeOrder:
    """The entries in row order of one mode.

    Row ``i`` has the entries ``pointers[i]:pointers[i + 1]``; ``others`` holds their
    positions in the other modes, in ascending mode number.  Within a row the entries are
    sorted by ``others``.  Cost: ``4 (N - 1) + 8`` bytes per entry, 8 more with weights.
    """

    pointers: Positions
    others: Places
    values: Floats
    weights: Floats

    @property
    def n_rows(self) -> int:
        """Rows of this mode, with or without entries."""
        return len(self.pointers) - 1

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(a.nbytes for a in (self.pointers, self.others, self.values, self.weights))

    def occupied(self) -> Positions:
        """Return the rows that have an entry."""
        return np.flatnonzero(self.pointers[1:] > self.pointers[:-1])

    def kept(self, keep: Flags) -> ModeOrder:
        """Return the order of a part of the entries; rows stay."""
        if keep.all():
            return self
        before = np.concatenate([[0], np.cumsum(keep)])
        weights = self.weights[keep] if len(self.weights) else self.weights
        return ModeOrder(before[self.pointers], self.others[keep], self.values[keep], weights)


@dataclass(frozen=True, slots=True)
class Entries:
    """All entries of a tensor of `shape`, each cell at most once.

    >>> entries = Entries.listed(np.array([[1, 0], [0, 1]], np.int32), np.array([5.0, 6.0]), (2, 2))
    >>> entries.orders[0].values.tolist(), entries.orders[1].values.tolist()
    ([6.0, 5.0], [5.0, 6.0])
    """

    orders: tuple[ModeOrder, ...]
    shape: Shape

    @classmethod
    def listed(
        cls, coords: Places, values: Floats, shape: Shape, weights: Floats = NO_WEIGHTS
    ) -> Entries:
        """Sort distinct cells into the order of each mode: counting passes, ``O(nnz N + S)``."""
        return cls.presorted(
            coords, lexsort(coords, np.array(shape, np.int64)), values, shape, weights
        )

    @classmethod
    def presorted(
        cls, coords: Places, permutation: Positions, values: Floats, shape: Shape, weights: Floats
    ) -> Entries:
        """As `listed`, where the order of mode 0 is known already."""
        n_entries, order = len(permutation), len(shape)
        bounds = [0, *accumulate(size + 2 for size in shape)]
        pointers = np.zeros(bounds[-1], np.int64)
        others = np.empty((order, n_entries, order - 1), np.int32)
        by_mode = np.empty((order, n_entries))
        weight_by_mode = np.empty((order, n_entries if len(weights) else 0))
        group(
            coords, permutation, values, weights, np.array(bounds), pointers, others, by_mode,
            weight_by_mode,
        )  # fmt: skip
        return cls(
            tuple(
                ModeOrder(
                    pointers[bounds[m] : bounds[m + 1] - 1],
                    others[m],
                    by_mode[m],
                    weight_by_mode[m],
                )
                for m in range(order)
            ),
            shape,
        )

    @property
    def n_entries(self) -> int:
        """How many cells are listed."""
        return len(self.orders[0].values)

    def all_values(self) -> Floats:
        """Return the values of all cells, in the order of mode 0."""
        return self.orders[0].values

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(order.nbytes for order in self.orders)

    def coords(self) -> Places:
        """Return the cells as an (n, N) array in the order of mode 0."""
        first = self.orders[0]
        rows = np.repeat(np.arange(first.n_rows, dtype=np.int32), np.diff(first.pointers))
        return np.ascontiguousarray(np.column_stack([rows, first.others]))
