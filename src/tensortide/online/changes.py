"""From records that arrive to the change that a step takes, and the history with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.kernels.sorting import count_outside
from tensortide.core.steps.change import Change
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.data.arrival import Arrival
from tensortide.data.cells import Cells, compact, distinct_cells
from tensortide.data.modes import Modes
from tensortide.data.sketch import DistinctCells
from tensortide.data.store import Absorbed, Store
from tensortide.errors import InputError
from tensortide.wording import written

if TYPE_CHECKING:
    from tensortide.core.tensor.dense_box import AnyEntries
    from tensortide.online.model import Model


@dataclass(frozen=True, slots=True)
class Rules:
    """What records mean: absent cells, duplicates in a batch, records for known cells."""

    absent_zero: bool = False
    duplicates: str = "last"
    add: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchChange(Change):
    """A change with the cells that it comes from, and the history with them where that is kept.

    `n_grown` of the cells have a new label.  `first_news` says that all values known before were
    zero and some of these are not.
    """

    cells: Cells
    absorbed: Absorbed | None
    n_grown: int
    first_news: bool = False

    @property
    def values(self) -> Floats:
        """The values that the batch's cells come to; sums, where records are added."""
        added = None if self.absorbed is None else self.absorbed.values
        return self.cells.values if added is None else added

    def live(self) -> Flags:
        """Return which cells are news: those without weight, or unchanged, say nothing."""
        weights = self.cells.weights
        live = weights > 0.0 if len(weights) else np.ones(len(self.cells.values), bool)
        return live if self.absorbed is None else live & ~self.absorbed.unchanged

    def new_cells(self) -> Flags:
        """Return which cells of the batch have a new label."""
        if isinstance(self.arrived, DenseBox):
            return np.ones(self.arrived.n_entries, bool)
        limits = [self.n_upper(mode) for mode in range(len(self.old_shape))]
        return np.asarray((self.arrived >= np.array(limits)).any(axis=1))

    def places(self, which: Positions) -> Positions:
        """Return where some cells of the batch stand in the whole tensor."""
        if isinstance(self.arrived, DenseBox):
            local = np.stack(np.unravel_index(which, self.arrived.shape), axis=1)
            return np.asarray(local + np.array(self.new_shape) - np.array(self.arrived.shape))
        local = self.arrived[which].astype(np.int64)
        for mode, positions in enumerate(self.positions):
            if positions is not None:
                local[:, mode] = positions[local[:, mode]]
        return np.asarray(local)

    def count(self, seen: DistinctCells, arrival: Arrival, *, repeats: bool) -> DistinctCells:
        """Return the count of distinct cells with these; without `repeats` none comes twice."""
        if self.complete and seen.covers(self.old_shape):
            return seen.filled(self.new_shape)
        coords = arrival.coords if repeats else None
        return seen.after(coords, self.n_grown, len(self.cells.values))


def first_change(rules: Rules, arrival: Arrival) -> BatchChange:
    """Return first data as a change of an empty tensor."""
    shape, block = arrival.new_shape, arrival.block
    cells = distinct(rules, arrival) if block is None else Cells.of_block(block)
    if block is None and cells.fill(math.prod(shape)):
        block = DenseBox(cells.values.reshape(shape))
    return BatchChange(
        old_shape=(0,) * len(shape), new_shape=shape,
        entries=cells.entries() if block is None else block, positions=(None,) * len(shape),
        arrived=cells.coords if block is None else block, n_seen=0, step=0,
        time=int(np.argmax(shape)), absent_zero=rules.absent_zero, complete=block is not None,
        cells=cells, absorbed=None, n_grown=len(cells.values),
    )  # fmt: skip


def distinct(rules: Rules, arrival: Arrival) -> Cells:
    """Return the distinct cells of an arrival, combined by the rule for duplicates."""
    return distinct_cells(
        arrival.coords.astype(np.int32),
        arrival.values,
        arrival.weights,
        arrival.new_shape,
        rules.duplicates,
    )


