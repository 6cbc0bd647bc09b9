"""The history of a method that keeps it: every entry once, in the row order of each mode.

Memory: ``N (4 (N - 1) + 8)`` bytes per entry (48 for three modes), 8 N more with weights
or forgetting, and the same again while a step merges: the old store stays whole until the
step has succeeded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Flags, Floats, Places, Positions
from tensortide.core.kernels.sorting import locate, merge
from tensortide.core.tensor.dense_box import AnyEntries, DenseBox
from tensortide.core.tensor.entries import Entries, ModeOrder
from tensortide.data.cells import Cells, unique_cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorbed:
    """What a batch did, entry by entry in the order of the cells.

    An entry *grew* the tensor if one of its labels is new, *revised* it if the cell was
    known, and *filled* it otherwise; `unchanged` are known cells with the same value again.
    `values` are those of the cells afterwards, where records were added to what was known.
    """

    store: Store
    grown: Flags
    revised: Flags
    unchanged: Flags
    values: Floats | None = None

    @property
    def filled(self) -> Flags:
        """Return which entries filled a hole of the old box."""
        return ~(self.grown | self.revised | self.unchanged)


@dataclass(frozen=True, slots=True)
class Store:
    """All entries seen.  Never changed in place: `absorb` and `without` return new stores."""

    entries: AnyEntries

    def __len__(self) -> int:
        """Return the number of entries."""
        return self.entries.n_entries

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.entries.nbytes

    def append(self, block: DenseBox, mode: int) -> Absorbed:
        """Take in complete slices along a mode: nothing is revised, nothing is left out."""
        assert isinstance(self.entries, DenseBox)
        known = np.zeros(block.n_entries, bool)
        return Absorbed(
            store=Store(self.entries.with_slices(block, mode)),
            grown=~known,
            revised=known,
            unchanged=known,
        )

    def absorb(self, cells: Cells, *, add: bool = False, decay: float = 1.0) -> Absorbed:
        """Merge distinct cells in: the last value wins, or is added to the known one.

        `decay` multiplies the weights of everything known before; what has faded below 1e-16
        of the heaviest entry is dropped.  Cost: one pass over the entries per mode, no sort of
        history.
        """
        if (
            decay < 1.0
            and isinstance(self.entries, Entries)
            and len(self.entries.orders[0].weights)
        ):
            faded = self._without_faded()
            if len(faded) < len(self):
                return faded.absorb(cells, add=add, decay=decay)
        if isinstance(self.entries, DenseBox):
            return Store(self.entries.listed).absorb(cells, add=add, decay=decay)
        news = cells.entries()
        weighted = decay < 1.0 or len(cells.weights) > 0 or len(self.entries.orders[0].weights) > 0
        orders, found, old_values = [], np.empty(0, bool), np.empty(0)
        for mode, (order, new) in enumerate(zip(self.entries.orders, news.orders, strict=True)):
            merged, known, before = _merge(order, new, weighted=weighted, add=add, decay=decay)
            orders.append(merged)
            if mode == 0:
                found, old_values = known, before
        grown = np.any(cells.coords >= np.array(self.entries.shape), axis=1)
        same = found.copy()
        same[found] = cells.values[found] == (0.0 if add else old_values)
        values = None
        if add:
            values = cells.values.copy()
            values[found] += old_values
        store = Store(Entries(tuple(orders), cells.shape))
        return Absorbed(
            store=store, grown=grown, revised=found & ~same, unchanged=same, values=values
        )

    def unknown(self, coords: Places) -> Places:
        """Return those of the cells that have no entry."""
        cells = self._distinct(coords)
        _, found = _locate(self.entries.orders[0], cells.orders[0])
        return cells.coords()[~found]

    def without(self, coords: Places) -> Store:
        """Forget cells, which must be known."""
        orders = []
        for order, gone in zip(self.entries.orders, self._distinct(coords).orders, strict=True):
            where, _ = _locate(order, gone)
            keep = np.ones(len(order.values), bool)
            keep[where] = False
            orders.append(order.kept(keep))
        return Store(Entries(tuple(orders), self.entries.shape))

    def _distinct(self, coords: Places) -> Entries:
        cells = unique_cells(np.ascontiguousarray(coords, np.int32), self.entries.shape)
        return Entries.listed(cells, np.zeros(len(cells)), self.entries.shape)

    def _without_faded(self) -> Store:
        """Drop entries whose weight has fallen below rounding of the heaviest."""
        orders = [
            o.kept(o.weights > 1e-16 * o.weights.max(initial=0.0)) for o in self.entries.orders
        ]
        return Store(Entries(tuple(orders), self.entries.shape))

    def retire(self, mode: int, keep: Flags) -> Store:
        """Drop the rows of a mode that are not kept, with their entries, and close the gaps."""
        renumbered = np.cumsum(keep, dtype=np.int32) - np.int32(1)
        orders = []
        for n, order in enumerate(self.entries.orders):
            if n == mode:
                stays = np.repeat(keep, np.diff(order.pointers))
                kept = order.kept(stays)
                rows = np.append(True, keep)
                orders.append(
                    ModeOrder(kept.pointers[rows], kept.others, kept.values, kept.weights)
                )
            else:
                column = mode if mode < n else mode - 1
                kept = order.kept(keep[order.others[:, column]])
                others = kept.others.copy()
                others[:, column] = renumbered[others[:, column]]
                orders.append(ModeOrder(kept.pointers, others, kept.values, kept.weights))
        shape = tuple(int(keep.sum()) if n == mode else s for n, s in enumerate(self.entries.shape))
        return Store(Entries(tuple(orders), shape))


def _locate(order: ModeOrder, new: ModeOrder) -> tuple[Positions, Flags]:
    rows = new.occupied()
    where = np.empty(len(new.values), np.int64)
    found = np.empty(len(new.values), np.bool_)
    locate(order.pointers, order.others, rows, new.pointers[rows + 1], new.others, where, found)
    return where, found


def _merge(
    order: ModeOrder, new: ModeOrder, *, weighted: bool, add: bool, decay: float
) -> tuple[ModeOrder, Flags, Floats]:
    """Return the merged order, which new entries were known, and what those were before."""
    where, found = _locate(order, new)
    known = where[found]
    before = order.values[known]
    values = order.values.copy()
    values[known] = before + new.values[found] if add else new.values[found]
    weights, new_weights = order.weights, new.weights
    if weighted:
        weights = decay * weights if len(weights) else np.full(len(values), decay)
        new_weights = new_weights if len(new_weights) else np.ones(len(new.values))
        weights[known] = new_weights[found]
    fresh = ~found
    padding = np.full(len(new.pointers) - len(order.pointers), order.pointers[-1])
    inserted = np.concatenate([[0], np.cumsum(fresh)])
    pointers = np.concatenate([order.pointers, padding]) + inserted[new.pointers]
    if not fresh.any():
        return ModeOrder(pointers, order.others, values, weights), found, before
    size = len(values) + int(fresh.sum())
    out = ModeOrder(
        pointers,
        np.empty((size, order.others.shape[1]), np.int32),
        np.empty(size),
        np.empty(size if weighted else 0),
    )
    merge(
        order.others, values, weights, where[fresh], new.others[fresh], new.values[fresh],
        new_weights[fresh] if weighted else new_weights, out.others, out.values, out.weights,
    )  # fmt: skip
    return out, found, before
