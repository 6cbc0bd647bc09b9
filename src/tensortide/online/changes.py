"""From records that arrive to the change that a step takes, and the history with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tensortide.arrays import Flags, Floats, Positions
from tensortide.core.kernels.sorting import count_outside
from tensortide.core.steps.change import Change
from tensortide.core.tensor.dense_box import Complete
from tensortide.data.cells import Cells, compact, distinct_cells
from tensortide.data.modes import Arrival, Modes
from tensortide.data.sketch import DistinctCells
from tensortide.data.store import Absorbed, Store
from tensortide.errors import InputError

if TYPE_CHECKING:
    from tensortide.core.tensor.dense_box import AnyEntries
    from tensortide.online.model import Model


@dataclass(frozen=True, slots=True)
class Rules:
    """What records mean: absent cells, duplicates in a batch, records for known cells."""

    absent_zero: bool = False
    duplicates: str = "last"
    add: bool = False


@dataclass(frozen=True, slots=True)
class Incoming:
    """What a step is about to learn; `absorbed` is the history with it, for methods that keep it.

    `n_grown` of the cells have a new label.
    """

    change: Change
    cells: Cells
    absorbed: Absorbed | None
    n_grown: int

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
        change = self.change
        if isinstance(change.arrived, Complete):
            return np.ones(change.arrived.n_entries, bool)
        limits = [
            old if rows is None else int(rows.searchsorted(old))
            for rows, old in zip(change.positions, change.old_shape, strict=True)
        ]
        return np.asarray((change.arrived >= np.array(limits)).any(axis=1))

    def places(self, which: Positions) -> Positions:
        """Return where some cells of the batch stand in the whole tensor."""
        change = self.change
        if isinstance(change.arrived, Complete):
            local = np.stack(np.unravel_index(which, change.arrived.shape), axis=1)
            return np.asarray(local + np.array(change.new_shape) - np.array(change.arrived.shape))
        local = change.arrived[which].astype(np.int64)
        for mode, positions in enumerate(change.positions):
            if positions is not None:
                local[:, mode] = positions[local[:, mode]]
        return np.asarray(local)

    def counted(self, seen: DistinctCells, arrival: Arrival, *, repeats: bool) -> DistinctCells:
        """Return the count of distinct cells with these; without `repeats` none comes twice."""
        change = self.change
        if change.complete and seen.covers(change.old_shape):
            return seen.filled(change.new_shape)
        coords = arrival.coords if repeats else None
        return seen.after(coords, self.n_grown, len(self.cells.values))


def first_cells(rules: Rules, arrival: Arrival) -> Incoming:
    """Return the cells of first data as a change of an empty tensor."""
    shape, block = arrival.new_shape, arrival.block
    cells = distinct(rules, arrival) if block is None else Cells.of_block(block)
    if block is None and cells.fill(math.prod(shape)):
        block = Complete(cells.values.reshape(shape))
    change = Change(
        (0,) * len(shape),
        shape,
        cells.entries() if block is None else block,
        (None,) * len(shape),
        cells.coords if block is None else block,
        0,
        0,
        int(np.argmax(shape)),
        rules.absent_zero,
        block is not None,
    )
    return Incoming(change, cells, None, len(cells.values))


def distinct(rules: Rules, arrival: Arrival) -> Cells:
    """Return the distinct cells of an arrival, combined by the rule for duplicates."""
    return distinct_cells(
        arrival.coords.astype(np.int32),
        arrival.values,
        arrival.weights,
        arrival.new_shape,
        rules.duplicates,
    )


def next_cells(model: Model, arrival: Arrival, retract: Positions | None) -> Incoming:
    """Return the change that a batch makes to a model, which stays as it is."""
    old, new = arrival.old_shape, arrival.new_shape
    time, reads = model.time(arrival), model.recipe.rows_needed
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
        block = Complete(cells.values.reshape(box))
    entries: AnyEntries
    if model.store is not None:
        absorbed = _absorbed(model, model.store, arrival, cells, block, retract, along)
        entries, n_grown = absorbed.store.entries, int(absorbed.grown.sum())
    else:
        entries = cells.entries() if block is None else block
    change = Change(
        old,
        new,
        entries,
        positions,
        cells.coords if block is None else block,
        model.n_entries,
        model.n_steps,
        time,
        model.rules.absent_zero,
        complete,
    )
    return Incoming(change, cells, absorbed, n_grown)


def _absorbed(
    model: Model,
    store: Store,
    arrival: Arrival,
    cells: Cells,
    block: Complete | None,
    retract: Positions | None,
    time: int,
) -> Absorbed:
    """Return the history with the batch, less what is retracted."""
    decay = model.recipe.forgetting
    whole = isinstance(store.entries, Complete) and retract is None and decay == 1.0
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
            f"{name} {known.label(int(position))!r}"
            for name, known, position in zip(modes.names, modes.labels, unknown[0], strict=True)
        )
        raise InputError(
            f"the cell {', '.join(labels)} cannot be retracted: no value of it is known."
        )
    return store.without(cells)