def next_change(model: Model, arrival: Arrival, retract: Positions | None) -> BatchChange:
    """Return the change that a batch makes to a model, which stays as it is."""
    old, new = arrival.old_shape, arrival.new_shape
    time, reads = model.time(arrival), model.method.rows_needed
    first_news = model.blank and _has_news(model, arrival)
    if first_news:
        reads = "all"
    grown = arrival.grown_mode()
    along = time if grown is None else grown  # the slices that come, whatever fades
    absorbed: Absorbed | None = None
    positions: tuple[Positions | None, ...] = (None,) * len(new)
    limits = np.array(old)
    if arrival.block is not None:
        cells = Cells.of_block(arrival.block)
        if reads != "all":
            positions = tuple(np.arange(old[m] if m == along else 0, n) for m, n in enumerate(new))
    elif reads == "all":
        cells = distinct(model.rules, arrival)
    else:
        whole_but = along if reads == "slices" else None
        touched, local = compact(arrival.coords, old, new, whole_but=whole_but)
        positions = touched
        sizes = tuple(len(rows) for rows in touched)
        rule = model.rules.duplicates
        cells = distinct_cells(local, arrival.values, arrival.weights, sizes, rule)
        limits = np.array([r.searchsorted(s) for r, s in zip(touched, old, strict=True)])
    n_grown = len(cells.values)
    if arrival.block is None:
        n_grown = count_outside(cells.coords, limits)
    complete = n_grown == len(cells.values) and cells.fill(math.prod(new) - math.prod(old))
    block = arrival.block
    if block is None and complete and arrival.grown_modes() == [along]:
        box = [n - o if m == along else n for m, (o, n) in enumerate(zip(old, new, strict=True))]
        block = DenseBox(cells.values.reshape(box))
    entries: AnyEntries
    if model.store is not None:
        absorbed = _absorb(model, model.store, arrival, cells, block, retract, along)
        entries, n_grown = absorbed.store.entries, int(absorbed.grown.sum())
    else:
        entries = cells.entries() if block is None else block
    return BatchChange(
        old_shape=old, new_shape=new, entries=entries, positions=positions,
        arrived=cells.coords if block is None else block, n_seen=model.n_entries,
        step=model.n_steps, time=time, absent_zero=model.rules.absent_zero, complete=complete,
        cells=cells, absorbed=absorbed, n_grown=n_grown, first_news=first_news,
    )  # fmt: skip


def _has_news(model: Model, arrival: Arrival) -> bool:
    """Tell whether a cell with weight is not zero, whatever its records come to."""
    if arrival.block is not None:
        return bool(arrival.values.any())
    cells = distinct(model.rules, arrival)
    told = cells.weights > 0.0 if len(cells.weights) else slice(None)
    return bool(cells.values[told].any())


def _absorb(
    model: Model,
    store: Store,
    arrival: Arrival,
    cells: Cells,
    block: DenseBox | None,
    retract: Positions | None,
    time: int,
) -> Absorbed:
    """Return the history with the batch, less what is retracted."""
    decay = model.method.entry_decay
    whole = isinstance(store.entries, DenseBox) and retract is None and decay == 1.0
    if block is not None and whole:
        return store.append(block, time)
    if retract is not None:
        store = _without(model.modes, store, retract)
    if arrival.block is not None:
        cells = distinct(model.rules, arrival)
    return store.absorb(cells, add=model.rules.add, decay=decay)


def _without(modes: Modes, store: Store, retract: Positions) -> Store:
    cells = retract.astype(np.int32)
    unknown = store.unknown(cells)
    if len(unknown):
        labels = (
            f"{name} {written(known.label(int(position)))}"
            for name, known, position in zip(modes.names, modes.labels, unknown[0], strict=True)
        )
        raise InputError(
            f"the cell {', '.join(labels)} cannot be retracted: no value of it is known."
        )
    return store.without(cells)
