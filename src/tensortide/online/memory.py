"""What fibres remember: recalled beside the values of a model, and learned by its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tensortide.arrays import Flags, Floats, Places, Positions
from tensortide.core.steps.beliefs import Beliefs
from tensortide.core.steps.outlook import recalled_too, weighted
from tensortide.core.tensor.dense_box import told_cells
from tensortide.core.tensor.entries import Entries
from tensortide.core.tensor.factors import products_at, values_at
from tensortide.core.tensor.fibres import NEWEST, FibreChange, Fibres
from tensortide.data.timeline import Timeline

if TYPE_CHECKING:
    from tensortide.core.tensor.dense_box import AnyEntries
    from tensortide.data.arrival import Arrival
    from tensortide.data.modes import Modes
    from tensortide.data.store import Absorbed
    from tensortide.online.ahead import Next
    from tensortide.online.model import Model


def placed(
    line: Timeline, modes: Modes, cells: Positions | Places, arrival: Arrival
) -> tuple[Positions, Flags]:
    """Return where the labels of cells stand on a line, and which of them are old there."""
    used, which = np.unique(cells[:, line.mode], return_inverse=True)
    labels, which = [modes.label(line.mode, int(p), arrival) for p in used], which.ravel()
    return line.place(labels)[which], line.is_old(line.number(labels))[which]


def with_memory(model: Model, positions: Positions | Places, values: Floats) -> Floats:
    """Return values of known cells with what their fibres and the outlook of their labels say."""
    beliefs, line, fibres = Beliefs.of_memory(model.memory), model.ahead.line, model.ahead.fibres
    if fibres is None or line is None or not len(positions):
        return values
    shares, recalling = beliefs.weights_known()
    mode = line.mode
    used, which = np.unique(positions[:, mode], return_inverse=True)
    which = which.ravel()
    labels = [model.modes.labels[mode].label(int(p)) for p in used]
    numbers = line.number(labels)
    recalled, plain = fibres.recall(
        positions, line.place(labels)[which], line.is_old(numbers)[which]
    )
    found = shares[0] * values
    if shares[1] > 0.0:
        rows = model.rows()
        before = line.before(numbers)
        mean, weights = model.factors.means()[mode], beliefs.weights_of_prior()
        outlook = weights @ before.candidates(rows[mode], mean)
        alone = before.recent[:, 0] < 0
        outlook[alone] = rows[mode][used[alone]]
        found += shares[1] * (outlook[which] * products_at(rows, positions, mode)).sum(axis=1)
    positive = model.method.loss.positive
    found = recalled_too(found, weighted(recalled, recalling), positive=positive)
    return beliefs.blended(found, plain, known=True)


def learn_all(
    memory: Fibres,
    line: Timeline,
    modes: Modes,
    rows: Sequence[Floats],
    cells: Places,
    values: Floats,
) -> Floats:
    """Let a memory learn cells in the order of their labels; return what it recalled of each."""
    numbers = line.place(list(modes.labels[line.mode].array()))[cells[:, line.mode]]
    order = np.argsort(numbers, kind="stable")
    residuals = values - values_at(rows, cells)
    learned, recalled = memory.learn(cells, order, residuals, values, numbers)
    memory.put(learned)
    return recalled


def without_labels(
    model: Model,
    mode: int,
    keep: Flags,
    modes: Modes,
    rows: Sequence[Floats],
    entries: AnyEntries | None,
) -> Fibres | None:
    """Return what the fibres of a model remember once it has fewer labels of a mode.

    Labels along fibres take their cells along: with history fibres are learned anew.  Without it
    the newest cell of a fibre goes with its label, and the share of older ones stays in the sums.
    """
    fibres, line = model.ahead.fibres, model.ahead.line
    if fibres is None or line is None:
        return None
    if mode != line.mode:
        return fibres.kept(mode, keep)
    if entries is not None:
        found = Fibres.none(mode, modes.order)
        learn_all(found, line, modes, rows, *told_cells(entries))
        return found
    found = fibres.without(line.place(list(model.modes.labels[mode].array()))[~keep])
    return found.closed_up(keep) if modes.labels[mode].kind == "position" else found


def learn_fibres(
    told: Next,
    arrival: Arrival,
    modes: Modes,
    learned: Floats,
    rows: Sequence[Floats],
    retract: Positions | None,
) -> FibreChange | None:
    """Return what fibres learn from what a step leaves of its cells, whose values are `learned`.

    With history a fibre with a cell that is corrected or retracted is learned anew, from all of its
    cells and the `rows` as they are now: its sums would not forget what was wrong.  Other cells of
    that label are told again where they are the newest ones: its row has followed what was wrong.
    """
    fibres, line, change = told.fibres, told.line, told.change
    if fibres is None or line is None:
        return None
    if change.first_news:  # a new beginning has learned the batch
        return fibres.unchanged()
    batch = _Told(told.cells, change.values, change.values - learned, told.numbers, change.live())
    absorbed = change.absorbed
    wrong = told.cells[:0] if absorbed is None else told.cells[_wrong(absorbed)]
    wrong = wrong if retract is None else np.concatenate([wrong, retract])
    if absorbed is None or not len(wrong):
        return batch.learned_by(fibres)
    entries = absorbed.store.entries
    assert isinstance(entries, Entries)
    anew, mode = Fibres.of(line.mode, wrong), 1 if line.mode == 0 else 0
    told_of = partial(_Told.of, line, modes, arrival, rows)
    cells, values = _cells(entries, mode, np.unique(anew.keys[:, 0]))
    mine = anew.find(cells) >= 0
    whole = told_of(cells[mine], values[mine])
    places, _ = placed(line, modes, wrong, arrival)
    newest = np.isin(places, fibres.numbers[:, NEWEST])
    beside = told_of(*_cells(entries, line.mode, np.unique(wrong[newest, line.mode])))
    beside.live &= (anew.find(beside.cells) < 0) & (fibres.newest(beside.cells) == beside.numbers)
    batch.live &= anew.find(batch.cells) < 0
    return whole.and_(beside).and_(batch).learned_by(fibres, wrong)


def _wrong(absorbed: Absorbed) -> Flags:
    """Return which cells of a batch may correct what fibres have learned: weights do that, too."""
    entries = absorbed.store.entries
    weighted = isinstance(entries, Entries) and len(entries.orders[0].weights) > 0
    return absorbed.revised | absorbed.unchanged if weighted else absorbed.revised


@dataclass(slots=True)
class _Told:
    """Cells that fibres are told: values, residuals, where their labels stand, which of them."""

    cells: Positions
    values: Floats
    residuals: Floats
    numbers: Positions
    live: Flags

    @classmethod
    def of(
        cls,
        line: Timeline,
        modes: Modes,
        arrival: Arrival,
        rows: Sequence[Floats],
        cells: Places,
        values: Floats,
    ) -> _Told:
        """Return cells of the history with what the rows as they are leave of them."""
        numbers, _ = placed(line, modes, cells, arrival)
        residuals = values - values_at(rows, cells)
        return cls(cells.astype(np.int64), values, residuals, numbers, np.ones(len(cells), bool))

    def and_(self, other: _Told) -> _Told:
        """Return both, those of others last."""
        return _Told(
            *(
                np.concatenate([getattr(self, part.name), getattr(other, part.name)])
                for part in fields(self)
            )
        )

    def learned_by(self, fibres: Fibres, forget: Positions | None = None) -> FibreChange:
        """Return what fibres learn in the order of labels, those of some cells from nothing."""
        order = np.argsort(self.numbers, kind="stable")
        order = order[self.live[order]]
        told = self.cells, order, self.residuals, self.values, self.numbers
        return fibres.learn(*told, forget)[0]


def _cells(entries: Entries, mode: int, rows: Positions) -> tuple[Places, Floats]:
    """Return the cells of some rows of a mode that have weight, and their values."""
    order = entries.orders[mode]
    first, count = order.pointers[rows], np.diff(order.pointers)[rows]
    at = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
    others, cells = order.others[at], np.empty((len(at), len(entries.shape)), np.int32)
    cells[:, :mode], cells[:, mode + 1 :] = others[:, :mode], others[:, mode:]
    cells[:, mode] = np.repeat(rows, count)
    live = order.weights[at] > 0.0 if len(order.weights) else slice(None)
    return cells[live], order.values[at[live]]
