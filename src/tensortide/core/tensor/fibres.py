"""A memory of fibres: what a low-rank model leaves over, for all labels but those of one mode.

Residuals of a fibre persist where the rank is too small to hold it.  Eight numbers are kept of
each: the residual of its newest label, a faded sum of those before with its weight, the sum of all
others, the count of all, the newest value, the sum of all others, and where the newest label stands
on the line.  The newest cell stands alone so that it can be corrected, whatever its size.  They
give back the last value, so a model without history keeps no fibres unless it is asked to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Flags, Floats, Places, Positions
from tensortide.core.kernels.fibres import find_fibres, insert_fibres, recall_and_learn

NUMBERS = 8
NEWEST = 7  # where the label of the last cell stands
MEMORIES = 4  # nothing, the last residual, a faded mean, the mean of all


@dataclass(frozen=True, slots=True, kw_only=True)
class FibreChange:
    """Fibres that a step touches: where they stand (new ones at the end), before and after."""

    places: Positions
    keys: Places
    before: Floats
    after: Floats
    size: int


class Fibres:
    """The fibres of a model by their positions in all modes but one."""

    def __init__(self, mode: int, keys: Places, numbers: Floats) -> None:
        self.mode, self.size = mode, len(keys)
        room = self.size + self.size // 2 + 16
        self._keys = np.zeros((room, keys.shape[1]), np.int32)
        self._numbers = np.zeros((room, NUMBERS))
        self._keys[: self.size], self._numbers[: self.size] = keys, numbers
        self._index()

    @classmethod
    def none(cls, mode: int, order: int) -> Fibres:
        """Return a memory that knows no fibre yet."""
        return cls(mode, np.empty((0, order - 1), np.int32), np.empty((0, NUMBERS)))

    @classmethod
    def of(cls, mode: int, cells: Places | Positions) -> Fibres:
        """Return the fibres of some cells, which remember nothing: an index of them."""
        keys, _ = _distinct(_beside(cells, mode))
        return cls(mode, keys, np.zeros((len(keys), NUMBERS)))

    @property
    def keys(self) -> Places:
        """Positions of the fibres in the other modes, in ascending mode number."""
        return self._keys[: self.size]

    @property
    def numbers(self) -> Floats:
        """What is remembered of each."""
        return self._numbers[: self.size]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.keys.nbytes + self.numbers.nbytes

    def recall(
        self, cells: Places | Positions, line: Positions, old: Flags
    ) -> tuple[Floats, Floats]:
        """Return what is remembered of the fibre of each cell, whose labels stand on a line.

        Of residuals: nothing, the last one, a faded mean, the mean; the last ones say nothing of
        `old` labels, where the mean stands for them.  Of values: the last one and the mean, NaN
        where there is none, and for labels before the last one: they are not what comes after it.
        """
        at = self.find(cells)
        m = np.where((at >= 0)[:, None], self._numbers[np.maximum(at, 0)], 0.0)
        out = remembered(m)
        out[:, 1:3] = np.where(old[:, None], out[:, 3:], out[:, 1:3])
        count, value, others, last = m[:, 4:].T
        plain = np.column_stack([value, (others + value) / np.maximum(count, 1.0)])
        return out, np.where(((count > 0.0) & (line >= last))[:, None], plain, np.nan)

    def newest(self, cells: Places | Positions) -> Floats:
        """Return where the newest label of the fibre of each cell stands, NaN where none is."""
        numbers = np.append(self.numbers[:, NEWEST], np.nan)
        return np.asarray(numbers[self.find(cells)])

    def find(self, cells: Places | Positions) -> Positions:
        """Return where the fibre of each cell stands, -1 where none is known."""
        wanted = _beside(cells, self.mode)
        out = np.empty(len(wanted), np.int64)
        find_fibres(wanted, self._slots, self._keys, out)
        return out

    def learn(
        self,
        cells: Places | Positions,
        order: Positions,
        residuals: Floats,
        values: Floats,
        line: Positions,
        forget: Positions | None = None,
    ) -> tuple[FibreChange, Floats]:
        """Return what cells change, one by one in an order, and what was recalled of residuals.

        `order` may leave cells out, which tell nothing; `line` says where the label of each cell
        stands among those of the mode; the fibres of the cells `forget` forget all before.
        """
        wanted = _beside(cells if forget is None else np.concatenate([cells, forget]), self.mode)
        at = np.empty(len(wanted), np.int64)
        find_fibres(wanted, self._slots, self._keys, at)
        new = np.flatnonzero(at < 0)
        if len(new):
            fresh, which = _distinct(wanted[new])
            at[new] = self.size + which
        else:
            fresh = wanted[:0]
        places, which = np.unique(at, return_inverse=True)
        known = places < self.size
        before = np.zeros((len(places), NUMBERS))
        before[known] = self._numbers[places[known]]
        after, which = before.copy(), which.ravel()
        after[which[len(cells) :]] = 0.0
        recalled = np.empty((len(cells), MEMORIES))
        recall_and_learn(order, which, residuals, values, line, after, recalled)
        keys = np.concatenate([self._keys[places[known]], fresh])
        size = self.size + len(fresh)
        change = FibreChange(places=places, keys=keys, before=before, after=after, size=size)
        return change, recalled

    def unchanged(self) -> FibreChange:
        """Return the change that is none."""
        nothing = self.numbers[:0]
        return FibreChange(
            places=np.empty(0, np.int64), keys=self.keys[:0], before=nothing, after=nothing,
            size=self.size,
        )  # fmt: skip

    def put(self, change: FibreChange) -> None:
        """Take over what a step has changed."""
        if change.size > len(self._keys):
            room = change.size + change.size // 2 + 16
            keys, numbers = self.keys, self.numbers
            self._keys = np.zeros((room, keys.shape[1]), np.int32)
            self._numbers = np.zeros((room, NUMBERS))
            self._keys[: self.size], self._numbers[: self.size] = keys, numbers
        new = change.places >= self.size
        self._numbers[change.places] = change.after
        self._keys[change.places[new]] = change.keys[new]
        first, self.size = self.size, change.size
        if 2 * self.size > len(self._slots):
            self._index()
        else:
            insert_fibres(self._keys, first, self.size, self._slots)

    def take_back(self, change: FibreChange, size: int) -> None:
        """Put everything back as it was before `put`, however far that got."""
        known = change.places < size
        self._numbers[change.places[known]] = change.before[known]
        self.size = size
        self._index()

    def kept(self, mode: int, keep: Flags) -> Fibres:
        """Return the fibres of the labels of another mode that are kept, numbered anew."""
        column = mode if mode < self.mode else mode - 1
        stay = keep[self.keys[:, column]]
        keys = self.keys[stay].copy()
        keys[:, column] = (np.cumsum(keep) - 1)[keys[:, column]]
        return Fibres(self.mode, keys, self.numbers[stay])

    def without(self, places: Positions) -> Fibres:
        """Return the fibres without the newest cells whose labels stood at some places.

        What remains of such a fibre has no newest value: the mean of the others stands for it.
        """
        found = self.copy()
        m = found.numbers
        gone = np.isin(m[:, NEWEST], places) & (m[:, 4] > 0.0)
        m[gone, 4] -= 1.0
        m[gone & (m[:, 4] == 0.0)] = 0.0
        left = gone & (m[:, 4] > 0.0)
        count, others, values = m[left, 4], m[left, 3], m[left, 6]
        m[left, 0], m[left, 5] = others / count, values / count
        m[left, 3], m[left, 6] = others - m[left, 0], values - m[left, 5]
        return found

    def closed_up(self, keep: Flags) -> Fibres:
        """Return the fibres where the labels along them are positions, which close up.

        Where a label that goes was newest, its place lies between those that stay.
        """
        found = self.copy()
        last = found.numbers[:, NEWEST]
        at = np.floor(last).astype(np.int64)
        between = (last != at) | ~keep[np.maximum(at, 0)]
        places = np.cumsum(keep)[np.maximum(at, 0)] - 1 + 0.5 * between
        found.numbers[:, NEWEST] = np.where(at < 0, -0.5, places)
        return found

    def copy(self) -> Fibres:
        """Return an independent memory."""
        return Fibres(self.mode, self.keys, self.numbers)

    def _index(self) -> None:
        room = 16
        while room < 4 * self.size:
            room *= 2
        self._slots = np.full(room, -1, np.int64)
        insert_fibres(self._keys, 0, self.size, self._slots)


def _distinct(keys: Places) -> tuple[Places, Positions]:
    """Return the rows that differ, in ascending order, and which of them each row is.

    NumPy's own way makes another error of an interrupt while it compares.
    """
    order = np.lexsort(keys.T[::-1])
    rows, first = keys[order], np.ones(len(keys), bool)
    first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    which = np.empty(len(keys), np.int64)
    which[order] = np.cumsum(first) - 1
    return rows[first], which


def _beside(cells: Places | Positions, mode: int) -> Places:
    """Return the positions of cells in all modes but one."""
    return np.ascontiguousarray(np.delete(cells, mode, axis=1), np.int32)


def remembered(numbers: Floats) -> Floats:
    """Return of fibres: nothing, the last residual, a faded mean, the mean of all."""
    last, faded, weight, others, count = numbers[:, :5].T
    out = np.zeros((len(numbers), MEMORIES))
    out[:, 1] = last
    out[:, 2] = (faded + last) / (weight + 1.0)
    out[:, 3] = (others + last) / (count + 1.0)
    return out
